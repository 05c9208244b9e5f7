"""Steps that nobody marked: loops inside graphs, repeated calls, eager loops; or no answer."""

from random import Random

from tests.facts.kit import *
from tests.facts.test_jax import calls, gpu_work, marked
from tfdoctor.facts.steps.search import search

FORWARD, GRADIENT = "net/MatMul:MatMul", "gradient_tape/net/MatMul:MatMul"
UPDATES = tuple(f"adam/AssignSubVariableOp_{n}:AssignSubVariableOp" for n in range(4))
ADDS = tuple(f"AssignAddVariableOp_{n}:AssignAddVariableOp" for n in range(4))
STEP = (FORWARD, GRADIENT, *UPDATES)
told = Told()


def ops(prefix: str, names: tuple[str, ...], start: float, end: float) -> list[Row]:
    """Operations one after the other, evenly in a span."""
    edges = np.linspace(start, end, len(names) + 1)
    return [(prefix + name, a, b) for name, (a, b) in zip(names, pairwise(edges), strict=True)]


def condition(frame: str, edges: Iterable[float]) -> list[Row]:
    return [(f"{frame}/Less:Less", at, at) for at in edges]


def loop(edges: list[float], names: tuple[str, ...] = STEP, frame: str = "while") -> list[Row]:
    """A loop as lowering leaves it: the condition before each iteration and at the end."""
    rows = condition(f"{frame}/cond/_0", edges)
    for start, end in pairwise(edges):
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
    return in_threads(rows, start=start, end=end)


def in_threads(*threads: Iterable[Row], start: float = 0, end: float = 1000) -> Trace:
    python = line("python", *call("train", 7, start, end))
    return trace([python, *(line("tf_Compute", executor(start, end, 7), *rows) for rows in threads)])


def called(*spans: Any, names: tuple[str, ...] = STEP, name: str = "step", first: int = 1) -> list[Thread]:
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


def said(of: Trace, **beside: object) -> object:
    """Where steps are from, when the first begins and its call ends, and how many of them take so many ms."""
    found = steps(of, **beside)
    times = groupby(round(step.total_ms, 3) for step in found.steps)
    first = found.steps[0].start_ps / PS, found.steps[0].call_end_ps / PS
    return {"source": found.source, "first": first, "steps": [f"{len([*same])} of {ms:g}" for ms, same in times]}


EVERY_10 = [10.0 * n for n in range(7)]

# Loops inside a graph

WHOLE = loop(EVERY_10)
UNCONDITIONED = [row for row in WHOLE if "/cond/" not in row[0]]
NO_UPDATES = [row for row in WHOLE if "Assign" not in row[0] and ("cond" not in row[0] or row[1] < 20)]
VALIDATES = loop([100 + 2 * n for n in range(300)], (FORWARD, ADDS[0]), "while_1")
EPOCHS = [
    *condition("while/cond/_8", (0.0, 100.0, 200.0)),
    *(("while/body/_9/AssignAddVariableOp:AssignAddVariableOp", at, at) for at in (99.0, 199.0)),
    *(row for at in (1, 101) for row in loop([at + 15.0 * n for n in range(6)], frame="while/body/_9/while")),
]
FIFTY = [50.0 * n for n in range(6)]
GATHERED = [
    *condition("while/cond/_0", FIFTY),
    *(
        row
        for at in FIFTY[:-1]
        for row in (
            *loop([at + 1 + 10 * n for n in range(5)], (FORWARD, GRADIENT, *ADDS), "while/body/_1/while"),
            *ops("while/body/_1/", UPDATES, at + 45, at + 49),
        )
    ),
]
BACKWARD = (FORWARD, "MatMulGrad:MatMulGrad")
RECURRENT = [
    row
    for at in EVERY_10[:-1]
    for row in loop([at + 1 + n for n in range(5)], (FORWARD,), "while/body/_1/lstm/while")
    + loop([at + 5 + n / 2 for n in range(5)], BACKWARD, "while/body/_1/gradient_tape/lstm/while")
]
COMPILED = condition("while/cond/_0", EVERY_10)
COMPILED += [("CpuExecutable::ExecuteAsyncOnStream", at + 1, at + 9) for at in EVERY_10[:-1]]

