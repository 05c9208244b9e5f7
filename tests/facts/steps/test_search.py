"""Steps that nobody marked: loops inside graphs, repeated calls, eager loops; or no answer."""

import gzip
import itertools
from random import Random

from tests.builders import Stats
from tests.facts.kit import *
from tests.facts.test_jax import calls, gpu_work, marked
from tfdoctor.facts.run.xla_programs import changes_weights, takes_gradients
from tfdoctor.facts.steps.search import search
from tfdoctor.facts.steps.xla_steps import compiled_steps

RECORDED = Path(__file__).parents[1] / "traces"

FORWARD, GRADIENT = "net/MatMul:MatMul", "gradient_tape/net/MatMul:MatMul"
UPDATES = tuple(f"adam/AssignSubVariableOp_{n}:AssignSubVariableOp" for n in range(4))
ADDS = tuple(f"AssignAddVariableOp_{n}:AssignAddVariableOp" for n in range(4))
STEP = (FORWARD, GRADIENT, *UPDATES)


def ops(prefix: str, names: tuple[str, ...], start: float, end: float) -> list[Row]:
    """Operations one after the other, evenly in a span."""
    edges = np.linspace(start, end, len(names) + 1)
    return [(prefix + name, a, b) for name, (a, b) in zip(names, itertools.pairwise(edges), strict=True)]


def loop(edges: list[float], names: tuple[str, ...] = STEP, frame: str = "while") -> list[Row]:
    """A loop as lowering leaves it: the condition before each iteration and at the end."""
    rows: list[Row] = [(f"{frame}/cond/_0/Less:Less", at, at) for at in edges]
    for start, end in itertools.pairwise(edges):
        rows += ops(f"{frame}/body/_1/", names, start + 0.1, end - 0.1)
    return rows


def call(name: str, run: int, start: float, end: float, concrete: str = "") -> list[Row]:
    """A tf.function as Python calls it."""
    return [
        (name, start, end, {"tf_function_call": "notTraced-nonXla"}),
        ("EagerExecute", start + 0.01, end, {"eager_op": concrete or f"__inference_{name}", "is_func": 1}),
        ("FunctionRun", start + 0.02, start + 0.03, {"id": run, "_r": 1}),
    ]  # fmt: skip


def in_graph(*rows: Row, start: float = 0, end: float = 1000) -> Trace:
    """One long call of a function with these operations."""
    python = line("python", *call("train", 7, start, end))
    return trace([python, line("tf_Compute", executor(start, end, 7), *rows)])


def called(
    *spans: tuple[float, float], names: tuple[str, ...] = STEP, name: str = "step", first: int = 1
) -> list[Thread]:
    """A function that Python calls again and again."""
    python = [row for n, (a, b) in enumerate(spans) for row in call(name, n + first, a, b)]
    work = [
        row
        for n, (a, b) in enumerate(spans)
        for row in (executor(a + 0.05, b - 0.05, n + first), *ops("", names, a + 0.1, b - 0.1))
    ]
    return [line("python", *python), line("tf_Compute", *work)]


def steps(of: Trace, **beside: object) -> Steps:
    return chart(of, recording(manifest=manifest(**beside) if beside else None)).fact(Steps)


def times(found: Steps) -> list[float]:
    return [round(step.total_ms, 3) for step in found.steps]


EVERY_10 = [10.0 * n for n in range(7)]


# Loops inside a graph

WHOLE = loop(EVERY_10)
UNCONDITIONED = [row for row in WHOLE if "/cond/" not in row[0]]
NO_UPDATES = [row for row in WHOLE if "Assign" not in row[0] and ("cond" not in row[0] or row[1] < 20)]


