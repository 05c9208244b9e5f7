"""The reader: columns are what the message says, and every other file is one clear error."""

import importlib.util
from mmap import mmap

from scripts.synthetic.network import Network
from scripts.synthetic.run import Run
from scripts.synthetic.samples import build
from scripts.synthetic.xspace import T0_NS, U64, Plane, Ref, Space
from tests.kit import *
from tests.xspaces import EVENTS, hostile, save
from tfdoctor.trace import fields, repair, wire, xplane
from tfdoctor.trace.events import LIMIT_PS
from tfdoctor.trace.fields import DamagedError, MessageBytes
from tfdoctor.trace.model import Line, Trace

SMALL = build(Run(device="v5e", precision="bf16", steps=1, network=Network(batch=2)))[0]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces") / "vm.xplane.pb"


@pytest.fixture(scope="module", autouse=True, params=[None, 32])
def guesses(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small traces, with as many guesses where events begin as large ones have: of some, none meets an event."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("STRIDE", request.param), ("APART", 8), ("HOPS", 3)) if request.param else ():
            patch.setattr(fields, name, value)
        yield


Event = tuple[str, int, int, dict[str, Any]]


def one_line(file: Path, *events: Event) -> Line:
    space = Space()
    line = space.plane("/host:CPU").line(7, "python")
    for name, start, duration, stats in events:
        line.add(name, start, duration, **stats)
    file.write_bytes(space.proto.SerializeToString())  # in this order, sorted or not
    trace = xplane.read(file)
    assert trace.host is not None
    return trace.host.lines[0]


def rows(line: Line) -> list[Event]:
    return [(e.name, e.start_ps, e.duration_ps, dict(sorted(e.stats.items()))) for e in line.events()]


@given(EVENTS)
def test_columns_equal_a_naive_reading(file: Path, events: list[Event]) -> None:
    line = one_line(file, *events)
    base = T0_NS * 1000
    expected = [(name, base + at, length, dict(sorted(stats.items()))) for name, at, length, stats in events]
    by_time = lambda row: (row[1], -row[2])  # noqa: E731
    assert sorted(rows(line), key=repr) == sorted(expected, key=repr)
    assert list(map(by_time, rows(line))) == sorted(map(by_time, expected))


@given(hostile())
def test_a_message_without_sense_is_read(file: Path, space: Space) -> None:
    trace = xplane.read(save(space, file))
    for line in (line for plane in trace.planes for line in plane.lines):
        ends = line.start_ps + line.duration_ps
        assert (ends >= line.start_ps).all()
        assert (np.diff(line.start_ps) >= 0).all()
        assert all(0 <= at < len(line) for at in line.stats.event)
        assert len(rows(line)) == len(line)


def reads_or_refuses(path: Path) -> None:
    """Fail on any other exception."""
    try:
        trace: object = xplane.read(path)
    except InputError as error:
        trace = str(error)
    assert isinstance(trace, Trace) or str(path) in str(trace)


@given(st.binary(max_size=200))
def test_random_bytes_are_read_or_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    reads_or_refuses(file)


@given(st.integers(0, len(SMALL.serialized())))
def test_a_trace_cut_anywhere_is_read_or_refused(file: Path, length: int) -> None:
    file.write_bytes(SMALL.serialized()[:length])
    reads_or_refuses(file)


@given(st.data())
def test_a_trace_with_flipped_bytes_is_read_or_refused(file: Path, data: st.DataObject) -> None:
    content = bytearray(SMALL.serialized())
    places = st.integers(0, len(content) - 1)
    for at in data.draw(st.lists(places, min_size=1, max_size=4)):
        content[at] ^= data.draw(st.integers(1, 255))
    file.write_bytes(content)
    reads_or_refuses(file)


TRACE = SMALL.serialized()


@cases(
    (b"", "is empty"),
    (gzip.compress(TRACE, mtime=0), "compressed"),
    (TRACE[: len(TRACE) // 2], "damaged"),
    (b"step 1: 4.2 ms\n" * 9, "damaged"),
    (b"\x22\x02vm", "no plane"),
    ids=["empty", "compressed", "cut off", "text", "another protobuf"],
)
def test_what_is_no_trace_is_refused_in_one_sentence(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "vm.xplane.pb").write_bytes(content)
    with pytest.raises(InputError, match=f"^[^\n]*{why}[^\n]*$"):
        xplane.read(tmp_path / "vm.xplane.pb")


@each("none.xplane.pb", "", "a\0b")
def test_a_missing_file_a_folder_and_a_nul_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        xplane.read(tmp_path / name)


def test_without_tensorflow_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = save(SMALL, tmp_path / "vm.xplane.pb")
    wire.xplane_pb2.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match="pip install tensorflow"):
        xplane.read(path)


def test_reading_does_not_import_tensorflow(tmp_path: Path) -> None:
    path = save(SMALL, tmp_path / "vm.xplane.pb")
    code = (
        "import sys, pathlib; from tfdoctor.trace import xplane;"
        "xplane.read(pathlib.Path(sys.argv[1])); sys.exit('tensorflow' in sys.modules)"
    )
    source = str(Path(xplane.__file__).parents[2])
    done = subprocess.run([sys.executable, "-c", code, str(path)], env={"PYTHONPATH": source}, check=False)
    assert done.returncode == 0


# Noise of a thread pool is left out, as are a quantity that is no number, and the control characters of names and
# texts. Wanted stats are kept, and references are resolved.
@cases(
    ("ThreadpoolListener::Record", {}, []),
    ("a", {"tf_op": Ref("conv/convolution:Conv2D"), "context_id": "$$1", "step_num": 3},
     [("a", {"tf_op": "conv/convolution:Conv2D", "step_num": 3})]),
    *(("a", {"step_num": no}, [("a", {})]) for no in ("seven", b"\x07", float("nan"), float("inf"), Ref("eight"))),
    ("\0rain", {"name": "a\x1b[31m\u202eb", "tf_op": Ref("\0p:Mul")},
     [("rain", {"name": "a[31mb", "tf_op": "p:Mul"})]),
)  # fmt: skip
def test_what_is_read_of_an_event(name: str, stats: dict[str, Any], read: list[object], file: Path) -> None:
    found = rows(one_line(file, ("train", 0, 0, {}), (name, 5, 1, stats)))
    assert [(name, stats) for name, _, _, stats in found] == [("train", {}), *read]


def test_a_tpus_own_clock_wins(file: Path) -> None:
    stats = {"device_offset_ps": 900, "device_duration_ps": 40}
    assert rows(one_line(file, ("op", 5, 7, stats)))[0][1:3] == (900, 40)


@cases(("tf_numa_-1_Eigen/7", [[2, 5], [9, 12]]), ("tf_Compute/7", []))
def test_tasks_of_the_pool_that_operations_share_are_kept(thread: str, tasks: list[list[int]], file: Path) -> None:
    """A task that had begun before the trace, or goes on after it, is left out."""
    space = Space()
    line = space.plane("/host:CPU").line(7, thread)
    for name, at in [("Stop", 1), ("Start", 2), ("Stop", 5), ("Start", 9), ("Stop", 12)]:
        line.add(f"ThreadpoolListener::{name}Region", at, 0)
    line.add("ThreadpoolListener::StartRegion", 20, 0)
    file.write_bytes(space.proto.SerializeToString())
    trace = xplane.read(file)
    assert trace.host is not None
    started = 1_000_000_000  # of every line that Space makes
    assert (trace.host.lines[0].tasks_ps - started).tolist() == tasks
    assert not len(trace.host.lines[0])


def test_ids_compare_whether_they_were_signed_or_not(file: Path) -> None:
    line = one_line(file, ("a", 0, 1, {"_p": -5}), ("b", 2, 1, {"_c": U64(2**64 - 5)}))
    assert rows(line)[0][3]["_p"] == rows(line)[1][3]["_c"] == 2**64 - 5


def test_absolute_times_count_from_the_first_line(file: Path) -> None:
    space = Space()
    plane = space.plane("/host:CPU")
    for number, later in enumerate((0, 5)):
        line = plane.line(number, "thread")
        line.proto.timestamp_ns = 1_700_000_000_000_000_000 + later
        line.add("train", 2, 1)
    trace = xplane.read(save(space, file))
    assert [int(line.start_ps[0]) for line in trace.planes[0].lines] == [2, 5002]


@each(-1, 1)
def test_times_beyond_all_measure_are_cut_off(sign: int, file: Path) -> None:
    huge = 2**63 - 1
    space = Space()
    line = space.plane("/host:CPU").line(7, "python")
    line.proto.timestamp_ns = min(sign * huge, 10**17)
    line.add("train", sign * huge, sign * huge)
    trace = xplane.read(save(space, file))
    (result,) = trace.planes[0].lines
    assert "limited to 13 days" in trace.damage[0]
    assert sign * int(result.start_ps[0]) == LIMIT_PS
    assert result.event(0).end_ps == int((result.start_ps + result.duration_ps)[0])


def test_what_the_profiler_says_of_itself_is_kept(file: Path) -> None:
    space = Space("vm")
    space.plane("Task Environment", profile_start_time=U64(17))
    space.proto.errors.append("Failed to load libcupti")
    space.proto.warnings.append("Detected GPU events dropped")
    trace = xplane.read(save(space, file))
    said = ("Failed to load libcupti",), ("Detected GPU events dropped",)
    assert (trace.hostnames, trace.errors, trace.warnings, trace.started_unix_ns) == (("vm",), *said, 17)


def test_types_carry_their_stats_and_display_names(file: Path) -> None:
    space = Space()
    plane = space.plane("/device:TPU:0")
    kind = plane.type("%fusion.1", "fusion.1", flops=U64(8), symbol_id=1, hlo_category=Ref("x"))
    plane.line(3, "XLA Ops").add(kind, 0, 1)
    (event,) = xplane.read(save(space, file)).devices("TPU")[0].lines[0].events()
    stats = {"flops": 8, "hlo_category": "x"}
    assert (event.type.display_name, event.type.stats) == ("fusion.1", stats)


def test_devices_are_found_by_kind(file: Path) -> None:
    space = Space()
    for name in ("/device:GPU:0", "/device:TPU:1", "/device:GPU:x", "/device:CUSTOM:a"):
        space.plane(name)
    trace = xplane.read(save(space, file))
    found = {kind: [plane.name for plane in trace.devices(kind)] for kind in ("GPU", "TPU")}
    assert found == {"GPU": ["/device:GPU:0"], "TPU": ["/device:TPU:1"]}


def test_events_between_other_fields_of_their_line_are_read(file: Path) -> None:
    """As protobuf allows; TensorFlow writes them one after the other."""
    space = Space()
    line = space.plane("/host:CPU").line(7, "python")
    for at, name in enumerate(["a", "b", "c" * 200]):
        line.add(name, at, 1, kernel_details="x" * 100 * at)
    whole = wire.xplane_pb2().XSpace.FromString(space.proto.SerializeToString())
    parts = [event.SerializeToString() for event in whole.planes[0].lines[0].events]
    del whole.planes[0].lines[0].events[:]
    head, mixed = whole.planes[0].lines[0].SerializeToString(), b""
    for part in parts:
        one = wire.xplane_pb2().XLine(events=[wire.xplane_pb2().XEvent.FromString(part)], display_id=3)
        mixed += one.SerializeToString()
    del whole.planes[0].lines[:]
    content = head + mixed
    assert 2**7 <= len(content) < len(content) + 100 < 2**14  # lengths of two bytes
    plane = whole.planes[0].SerializeToString() + bytes([3 << 3 | 2, len(content) & 127 | 128, len(content) >> 7])
    plane += content
    file.write_bytes(bytes([1 << 3 | 2, len(plane) & 127 | 128, len(plane) >> 7]) + plane)
    host = xplane.read(file).host
    assert host is not None
    assert [event.name for event in host.lines[0].events()] == ["a", "b", "c" * 200]


# Repairs work around faults of xprof and change nothing else.


def told(plane: Plane) -> list[tuple[str, dict[str, Any]]]:
    """Return the name of every event, and its stats as they would be read."""
    known = plane.proto.stat_metadata
    return [
        (plane.proto.event_metadata[event.metadata_id].name,
         {known[s.metadata_id].name: getattr(s, s.WhichOneof("value")) for s in event.stats})
        for line in plane.proto.lines for event in line.events
    ]  # fmt: skip


def planed(name: str, **lines: Iterable[tuple[str, int, int, Any]]) -> tuple[Space, Plane]:
    """A plane with these lines of events, each a name, a start, a duration and stats."""
    space = Space()
    plane = space.plane(name)
    for number, (called, events) in enumerate(lines.items(), 1):
        line = plane.line(number, called)
        for event, start, duration, told in events:
            line.add(event, start, duration, **told)
    return space, plane


def test_iterations_become_the_zeroth() -> None:
    space, plane = planed("/host:CPU", tf_Compute=[("ExecutorState::Process", 0, 1, {"id": 4, "iter_num": 3})])
    repair.repair(space.proto)
    assert told(plane) == [("ExecutorState::Process", {"id": 4, "iter_num": 0})]


def test_calls_of_kerass_train_function_become_steps() -> None:
    calls: list[Any] = [("multi_step_on_iterator", at, 5, {}) for at in (0, 10)]
    space, plane = planed("/host:CPU", python=[*calls, ("other", 20, 1, {})])
    repair.repair(space.proto)
    assert told(plane) == [*(("train", {"_r": 1, "step_num": number}) for number in (0, 1)), ("other", {})]
    marked: tuple[str, dict[str, int]] = ("train", {"_r": 1, "step_num": 7})  # which is left alone
    space, plane = planed("/host:CPU", python=[(marked[0], 0, 9, marked[1]), calls[0]])
    repair.repair(space.proto)
    assert told(plane) == [marked, ("multi_step_on_iterator", {})]


def test_copies_get_the_names_and_sizes_that_xprof_reads() -> None:
    sized = {"memcpy_details": Ref("kind_src:pinned size:64 dest:0")}
    copies = [("MemcpyH2D", 0, 1, sized), ("Memset", 2, 1, {"memcpy_details": "dest:0"})]
    space, plane = planed("/device:GPU:0", Stream=copies)
    repair.repair(space.proto)
    details = ("MemcpyHToD", "num_bytes:64"), ("Memset", "dest:0")
    assert told(plane) == [(name, {"memcpy_details": one}) for name, one in details]
    space, plane = planed("/device:GPU:0", Stream=copies[:1])
    plane.proto.lines[0].events[0].stats[0].ref_value = 2**64 - 1  # a reference to nothing
    repair.repair(space.proto)
    assert told(plane)[0][1] == {"memcpy_details": 2**64 - 1}


@given(hostile())
def test_no_message_is_beyond_repair(space: Space) -> None:
    repair.repair(space.proto)
    assert space.serialized()


# Fields decoded as columns are those that protobuf reads.

INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 127, 128, 2**55, 2**56, 2**62, -1])