told[lambda *rows: said(in_graph(*rows))] = {
    "iterations of a loop in a graph, uneven": loop([0, 10, 20, 35, 45, 55]),
    "cut off by the window": [row for row in WHOLE if 3 < row[1] < 57],
    "without the condition told by what trains": UNCONDITIONED,
    "or by the condition where that vanished from the trace": NO_UPDATES,
    "a loop that validates is none": [*WHOLE, *VALIDATES],
    "of two the longer loop": [*WHOLE, *loop([100 + 9.0 * n for n in range(40)], frame="while_1")],
    "an epochs loop around the steps is none": EPOCHS,
    "gradients are gathered inside the step": GATHERED,
    "a loop over a recurrent networks time is inside the step": [*WHOLE, *RECURRENT],
}


def overlapping(late: float) -> object:
    """Iterations whose updates run beside the next ones are told by one operation."""
    edges = [0.0, 10, 20, 35, 45, 55]
    ahead = [row for at in edges for row in ops("while/body/_1/", (FORWARD, GRADIENT), at + 1, at + 3)]
    behind = [row for at in edges for row in ops("while/body/_1/", UPDATES, at + late, at + late + 2)]
    return said(in_threads(ahead, behind))


told[overlapping] = {f"updates that are {late} ms late": late for late in (4, 11, 25)}


@told
def the_loop_goes_on_over_several_calls() -> object:
    begins = (0, 60, 120)
    python = [row for at in begins for row in call("five", at + 1, at, at + 55)]
    work = [row for at in begins for row in loop([at + 1 + 10 * i for i in range(6)])]
    work += [executor(at, at + 55, at + 1) for at in begins]
    return said(trace([line("python", *python), line("tf_Compute", *work)]))


AROUND = line("p", marker(0, 0, 70), *call("train", 7, 0, 65))
MARKED = trace([AROUND, line("tf_Compute", executor(0, 65, 7), *WHOLE)])
ENDED = line("p", *call("train", 7, 0, 99), ("tfdoctor_end", 90, 90))
IN_GRAPH = StepsSeen(source="graph-loop")
# Trap: what trains recurs in the only call, but of the earliest operation one event is left.
ONE_BEGINNING = ops("", (f"gradient_tape/first:{GRADIENT.rpartition(':')[2]}", GRADIENT, *UPDATES), 1, 400)
ONE_BEGINNING += ops("", (GRADIENT, *UPDATES), 500, 900)

told[answer] = {
    "the end of a window by time ends no step": lambda: said(trace([ENDED, line("t", executor(0, 99, 7), *WHOLE)])),
    "a program of XLA counts where it is known to train": lambda: said(in_graph(*COMPILED), steps=IN_GRAPH),
    "a marker around a graphs loop is no step": lambda: said(MARKED, window=TracedWindow(source="graph-loop")),
    "around what Keras runs it is": lambda: said(MARKED, steps=StepsSeen(source="keras-fit")),
    "a loop of which one beginning shows": lambda: search(in_graph(*ONE_BEGINNING)),
}


# `for x in dataset` in a graph


def dataset_loop(edges: list[float], iterator: int, names: tuple[str, ...], first: int) -> list[Thread]:
    """The body of a loop over a dataset, as its iterator calls it on threads of tf.data."""
    scan, body = [], []
    for run, (start, end) in enumerate(pairwise(edges), first):
        scan += [
            ("ReduceIterator::Root::Prefetch::Scan", start, end - 0.1, {"id": iterator}),
            ("InstantiatedCapturedFunction::Run", start + 1, end - 0.2, {"id": run}),
        ]
        body += [executor(start + 1, end - 0.3, run), *ops("", names, start + 1, end - 0.4)]
    return [line("tf_data_prefetch", *scan), line("tf_data_private_threadpool", *body)]