@cases(
    (loop([0, 10, 20, 35, 45, 55]), [10, 10, 15, 10, 10], 5),
    ([row for row in WHOLE if 3 < row[1] < 57], [10] * 4, 4),  # cut off by the window
    (UNCONDITIONED, [10] * 5, 6),  # told by what trains
    (NO_UPDATES, [10] * 5, None),  # which vanished from the trace
    ([*WHOLE, *loop([100 + 2 * n for n in range(300)], (FORWARD, ADDS[0]), "while_1")], [10] * 6, 6),  # validates
    ([*WHOLE, *loop([100 + 9.0 * n for n in range(40)], frame="while_1")], [9] * 39, 39),  # the longer loop
    ids=["uneven", "cut off", "no condition", "no updates", "validation", "two loops"],
)
def test_iterations_of_a_loop_in_a_graph_are_steps(rows: list[Row], first: list[float], count: int | None) -> None:
    found = steps(in_graph(*rows))
    assert found.source == "graph-period"
    assert times(found)[: len(first)] == first
    assert count in {None, found.count}


def test_the_end_of_a_window_by_time_ends_no_step() -> None:
    python = line("p", *call("train", 7, 0, 99), ("tfdoctor_end", 90, 90))
    assert times(steps(trace([python, line("tf_Compute", executor(0, 99, 7), *WHOLE)]))) == [10] * 6


@each(4, 11, 25)
def test_iterations_that_overlap_are_told_by_one_operation(late: float) -> None:
    body = "while/body/_1/"
    edges = [0.0, 10, 20, 35, 45, 55]
    ahead = [row for at in edges for row in ops(body, (FORWARD, GRADIENT), at + 1, at + 3)]
    behind = [row for at in edges for row in ops(body, UPDATES, at + late, at + late + 2)]
    python = line("python", *call("train", 7, 0, 1000))
    threads = [line("tf_Compute", executor(0, 1000, 7), *rows) for rows in (ahead, behind)]
    found = times(steps(trace([python, *threads])))
    assert [10, 10, 10, 10, 15] in (sorted(found[:5]), sorted(found[-5:]))


def test_an_epochs_loop_around_the_steps_is_none() -> None:
    epochs = [("while/cond/_8/Less:Less", at, at) for at in (0.0, 100.0, 200.0)]
    counter = [("while/body/_9/AssignAddVariableOp:AssignAddVariableOp", at, at) for at in (99.0, 199.0)]
    starts = ([at + 15 * n for n in range(6)] for at in (1.0, 101.0))
    inner = [row for each in starts for row in loop(each, frame="while/body/_9/while")]
    found = steps(in_graph(*epochs, *counter, *inner))
    assert (found.count, found.median_ms) == (10, 15)


def test_gradients_are_gathered_inside_the_step() -> None:
    edges = [50.0 * n for n in range(6)]
    gathers = (FORWARD, GRADIENT, *ADDS)
    starts = ([at + 1 + 10 * n for n in range(5)] for at in edges[:-1])
    rows = [row for each in starts for row in loop(each, gathers, "while/body/_1/while")]
    rows += [("while/cond/_0/Less:Less", at, at) for at in edges]
    rows += [row for at in edges[:-1] for row in ops("while/body/_1/", UPDATES, at + 45, at + 49)]
    assert times(steps(in_graph(*rows))) == [50] * 5


def test_a_loop_over_a_recurrent_networks_time_is_inside_the_step() -> None:
    backward = (FORWARD, "MatMulGrad:MatMulGrad")
    inner = [
        row
        for start in EVERY_10[:-1]
        for row in loop([start + 1 + n for n in range(5)], (FORWARD,), "while/body/_1/lstm/while")
        + loop([start + 5 + n / 2 for n in range(5)], backward, "while/body/_1/gradient_tape/lstm/while")
    ]  # fmt: skip
    assert times(steps(in_graph(*loop(EVERY_10), *inner))) == [10] * 6


def test_a_loop_of_which_one_beginning_shows_has_no_whole_iteration() -> None:
    """Trap: what trains recurs in the only call, but of the earliest operation one event is left."""
    first = ops("", (f"gradient_tape/first:{GRADIENT.rpartition(':')[2]}", GRADIENT, *UPDATES), 1, 400)
    assert search(in_graph(*first, *ops("", (GRADIENT, *UPDATES), 500, 900))) == (StepSource.NONE, [])


