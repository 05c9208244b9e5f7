"""xprof's opinion: right where xprof is right, a reason where it has none, never an exception."""

from scripts.synthetic.network import Network
from scripts.synthetic.run import Run, Truth
from scripts.synthetic.samples import build
from scripts.synthetic.tpu_program import depth, factors, program
from scripts.synthetic.xspace import Space
from tests.builders import PS, Row, device, line, trace
from tests.kit import *
from tests.xspaces import TRACES, hostile, save
from tfdoctor.trace import repair, xprof
from tfdoctor.trace.hlo import DEEPEST, HloProgram, Instruction, SourceLines, parse
from tfdoctor.trace.model import Line, Trace
from tfdoctor.trace.xplane import measured
from tfdoctor.trace.xprof import Opinion

NETWORK = Network(batch=4)


def ask(path: Path, timeout_s: float = 60) -> Opinion:
    with xprof.Asked(path, timeout_s=timeout_s) as asked:
        return asked.opinion()


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def record(folder: Path, run: Run) -> tuple[Path, Truth]:
    """Write a run into a folder of its own."""
    space, truth = build(run)
    (folder / "run").mkdir()
    return save(space, folder / "run" / "vm.xplane.pb"), truth


SMALL = Run(device="v5e", precision="bf16", steps=1, network=NETWORK)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of one step."""
    return record(tmp_path, SMALL)[0]


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is run in place of xprof."""
    monkeypatch.setattr(xprof, "CHILD", tmp_path / "child.py")
    return tmp_path / "child.py"


def test_a_tpus_steps_and_input_are_found(tmp_path: Path) -> None:
    path, truth = record(tmp_path, Run(device="v5e", precision="bf16", input_ms=1.0, network=NETWORK))
    opinion = ask(path)
    assert (opinion.error, opinion.steps) == ("", truth.steps)
    assert opinion.step_ms == pytest.approx(truth.step_ms, rel=1e-6)
    assert opinion.input_percent == pytest.approx(100 * truth.input_wait_ms / truth.step_ms, abs=0.1)
    assert opinion.conclusion.startswith("Your program is HIGHLY input-bound")


def test_without_steps_it_has_no_share_of_input(tmp_path: Path) -> None:
    opinion = ask(record(tmp_path, replace(SMALL, steps=0))[0])
    assert opinion.conclusion.startswith("No step time measured")
    assert (opinion.steps, opinion.step_ms, opinion.input_percent) == (0, None, None)


def test_a_loop_within_the_step_does_not_hide_it(tmp_path: Path) -> None:
    space, truth = build(Run(device="v100", input_ms=1.0, network=NETWORK))
    del space.proto.planes[0]  # the device: a run on the CPU is left
    (plane,) = (plane for plane in space.proto.planes if plane.name == "/host:CPU")
    key = next(key for key, m in plane.stat_metadata.items() if m.name == "iter_num")
    for stat in (s for row in plane.lines for event in row.events for s in event.stats):
        if stat.metadata_id == key:
            stat.int64_value = 1
    opinion = ask(save(space, tmp_path / "vm.xplane.pb"))
    assert opinion.steps == truth.steps - 2  # it drops the first and the last


def test_nothing_is_left_behind_and_the_trace_untouched(tmp_path: Path, private: Path) -> None:
    path, _ = record(tmp_path, Run(device="t4", precision="fp16", network=NETWORK))
    before = path.read_bytes()
    assert ask(path).steps
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    assert list(private.iterdir()) == []


