"""What ran when, on whose account."""

from tests.facts.kit import *
from tfdoctor.facts.timeline import host_events as nesting
from tfdoctor.trace.hlo import Shape

spans = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 50)).map(lambda x: (x[0], sum(x))))
told = Told()


def seen(of: Trace) -> dict[str, object]:
    """The labels and ms of each stage's work, the waits in ms, and what else is known."""
    found = chart(of).fact(Activity)
    waits = [(start / PS, end / PS) for start, end in found.wait.spans]
    return {
        **{str(stage): [*labels(work), work.spans().total / PS] for stage, work in found.stages.items()},
        "else": {"waits": waits, "dispatch": found.dispatch.total / PS, **fields(found, "within_data missing")},
    }


def labels(work: Work) -> list[tuple[str, ...]]:
    return sorted(work.labels[label] for label in work.label)


def work_of(pairs: list[tuple[int, int]]) -> Work:
    starts, ends = (np.array([p[i] for p in pairs], np.int64) for i in (0, 1))
    return Work((("a", "b", "c"),), np.zeros(len(pairs), np.int32), starts, ends)


@given(spans)
def test_attributed_time_sums_to_the_union_and_no_work_has_more_than_it_ran(pairs: list[tuple[int, int]]) -> None:
    work = work_of(pairs)
    shares = work.attributed_ps()
    assert shares.sum() == pytest.approx(work.spans().total)
    assert (shares <= np.array([b - a for a, b in pairs], float) + 1e-9).all()
    assert (shares >= -1e-9).all()


def test_two_that_run_at_once_share_the_time() -> None:
    assert work_of([(0, 10), (5, 10), (5, 15)]).attributed_ps() == pytest.approx([5 + 5 / 3, 5 / 3, 5 + 5 / 3])


# On each kind of device

NEXT = "IteratorGetNext:IteratorGetNext"
NAMED = "model/c/Conv2D:Conv2D#id=3#"
NAMING = ("tf_op", "annotation", "level 0")
FOREIGN = line("tf_data_iterator_resource/1", captured(0, 1, 77))
ADDS, STREAM = line("python", ("a:Add", 0, 1)), line("Stream #13(Compute)", ("k", 0, 4))
TPU_OPS = line("XLA Ops", ("%op", 0, 3))


def on_gpu(*threads: Thread, host: tuple[Thread, ...] = (), **more: Any) -> Trace:
    return trace(host, gpus=[v100(*threads)], **more)


def kernel_of(stat: str, says: str) -> Trace:
    return on_gpu(line("Stream #13(Compute)", ("volta_scudnn", 0, 4, {stat: says})))


POOL = line(
    "tf_data_private_threadpool/1",
    executor(0, 4, 77),
    ("gradient_tape/m/c:Conv2DBackpropFilter", 1, 2),
    ("adam/Assign:AssignSubVariableOp", 2, 3),
    executor(5, 9, 78),
    ("Cast:Cast", 6, 8),
)
TPU_HOST = line("python", ("EagerLocalExecute: Mul", 0, 9), ("IteratorGetNext/_3:_Send", 9, 19))
OPTIONAL = line("b", ("IteratorGetNextAsOptionalOp::DoCompute", 4, 8), ("IteratorGetNext", 9, 10))
STARTED = line("t", executor(0, 4, 77), ("Cast:Cast", 1, 3), executor(5, 9, 1), ("c:Conv2D", 6, 8))