def test_the_loop_goes_on_over_several_calls() -> None:
    begins = (0, 60, 120)
    python = [row for at in begins for row in call("five", at + 1, at, at + 55)]
    work = [row for at in begins for row in loop([at + 1 + 10 * i for i in range(6)])]
    work += [executor(at, at + 55, at + 1) for at in begins]
    found = steps(trace([line("python", *python), line("tf_Compute", *work)]))
    assert (found.count, found.median_ms) == (15, 10)


def test_a_program_of_xla_in_a_loop_counts_only_where_it_is_known_to_train() -> None:
    rows: list[Row] = [("while/cond/_0/Less:Less", at, at) for at in EVERY_10]
    rows += [("CpuExecutable::ExecuteAsyncOnStream", at + 1, at + 9) for at in EVERY_10[:-1]]
    with pytest.raises(Unavailable):
        steps(in_graph(*rows))
    found = steps(in_graph(*rows), steps=StepsSeen(source="graph-loop"))
    assert (found.source, times(found)) == ("graph-period", [10] * 6)


def test_a_marker_around_the_call_of_a_graphs_loop_is_no_step() -> None:
    python = line("p", marker(0, 0, 70), *call("train", 7, 0, 65))
    of = trace([python, line("tf_Compute", executor(0, 65, 7), *WHOLE)])
    assert times(steps(of, window=TracedWindow(source="graph-loop"))) == [10] * 6
    assert times(steps(of, steps=StepsSeen(source="keras-fit"))) == [70]
    with pytest.raises(Unavailable, match="does not separate its iterations"):
        steps(trace([python]), steps=StepsSeen(source="graph-loop"))


# `for x in dataset` in a graph


def dataset_loop(edges: list[float], iterator: int, names: tuple[str, ...], first: int) -> list[Thread]:
    """The body of a loop over a dataset, as its iterator calls it on threads of tf.data."""
    scan, body = [], []
    for run, (start, end) in enumerate(itertools.pairwise(edges), first):
        scan += [
            ("ReduceIterator::Root::Prefetch::Scan", start, end - 0.1, {"id": iterator}),
            ("InstantiatedCapturedFunction::Run", start + 1, end - 0.2, {"id": run}),
        ]
        body += [executor(start + 1, end - 0.3, run), *ops("", names, start + 1, end - 0.4)]
    return [line("tf_data_prefetch", *scan), line("tf_data_private_threadpool", *body)]


def test_a_loop_over_a_dataset_in_a_graph_is_told_by_its_iterator() -> None:
    training = dataset_loop(EVERY_10, 1, STEP, 100)
    validation = dataset_loop([100 + 3.0 * n for n in range(50)], 2, (FORWARD, ADDS[0]), 200)
    found = steps(trace([*training, *validation]))
    assert (found.source, found.count, found.median_ms) == ("graph-period", 6, 10)


def test_an_iteration_whose_operations_were_lost_is_still_one() -> None:
    training = dataset_loop(EVERY_10, 1, STEP, 100)
    body = line("tf_data_private_threadpool", *(row for row in training[1].rows if not 20 < row[1] < 30))
    assert times(steps(trace([training[0], body])))[:5] == [10] * 5


# Calls

FOUR = ((0, 8), (10, 18), (20, 28), (30, 38))


def test_calls_of_a_function_that_trains_are_steps_and_those_that_test_none() -> None:
    spans = [(float(at), at + 2.0) for at in range(100, 400, 3)]
    found = steps(trace(called(*FOUR)))
    assert (found.source, times(found)) == ("repeated-call", [10, 10, 10, 8])
    tests = called(*spans, names=(FORWARD, ADDS[0]), name="test", first=50)
    assert steps(trace([*called(*FOUR), *tests])).count == 4


def test_a_step_begins_with_the_request_for_its_batch() -> None:
    python, work = called((4, 8), (14, 18), (24, 28), (34, 38))
    requests: list[Row] = [("EagerLocalExecute: IteratorGetNext", at, at + 3) for at in (0, 10, 20, 30)]
    found = steps(trace([line("python", *python.rows, *requests), work]))
    assert [step.start_ps / PS for step in found.steps] == [0, 10, 20, 30]