@each(b"", b"not a trace", b"\x1f\x8b", None)
def test_a_bad_trace_is_a_reason(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    if content is not None:
        path.write_bytes(content)
    opinion = ask(path)
    assert (str(path) in opinion.error, opinion.steps) == (True, 0)


def test_a_large_trace_is_not_asked_about(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xprof, "LARGEST_BYTES", 1000)
    assert "it is asked for traces of up to" in ask(path).error


def test_an_answer_before_an_abort_counts(path: Path, child: Path) -> None:
    answer: dict[str, list[str]] = {"tables": [], "steps": []}
    child.write_text(f"import os; print({json.dumps(json.dumps(answer))}, flush=True); os.abort()")
    assert ask(path) == Opinion()


SLEEPS = "import time; time.sleep(600)"
CHILDREN = {
    "import os; os.kill(os.getpid(), 6)": "it was killed by signal 6",
    SLEEPS: "no answer within 1 s",
    "import sys; sys.exit('no such tool')": "no such tool",
    "import sys; sys.exit(1)": "it failed without a message",
    "print('<html>')": "its answer cannot be read",
    "print('[]')": "its answer is of an unknown kind",
}


@each(*CHILDREN)
def test_whatever_befalls_the_child_is_a_reason(code: str, path: Path, private: Path, child: Path) -> None:
    child.write_text(code)
    assert ask(path, timeout_s=1 if code == SLEEPS else 60) == Opinion(error=CHILDREN[code])
    assert list(private.iterdir()) == []


def test_memory_is_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xprof, "BASE_BYTES", 10_000_000)
    opinion = ask(path)
    assert (bool(opinion.error), opinion.steps) == (True, 0)


def test_a_question_that_is_dropped_ends_its_child(path: Path, private: Path, child: Path) -> None:
    number = child.with_name("number")
    child.write_text(f"import os, time; open({str(number)!r}, 'x').write(f'{{os.getpid()}}\\n'); time.sleep(600)")
    with xprof.Asked(path):
        while not (number.exists() and number.read_text().endswith("\n")):
            time.sleep(0.01)
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)
    assert list(private.iterdir()) == []


@each(
    "import sys; from tfdoctor.trace import repair, wire; sys.exit('numpy' in sys.modules)",
    "import sys; from tfdoctor.trace.hlo import parse; sys.exit(parse(b'') is None or 'tensorflow' in sys.modules)",
    ids=["the child", "a program"],
)
def test_what_is_read_imports_little(code: str) -> None:
    ran_command("-c", code, check=True)


def test_what_never_has_an_iter_num_is_no_executor() -> None:
    assert not "ExecutorState::Process".startswith(repair.OUTSIDE_LOOPS)
    assert not "IteratorGetNextOp::DoCompute".startswith(repair.OUTSIDE_LOOPS)


@settings(max_examples=15)
@given(hostile())
def test_a_message_without_sense_is_an_opinion(space: Space) -> None:
    with tempfile.TemporaryDirectory() as folder:
        opinion = ask(save(space, Path(folder, "vm.xplane.pb")))
    assert opinion.error or opinion.conclusion