TRAINING = dataset_loop(EVERY_10, 1, STEP, 100)
VALIDATION = dataset_loop([100 + 3.0 * n for n in range(50)], 2, (FORWARD, ADDS[0]), 200)
LOST = line("tf_data_private_threadpool", *(row for row in TRAINING[1].rows if not 20 < row[1] < 30))
FOUR = ((0, 8), (10, 18), (20, 28), (30, 38))
TESTED = [(float(at), at + 2.0) for at in range(100, 400, 3)]
TESTS = called(*TESTED, names=(FORWARD, ADDS[0]), name="test", first=50)
REQUESTS = [("EagerLocalExecute: IteratorGetNext", at, at + 3) for at in (0, 10, 20, 30)]
ASKING, WORKING = called((4, 8), (14, 18), (24, 28), (34, 38))
CRITIC = called(*((10.0 * n, 10.0 * n + 4) for n in range(5)), name="discriminator")
GENERATOR = called(*((10.0 * n + 5, 10.0 * n + 9) for n in range(5)), name="generator", first=50)

told[lambda *threads: said(trace(threads))] = {
    "a loop over a dataset in a graph is told by its iterator": [*TRAINING, *VALIDATION],
    "an iteration whose operations were lost is still one": (TRAINING[0], LOST),
    "calls of a function that trains are steps": called(*FOUR),
    "and those that test none": [*called(*FOUR), *TESTS],
    "a step begins with the request for its batch": (line("python", *ASKING.rows, *REQUESTS), WORKING),
    "two functions that take turns are one step": [
        line(a.name, *a.rows, *b.rows) for a, b in zip(CRITIC, GENERATOR, strict=True)
    ],
}


def sessions(root: str) -> object:
    """Every second run of a session applies gradients."""
    names = ("MatMul:MatMul", "gradients/MatMul_grad/MatMul:MatMul", "Adam/ResourceApplyAdam:ResourceApplyAdam")
    runs: list[Row] = []
    work: list[Row] = []
    for run in range(1, 13):
        start = 10.0 * run
        runs.append((root, start, start + 8, {"id": run, "_r": 1}))
        work += [executor(start, start + 8, run), *ops("", names if run % 2 else names[:1], start + 1, start + 7)]
    return said(trace([line("python", *runs), line("tf_Compute", *work)]))


told[sessions] = {f"{root}s that apply gradients are steps": root for root in ("SessionRun", "RunGraph")}


# Eager loops


def eager(*pieces: tuple[str, ...]) -> Trace:
    names = [name for piece in pieces for name in piece]
    return trace([line("python", *((f"EagerLocalExecute: {n}", at, at + 0.5) for at, n in enumerate(names)))])


EAGER_STEP = ("MatMul", "MatMul", "Sub", "Sub", "ReluGrad", "MatMul", "AssignSubVariableOp", "AssignSubVariableOp")

told[lambda *pieces: said(eager(*pieces))] = {
    "an eager loop has a sequence": [("IteratorGetNext", *EAGER_STEP, "Mean")] * 6,
    "one that evaluates, too": [("IteratorGetNext", *EAGER_STEP)] * 6
    + [("IteratorGetNext", "MatMul", "Mean")] * 30,
    "an operation twice a step": [("Cast", *EAGER_STEP[:3], "Cast", *EAGER_STEP[3:])] * 6,
}

test_search = told.test("search")


# Recorded by TensorFlow 2.21; what is true was timed inside the loop, by the script itself


@cases(("dataset-in-a-graph", 9, 3.012), ("graph-loop-cut-off", 18, 2.354))
def test_recorded_loops(name: str, count: int, median_ms: float) -> None:
    found = recorded_trace(name).fact(Steps)
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
    for start, end in pairwise(edges):
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
    for (one, other), span in zip(pairwise(starts), spans, strict=True):
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
) -> Any:
    begin = np.array([round(s * PS) for s in starts], np.int64)
    return TimedProgram(name, begin, begin + round(each * PS), gradients, trains)


def every(count: int, each: float, first: float = 0.0) -> list[float]:
    return [first + n * each for n in range(count)]


update, log = (partial(rhythm, name, gradients=False) for name in ("apply_update", "log"))
TEN = every(10, 10)


def compiled(*programs: TimedProgram) -> object:
    found, steps = compiled_steps([*programs], "run")
    return found, len(steps), {step.total_ms for step in steps[:-1]}