def test_two_functions_that_take_turns_are_one_step() -> None:
    one = called(*((10.0 * n, 10.0 * n + 4) for n in range(5)), name="discriminator")
    other = called(*((10.0 * n + 5, 10.0 * n + 9) for n in range(5)), name="generator", first=50)
    both = [line(a.name, *a.rows, *b.rows) for a, b in zip(one, other, strict=True)]
    found = steps(trace(both))
    assert times(found)[:4] == [10] * 4
    assert found.steps[0].call_end_ps == 9 * PS


@each("SessionRun", "RunGraph")
def test_runs_of_a_session_that_apply_gradients_are_steps(root: str) -> None:
    names = ("MatMul:MatMul", "gradients/MatMul_grad/MatMul:MatMul", "Adam/ResourceApplyAdam:ResourceApplyAdam")
    runs: list[Row] = []
    work: list[Row] = []
    for run in range(1, 13):
        start = 10.0 * run
        runs.append((root, start, start + 8, {"id": run, "_r": 1}))
        work += [executor(start, start + 8, run), *ops("", names if run % 2 else names[:1], start + 1, start + 7)]
    found = steps(trace([line("python", *runs), line("tf_Compute", *work)]))
    assert (found.source, times(found)[:5]) == ("repeated-call", [20] * 5)


# Eager loops


def eager(*pieces: tuple[str, ...], each: float = 1.0) -> Trace:
    names = [name for piece in pieces for name in piece]
    rows = [(f"EagerLocalExecute: {n}", at * each, at * each + 0.5) for at, n in enumerate(names)]
    return trace([line("python", *rows)])


EAGER_STEP = ("MatMul", "MatMul", "Sub", "Sub", "ReluGrad", "MatMul", "AssignSubVariableOp", "AssignSubVariableOp")


@cases(
    ([("IteratorGetNext", *EAGER_STEP, "Mean")] * 6, 0, 10, 5),
    ([("IteratorGetNext", *EAGER_STEP)] * 6 + [("IteratorGetNext", "MatMul", "Mean")] * 30, 0, 9, 6),  # evaluates
    ([("Cast", *EAGER_STEP[:3], "Cast", *EAGER_STEP[3:])] * 6, 6, 10, 5),  # an operation twice a step
)
def test_eager_loops_have_a_sequence(pieces: list[tuple[str, ...]], start: float, ms: float, count: int) -> None:
    found = steps(eager(*pieces))
    assert (found.source, found.count, times(found)[:5]) == ("repeated-call", count, [ms] * 5)
    assert found.steps[0].start_ps == start * PS


# Recorded by TensorFlow 2.21; what is true was timed inside the loop, by the script itself