def test_a_full_disk_is_a_reason(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    assert "No space left" in ask(path).error


# XLA's programs in a trace.

DEPTHWISE = Network(depthwise=True)
OPERATIONS = DEPTHWISE.training_step()


def test_the_products_of_a_program_and_their_sizes() -> None:
    parsed = parse(program("cluster", OPERATIONS, "bf16"))
    assert parsed is not None
    by_name = {instruction.name: instruction for instruction in parsed.instructions()}
    for number, op in enumerate(OPERATIONS, start=1):
        fusion, depthwise = by_name[f"fusion.{number}"], op.kind == "depthwise"
        (result, *_), inside = fusion.shapes, list(parsed.inside(fusion))
        told = fusion.op_name, result.dims, result.dtype, result.tiles
        assert told == (op.name, op.result, "bf16", ((8, 128),))
        matmuls = [instruction.matmul for instruction in inside if instruction.matmul]
        assert bool(matmuls) == (op.is_matrix or depthwise)
        assert {matmul.depthwise for matmul in matmuls} <= {depthwise}
        if op.is_matrix:
            assert {matmul.k for matmul in matmuls} == {depth(op)}
            assert factors(op)[0] in {shape.dims for instruction in inside for shape in instruction.shapes}


@given(st.binary(max_size=200))
def test_damage_is_no_program_and_no_crash(data: bytes) -> None:
    parse(data)
    assert parse(b"\x0a\xff\xff") is None


@pytest.mark.skipif(not TRACES.is_dir(), reason="the real traces are not at hand")
def test_the_corrupt_trace_is_one_sentence_and_exit_code_2(tmp_path: Path) -> None:
    done = ran_command("-m", "tfdoctor", "report", TRACES / "tpu-v6e-jax-corrupt", "--out", tmp_path)
    assert (done.returncode, done.stdout, [*tmp_path.iterdir()]) == (2, "", [])
    assert "is damaged or not a profiler trace (*.xplane.pb): record again." in " ".join(done.stderr.split())


def calls(*called: tuple[int, ...]) -> HloProgram:
    """Return a program with a computation of one instruction for each of these, which it calls."""
    made = ((Instruction(f"i{number}", "fusion", (), (), calls),) for number, calls in enumerate(called))
    return HloProgram("module", 0, dict(enumerate(made)), donates=False)


@cases(
    (calls((0,)), "i0 i0"),
    (calls((1,), (0,)), "i0 i1 i0"),
    (calls((1, 1, 2), (2,), ()), "i0 i1 i2"),
    (calls(*((at + 1, at + 1) for at in range(40)), ()), " ".join(f"i{at}" for at in range(41))),
)
def test_a_computation_is_visited_once(program: HloProgram, names: str) -> None:
    (first,) = program.computations[0]
    assert " ".join(inner.name for inner in program.inside(first)) == names


def test_calls_within_calls_are_followed_to_an_end() -> None:
    deep = calls(*((at + 1,) for at in range(100_000)))
    (first,) = deep.computations[0]
    assert len(list(deep.inside(first))) == DEEPEST + 1


def test_stack_frames_in_a_circle_have_no_line() -> None:
    frame = SimpleNamespace(file_location_id=0)
    ring = [SimpleNamespace(**vars(frame), parent_frame_id=at % 3 + 1) for at in (1, 2, 3)]
    table = SimpleNamespace(stack_frames=ring, file_locations=[], file_names=[])
    lines = SourceLines(table)
    own = SimpleNamespace(stack_frame_id=2, source_file="train.py", source_line=7)
    assert lines.of(own) == lines.of(own) == ("train.py", 7)


# What is measured ends where the agent says so; what follows is there for samples of the stack only.

END = 50.0

moments = st.integers(0, 99).map(float)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Events of one thread with a stat or without, around the end of what is measured."""
    found: list[Row] = []
    for start in sorted(draw(st.lists(moments, unique=True, max_size=12))):
        stats = draw(st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), max_size=2))
        found.append((draw(st.sampled_from("xyz")), start, start + draw(moments), stats))
    return found


Rows = list[Row]


def of(host: Rows, other: Rows, gpu: Rows, *ends: float) -> Trace:
    said: Rows = [("tfdoctor_end", at, at) for at in ends]
    return trace(host=[line("python", *host, *said), line("pool", *other)], gpus=[device(line("Stream", *gpu))])


def events(one: Line) -> list[tuple[str, int, int, dict[str, object]]]:
    return [(e.name, e.start_ps // PS, e.end_ps // PS, dict(e.stats)) for e in one.events()]


@given(rows(), rows(), rows())
def test_hosts_have_what_ended_and_devices_what_began(host: Rows, other: Rows, gpu: Rows) -> None:
    whole = of(host, other, gpu, END, 200.0)
    part = measured(whole)
    assert part.sampled is whole
    for found, before in zip(part.host_lines, whole.host_lines, strict=True):
        assert events(found) == [event for event in events(before) if event[2] <= END]
    for found, before in zip(part.devices("GPU")[0].lines, whole.devices("GPU")[0].lines, strict=True):
        assert events(found) == [event for event in events(before) if event[1] < END]


@given(rows(), rows(), rows(), st.lists(st.just(END), max_size=1))
def test_a_stopped_profiler_left_all(host: Rows, other: Rows, gpu: Rows, ends: list[float]) -> None:
    whole = of(host, other, gpu, *ends)
    assert measured(whole) is whole


def test_calls_for_samples_are_cut_where_the_second_end_is_missing() -> None:
    whole = of([("x", 10.0, 20.0), ("tfdoctor_sampled", 60.0, 70.0)], [], [], END)
    assert [name for name, *_ in events(measured(whole).host_lines[0])] == ["x", "tfdoctor_end"]