def message(name: str, fields: dict[str, Any]) -> bytes:
    content: bytes = getattr(wire.xplane_pb2(), name)(**fields).SerializeToString()
    return content


def decoded(*messages: bytes) -> list[dict[int, int]]:
    """Return for each message the 64 bits of its fields by number."""
    lengths = np.array([len(one) for one in messages], np.int64)
    ends = lengths.cumsum()
    values: list[dict[int, int]] = [{} for _ in messages]
    content = b"".join(messages) + bytes(wire.PADDING)
    pages = mmap(-1, len(content))
    pages[:] = content
    for found in MessageBytes.of(pages).fields(ends - lengths, ends):
        rows = zip(found.message.tolist(), found.number.tolist(), found.bits.tolist(), strict=True)
        for at, number, bits in rows:
            values[at][number] = bits
    return values


@given(st.lists(st.fixed_dictionaries({}, optional={"metadata_id": INT64, "duration_ps": INT64}), max_size=6))
def test_varints_are_read(rows: list[dict[str, int]]) -> None:
    number = wire.field_numbers("XEvent")
    expected = [{number[name]: value % 2**64 for name, value in row.items() if value} for row in rows]
    assert decoded(*(message("XEvent", row) for row in rows)) == expected


@given(st.lists(st.floats() | st.just(math.nan), max_size=6))
def test_doubles_are_read(values: list[float]) -> None:
    number = wire.field_numbers("XStat")["double_value"]
    rows = decoded(*(message("XStat", {"double_value": value}) for value in values))
    assert [row[number] for row in rows] == np.array(values).view(np.uint64).tolist()


def test_a_double_that_looks_like_an_endless_varint_is_read() -> None:
    """Its bytes all say that they go on, as do those of the text after it."""
    double = b"\x11" + b"\xff" * 8
    assert decoded(double + b"\x2a\x04" + b"\xff" * 4)[0][2] == 2**64 - 1


@each(
    b"\x08",  # a tag without a value
    b"\x08" + b"\xff" * 10 + b"\x01",  # eleven bytes
    b"\x08\xff",  # a value that goes on after its message
    b"\x22\x05ab",  # a text that is longer than its message
    b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # and one of 2**64 bytes
    b"\x11\x00\x00",  # a double of two bytes
    b"\x0b",  # a group
    b"\x0e\x00",  # a type that does not exist
    b"\x00\x00",  # a field without a number
)
def test_what_is_no_message_is_refused(damaged: bytes) -> None:
    with pytest.raises(DamagedError):
        decoded(b"\x08\x01", damaged, b"\x08\x01")