@cases(("dataset-in-a-graph", 9, 3.012), ("graph-loop-cut-off", 18, 2.354))
def test_recorded_loops(name: str, count: int, median_ms: float, tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(gzip.decompress((RECORDED / f"{name}.xplane.pb.gz").read_bytes()))
    found = steps(xplane.read(path))
    assert found.source == "graph-period"
    assert abs(found.count - count) <= 1
    assert found.median_ms == pytest.approx(median_ms, rel=0.05)


# Whatever is found is right


@st.composite
def noisy_loops(draw: st.DrawFn) -> tuple[list[float], Trace]:
    """A loop with uneven iterations, of which the trace lost the condition, some ends, some order."""
    lengths = draw(st.lists(st.integers(5, 30), min_size=4, max_size=24))
    edges = [0.0, *np.cumsum(lengths).astype(float).tolist()]
    random = Random(draw(st.integers(0, 1000)))
    rows: list[Row] = []
    for start, end in itertools.pairwise(edges):
        names = list(STEP[1:])
        random.shuffle(names)
        rows += ops("while/body/_1/", (FORWARD, *names), start + 0.1, end - 0.1)
    if draw(st.booleans()):
        rows += [("while/cond/_0/Less:Less", at, at) for at in edges]
    begin = draw(st.floats(0, edges[-1] / 3))
    end = draw(st.floats(edges[-1] / 2, edges[-1] + 1))
    cheap = draw(st.sets(st.sampled_from(STEP[2:]), max_size=4))
    rows = [
        row
        for row in rows
        if begin <= row[1] <= end and not any(row[0].endswith(name) and row[1] > 40 for name in cheap)
    ]
    validation = loop([500 + 2.0 * n for n in range(draw(st.integers(0, 30)))], (FORWARD,), "while_1")
    return [float(length) for length in lengths], in_graph(*rows, *validation, start=-1, end=900)


@given(noisy_loops())
def test_a_period_is_recovered_or_there_is_none(case: tuple[list[float], Trace]) -> None:
    lengths, of = case
    try:
        found = search(of)[1]
    except Unavailable:
        return
    spans = [(step.end_ps - step.start_ps) / PS for step in found[:-1]]
    starts = [step.start_ps / PS for step in found]
    assert len(found) <= len(lengths)
    for (one, other), span in zip(itertools.pairwise(starts), spans, strict=True):
        edges = np.cumsum([0, *lengths])
        assert np.searchsorted(edges, other, side="right") - np.searchsorted(edges, one, side="right") == 1
        assert span <= max(lengths) * 2


@given(st.lists(st.sampled_from(EAGER_STEP), min_size=1, max_size=60))
def test_a_random_sequence_has_no_steps_that_do_not_repeat(names: list[str]) -> None:
    try:
        found = search(eager(tuple(names)))[1]
    except Unavailable:
        return
    pieces = [tuple(names[round(a.start_ps / PS) : round(a.end_ps / PS)]) for a in found]
    assert not found or max(pieces.count(piece) for piece in pieces) >= 0.9 * len(pieces)


# Which of XLA's programs is the training step.

TRAINS = {"tf_op": "jit(f)/transpose(jvp(dense))/dot_general:", "hlo_category": "convolution fusion"}
APPLIES = {"tf_op": "jit(f)/adam/sub:", "hlo_category": "loop fusion"}
LOGS = {"tf_op": "jit(f)/reduce_sum:", "hlo_category": "loop fusion"}


def rhythm(
    name: str, starts: list[float], *, gradients: bool = True, trains: bool = True, each: float = 1.0
) -> TimedProgram:
    begin = np.array([round(s * PS) for s in starts], np.int64)
    return TimedProgram(name, begin, begin + round(each * PS), gradients, trains)


def every(count: int, each: float, first: float = 0.0) -> list[float]:
    return [first + n * each for n in range(count)]


def update(starts: list[float]) -> TimedProgram:
    return rhythm("apply_update", starts, gradients=False)


def log(starts: list[float]) -> TimedProgram:
    return rhythm("log", starts, gradients=False)


TEN = every(10, 10)


@cases(
    ([log(every(50, 2)), rhythm("train", TEN)], "train", 10, 10.0),  # takes gradients
    ([rhythm("grads", TEN, trains=False), update(every(10, 10, 5))], "apply_update", 10, 10.0),  # in turn
    ([rhythm("grads", every(40, 10), trains=False), update(every(10, 40, 35))], "apply_update", 10, 40.0),
    ([rhythm("train", every(40, 10)), log(every(10, 40, 35))], "train", 40, 10.0),  # a log every few steps
    ([rhythm("generator", TEN, each=4), rhythm("critic", every(10, 10, 5))], "generator", 10, 10.0),
    ids=["gradients", "in turn", "accumulated", "a log", "two that train"],
)
def test_which_program_is_the_step(programs: list[TimedProgram], name: str, count: int, first_ms: float) -> None:
    found, steps = compiled_steps(programs, "run")
    assert (found, len(steps)) == (name, count)
    assert {step.total_ms for step in steps[:-1]} == {first_ms}


test_the_names_of_backward_passes = Names(__file__, "names").test(
    {"names of backward passes": lambda name: takes_gradients([name])}
)


@cases(
    ("f", [], True, True),
    ("train_step", [], False, True),
    ("f", ["jit(f)/adam/sub"], False, True),
    ("f", ["adam/AssignSubVariableOp:AssignSubVariableOp"], False, True),
    ("loss_fn", ["jit(loss_fn)/sub"], False, False),
)
def test_what_changes_weights(module: str, names: list[str], *, donates: bool, expected: bool) -> None:
    assert changes_weights(module, names, donates=donates) is expected


def tpu(*modules: tuple[str, float, float], category: dict[str, Stats]) -> Machine:
    """A core whose programs each run one operation from start to end."""
    runs = [(f"jit_{name}({number_of(name)})", start, end) for name, start, end in modules]
    ops = [(f"%{name} = f32[8,128] fusion()", start, end) for name, start, end in modules]
    kinds = {
        f"%{name} = f32[8,128] fusion()": {**category[name], "program_id": number_of(name)}
        for name, _, _ in modules
    }
    return device(line("XLA Modules", *runs), line("XLA Ops", *ops), kinds=kinds)


def number_of(name: str) -> int:
    return sum(name.encode())


def test_runs_on_a_tpu_that_nobody_marked() -> None:
    rows = [("f", n * 10.0, n * 10.0 + 8) for n in range(6)]
    rows += [("log", n * 10.0 + 8, n * 10.0 + 9) for n in range(6)]
    core = tpu(*rows, category={"f": {**TRAINS}, "log": LOGS})
    calls = line("python", ("PjitFunction(train_f)", 0, 1))
    with pytest.raises(Unavailable, match="changes weights"):
        chart(trace([calls], tpus=[core])).fact(Steps)
    core = tpu(*[("train", a, b) for _, a, b in rows[:6]], *rows[6:], category={"train": TRAINS, "log": LOGS})
    steps = chart(trace([calls], tpus=[core])).fact(Steps)
    assert (steps.source, steps.program, steps.count) == ("module-runs", "jit_train", 6)
    assert steps.median_ms == pytest.approx(10.0)


TIMED_MS = {
    "jax-h100-convnet-float32": 8.79,
    "jax-h100-convnet-bfloat16": 3.89,
    "jax-h100-mlp-bfloat16-4001": 17.34,
}


def charted(name: str, folder: Path) -> Chart:
    data = gzip.decompress((RECORDED / f"{name}.xplane.pb.gz").read_bytes())
    (folder / "host.xplane.pb").write_bytes(data)
    opened = Recording.open(folder)
    return Chart([xplane.read(opened.traces[0]), opened])


@pytest.mark.parametrize("name", TIMED_MS)
def test_a_host_that_runs_ahead_leaves_the_runs_on_the_gpu_as_steps(name: str, tmp_path: Path) -> None:
    facts = charted(name, tmp_path)
    steps, parts = facts.fact(Steps), facts.fact(Breakdown)
    assert (steps.source, steps.program, steps.count) == (StepSource.XLA_RUNS, "train_step", 12)
    assert steps.median_ms == pytest.approx(TIMED_MS[name], rel=0.03)
    assert parts["device"] > 0.95 * parts.step_ms


def test_kernels_that_no_run_has_exactly_once_mark_no_step() -> None:
    host = line("python", *marked(6, 1, 0.9, "train"), *calls(6, 1, 0.5))
    with pytest.raises(Unavailable, match="ran ahead of the device"):
        chart(trace([host], gpus=[gpu_work(6, 10)])).fact(Steps)


SHUFFLED = [tuple(Random(n).sample(EAGER_STEP, len(EAGER_STEP))) for n in range(20)]
SHORT = loop([0, 10, 20, 30])

test_what_leaves_a_doubt_is_no_answer = unavailable(
    (
        lambda: steps(in_graph(*WHOLE, *loop([100 + 9.0 * n for n in range(7)], frame="while_1"))),
        "`while` of `train` .*`while_1`.* ambiguous",
    ),
    (lambda: steps(in_graph(*SHORT)), "only 3 whole iterations"),
    (lambda: steps(eager(*SHUFFLED)), ""),
    # programs, one after the other
    (lambda: compiled_steps([rhythm("a", TEN), rhythm("b", every(9, 10, 200))], "run"), "both compute gradients"),
    (
        lambda: compiled_steps([rhythm("loss", TEN, trains=False)], "run"),
        "the trace does not show that it changes weights",
    ),
    (lambda: compiled_steps([rhythm("train", every(3, 10))], "run"), "only three runs"),
)