test_which_program_is_the_step = answers(
    compiled,
    (log(every(50, 2)), rhythm("train", TEN), ("train", 10, {10.0})),  # takes gradients
    (rhythm("grads", TEN, trains=False), update(every(10, 10, 5)), ("apply_update", 10, {10.0})),  # in turn
    (rhythm("grads", every(40, 10), trains=False), update(every(10, 40, 35)), ("apply_update", 10, {40.0})),
    (rhythm("train", every(40, 10)), log(every(10, 40, 35)), ("train", 40, {10.0})),  # a log every few steps
    (rhythm("generator", TEN, each=4), rhythm("critic", every(10, 10, 5)), ("generator", 10, {10.0})),
)

test_the_names_of_backward_passes = Names(__file__, "names").test(lambda name: takes_gradients([name]))

test_what_changes_weights = answers(
    lambda module, donates, *names: changes_weights(module, [*names], donates=donates),
    ("f", True, True),
    ("train_step", False, True),
    ("f", False, "jit(f)/adam/sub", True),
    ("f", False, "adam/AssignSubVariableOp:AssignSubVariableOp", True),
    ("loss_fn", False, "jit(loss_fn)/sub", False),
)


def unmarked(name: str) -> Steps:
    """Runs on a TPU of a program, and of one that logs, that nobody marked; each has one operation."""
    modules: list[Row] = []
    kinds = {name: {**TRAINS, "program_id": 7}, "log": {**LOGS, "program_id": 8}}
    for one, begin, end in ((name, 0.0, 8.0), ("log", 8.0, 9.0)):
        title = f"jit_{one}({kinds[one]['program_id']})"
        modules += [(title, n * 10.0 + begin, n * 10.0 + end) for n in range(6)]
    ops = line("XLA Ops", *((title[4:-3], *span) for title, *span in modules))
    core = device(line("XLA Modules", *modules), ops, kinds=kinds)
    return chart(trace([line("python", ("PjitFunction(train_f)", 0, 1))], tpus=[core])).fact(Steps)


def test_runs_on_a_tpu_that_nobody_marked() -> None:
    steps = unmarked("train")
    assert (steps.source, steps.program, steps.count) == ("module-runs", "jit_train", 6)
    assert steps.median_ms == pytest.approx(10.0)


@each("convnet-float32", "convnet-bfloat16", "mlp-bfloat16-4001")
def test_a_host_that_runs_ahead_leaves_the_runs_on_the_gpu_as_steps(name: str) -> None:
    steps, parts = h100(name).fact(Steps), h100(name).fact(Breakdown)
    assert (steps.source, steps.program, steps.count) == (StepSource.XLA_RUNS, "train_step", 12)
    assert steps.median_ms == pytest.approx(TIMED_MS[name], rel=0.03)
    assert parts["device"] > 0.95 * parts.step_ms


SHUFFLED = [tuple(Random(n).sample(EAGER_STEP, len(EAGER_STEP))) for n in range(20)]
AHEAD = line("python", *marked(6, 1, 0.9, "train"), *calls(6, 1, 0.5))

test_what_leaves_a_doubt_is_no_answer = unavailable(
    (
        lambda: steps(in_graph(*WHOLE, *loop([100 + 9.0 * n for n in range(7)], frame="while_1"))),
        "`while` of `train` .*`while_1`.* ambiguous",
    ),
    (lambda: steps(in_graph(*loop([0, 10, 20, 30]))), "only 3 whole iterations"),
    (lambda: steps(eager(*SHUFFLED)), ""),
    (lambda: steps(in_graph(*COMPILED)), ""),
    (lambda: steps(trace([AROUND]), steps=IN_GRAPH), "does not separate its iterations"),
    # kernels that no run has exactly once mark no step
    (lambda: chart(trace([AHEAD], gpus=[gpu_work(6, 10)])).fact(Steps), "ran ahead of the device"),
    (lambda: unmarked("f"), "changes weights"),
    # programs, one after the other
    (lambda: compiled(rhythm("a", TEN), rhythm("b", every(9, 10, 200))), "both compute gradients"),
    (lambda: compiled(rhythm("loss", TEN, trains=False)), "the trace does not show that it changes weights"),
    (lambda: compiled(rhythm("train", every(3, 10))), "only three runs"),
)