told[lambda *threads: seen(trace(threads))] = {
    "a CPU's operations": line("t", executor(0, 9, 1), ("m/c:Conv2D", 1, 5), ("m/r:Relu", 5, 6)),
    "what tf.data started is told by its execution": (FOREIGN, STARTED),
    "what runs on its threads": (line("tf_data_private_threadpool/3", ("Cast:Cast", 0, 3)), ADDS),
    "a call is not its body": line("t", ("a:While", 0, 9), ("a/body/m:Mul", 1, 4), ("a/body/a:Add", 4, 8)),
    # `for x in dataset` inside a tf.function is a dataset itself: it scans the batches.
    "training that tf.data runs": (line("tf_data_reduce_dataset/1", captured(0, 1, 77), captured(1, 2, 78)), POOL),
    # Only the operations were recorded; what tf.data itself iterates is no wait.
    "a TPU's host waits": (line("m/101", (f"while/{NEXT}", 1, 8)), TPU_HOST, line("tf_data_i/102", (NEXT, 0, 20))),
    "an operation only starts to wait": (line("t", (NEXT, 0, 2)), line("tf_data_i/2", wait(5, 9))),
    "waits on two threads": (line("a", wait(0, 5)), OPTIONAL),
}
told[seen] = {
    "a trace without a host has no work": trace(None),
    "kernels, copies and collectives of a GPU, without derived lines": on_gpu(
        line("Stream #13(Compute)", ("volta_sgemm", 0, 4), ("ncclDevKernel_AllReduce", 4, 5)),
        line("Stream #14(MemcpyH2D)", ("MemcpyH2D", 0, 1), ("Memset", 1, 2)),
        line("Kernels", ("volta_sgemm", 0, 4)),
        line("TensorFlow Ops", ("m/c:Conv2D", 0, 4)),
    ),
    "what launches on the host is dispatch": on_gpu(STREAM, host=(line("tf_Compute", ("m/c:Conv2D", 2, 3)),)),
    **{f"the operation of a kernel by {stat}": kernel_of(stat, NAMED) for stat in NAMING},
    "no type names no operation": kernel_of("tf_op", "no type"),
    "a GPU without kernels": on_gpu(host=(markers(1, 10),), errors=("Failed to load libcupti",)),
    "derived lines of a TPU are not work": trace([], tpus=[device(TPU_OPS, line("XLA Modules", ("f(1)", 0, 9)))]),
}

test_activity = told.test("activity")


def test_leaves_hold_nothing() -> None:
    nested = only_line(("a", 0, 10), ("b", 1, 4), ("c", 1, 3), ("d", 4, 10), ("e", 10, 12))
    assert leaves(nested).tolist() == [False, False, True, True, True]
    assert leaves(only_line()).tolist() == []


def of_category(category: str) -> object:
    tpu = device(TPU_OPS, kinds={"%op": {"hlo_category": category}})
    return tuple(chart(trace([], tpus=[tpu])).fact(Activity).stages)


test_names = Names(__file__, "names").test(
    {
        "the categories of a TPU's operations": of_category,
        "operations among events, by name and displayed name": lambda event: operation_label(
            EventType(*event.partition(" ")[::2])
        ),
    }
)

# Which events lie in which: by columns as by a stack.

Events = list[tuple[int, int]]
SPANS = st.tuples(st.integers(0, 12), st.integers(0, 6)).map(lambda span: (span[0], sum(span)))

THREADS = st.lists(
    st.lists(SPANS, max_size=8).map(lambda spans: sorted(spans, key=lambda span: (span[0], -span[1]))), max_size=4
)
"""Events of threads, by start, outer before inner; they may overlap too."""


def by_stack(threads: Sequence[Events]) -> list[int]:
    """Walk each thread with a stack of events that have not ended."""
    around: list[int] = []
    for events in threads:
        first, stack = len(around), list[int]()
        for at, (start, _) in enumerate(events):
            while stack and events[stack[-1]][1] <= start:
                stack.pop()
            around.append(first + stack[-1] if stack else -1)
            stack.append(at)
    return around


def columns(threads: Sequence[Events]) -> tuple[nesting.Column, nesting.Column, list[int]]:
    flat = np.array([span for events in threads for span in events], np.int64).reshape(-1, 2)
    return flat[:, 0], flat[:, 1], [len(events) for events in threads]


@given(THREADS)
def test_the_event_around_each_is_that_of_a_stack(threads: list[Events]) -> None:
    assert nesting.enclosing(*columns(threads)).tolist() == by_stack(threads)


@given(THREADS, st.data())
def test_the_nearest_wanted_event_is_the_first_on_the_way_out(threads: list[Events], data: st.DataObject) -> None:
    around = by_stack(threads)
    wanted = data.draw(st.lists(st.booleans(), min_size=len(around), max_size=len(around)))
    expected = []
    for at in around:
        while at >= 0 and not wanted[at]:
            at = around[at]  # noqa: PLW2901 - the way out
        expected.append(at)
    found = nesting.nearest(np.array(around, np.int64), np.array(wanted, np.bool_))
    assert found.tolist() == expected


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 40)), max_size=6),
)
def test_the_latest_before_is_that_of_a_search(rows: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    keys = np.array([key for key, _ in rows], np.int64)
    times = np.cumsum([1 + gap for _, gap in rows]).astype(np.int64)
    expected = [
        max((at for at in range(len(rows)) if keys[at] == key and times[at] < time), default=-1)
        for key, time in asked
    ]
    wanted = np.array(asked, np.int64).reshape(-1, 2)
    assert nesting.latest_before(keys, times, wanted[:, 0], wanted[:, 1]).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 3), SPANS), max_size=12))
def test_joined_spans_cover_what_the_spans_cover(spans: list[tuple[int, tuple[int, int]]]) -> None:
    groups = np.array([group for group, _ in spans], np.int64)
    starts = np.array([start for _, (start, _) in spans], np.int64)
    ends = np.array([end for _, (_, end) in spans], np.int64)
    found = list(zip(*(column.tolist() for column in nesting.joined(groups, starts, ends)), strict=True))
    covered = {(group, moment) for group, (start, end) in spans for moment in range(start, end)}
    assert {(group, moment) for group, start, end in found for moment in range(start, end)} == covered
    assert found == sorted(found)
    pairs = [(one, two) for one, two in pairwise(found) if one[0] == two[0]]
    assert [pair for pair in pairs if pair[0][2] >= pair[1][1]] == []


# Kernels of CUDA graphs and the instructions that they run.

RESULT = (Shape("bf16", (8, 8)),)
CALLS = tuple(
    Instruction(name, "custom-call", RESULT, (), (), "", HloMatmul(1, 8, 8, 8), "__cublas$gemm")
    for name in ("second", "first")
)
PROGRAM = HloProgram("f", 1, {1: CALLS}, donates=False, schedule={1: ("first", "second")})
KNOWN = XlaOperations({("7", name): Operation(name=name, type="MatMul") for name in ("first", "second", "loop.3")})


def kernel(name: str, start: int, **stats: str) -> Event:
    return Event(EventType(name), start, 1, {"program_id": "7", **stats})


def computed(*events: Event) -> list[str | None]:
    operations = kernel_operations(events, XlaPrograms({"f(7)": PROGRAM}), KNOWN)
    return [operation.name if operation else None for operation in operations]


GEMMS = [kernel(f"gemm_{at % 2}", at) for at in range(4)]
ELSEWHERE = Event(EventType("loop_3"), 0, 1, {"program_id": "8", "hlo_op": "first"})

test_which_operation_a_kernel_computes = answers(
    computed,
    # it names its instruction, or has the name of its fusion
    (kernel("some_gemm", 0, hlo_op="first"), kernel("loop_3", 1, hlo_op="command_buffer_1"), ["first", "loop.3"]),
    (*GEMMS[::-1], ["second", "first", "second", "first"]),  # of a library, in the order of its calls
    (*GEMMS[:3], [None] * 3),  # cut off
    (*GEMMS[:2], kernel("gemm_1", 2), kernel("gemm_0", 3), [None] * 4),  # another order
    (ELSEWHERE, [None]),  # of an unknown program
)


@cases(
    ("convnet-bfloat16", 1.784e12),
    ("convnet-float32", 1.784e12),
    ("mlp-bfloat16-4000", 3.146e12 * 23 / 24),  # nothing needs the gradient of the first input
    ("mlp-bfloat16-4001", 3.147e12 * 23 / 24),
)
def test_all_matmuls_of_a_real_step_are_found(trace: str, flops: float) -> None:
    """The script's own count, of three passes; the first convolution has no gradient of its input either."""
    operations = h100(trace).fact(Operations)
    counted = sum((row.flops or 0.0) * row.calls for row in operations.matrix)
    assert counted == pytest.approx(flops, rel=0.01)
    assert operations.why_unlisted == ""
    assert {row.at.line for row in operations.matrix if row.at and row.ms > 0.1} <= {18, 34}


# When the trainer waits for input: in its requests, and at the end of an iterator that is still at work.

MADE = ("EagerLocalExecute: MakeIterator", 0.0, 0.2)


def waited(until: float, *made: Row) -> float:
    rows = *made, ("FunctionRun", 0.3, 0.9), ("TFE_DeleteTensorHandle", 1.0, until)
    return trainer_waits(trace([line("python", *rows)]).host_lines).total / PS


test_the_end_of_an_iterator_is_a_wait_if_it_takes_long = answers(
    waited,
    (1.9, MADE, 0.0),
    (2.0, MADE, 1.0),
    (301.0, MADE, 300.0),
    (301.0, 0.0),  # it makes none
)
