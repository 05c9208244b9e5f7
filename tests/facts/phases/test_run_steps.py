"""All training steps of a run: how long they took, and which of them the traced window is like."""

from collections import Counter

from tests.facts.kit import *
from tests.run_logs import *
from tfdoctor.facts.phases.run_pieces import RunPiece, Stretch, alike
from tfdoctor.recording.run_log import SeenStack

LOOP = "train.py:12"
NO_PHASES = RunPhases(total_ms=0.0, times={})
told = Told()


def of(*loops: tuple[int, float] | tuple[int, float, bool]) -> Run:
    """So many steps of so many ms, traced or not, one loop after the other."""
    return made(*(steps(count, ms, LOOP, traced=bool(traced)) for count, ms, *traced in loops))


def measured(run: Run, log: RunLog | None = None, **told: Any) -> RunSteps:
    given = run.recording(**told)
    return RunSteps.measure(replace(given, run=log or given.run), None, None, None, NO_PHASES)


def short() -> Run:
    return made(during(RunCall.PREDICT, 1.0, "p.py:3", "Model.predict"))


MAIN = steps(300, 4.0, LOOP, between_ms=1.0), steps(100, 9.0, LOOP, between_ms=1.0)
MIXED, TRACED_MIXED = 10 * ((2, 5.0), (1, 800.0)), ((2, 5.0, True), (3, 800.0, True))
TOY = steps(20, 2.0, "toy.py:3", traced=True)

told[measured] = {
    "all steps of the main loop are added up": made(steps(30, 2.0, "pretrain.py:3"), *MAIN),
    "the window stands for steps like the traced ones": of((200, 5.0), (200, 5.0, True), (100, 20.0)),
    "only the profiler slows the traced steps": of((400, 5.0), (100, 12.0, True), (400, 5.0)),
    # XLA compiles for every second shape: the median says whether more than half of them were compiled.
    "a window of slow and fast steps stands for both": of(*MIXED, *10 * TRACED_MIXED, *MIXED, (10, 100.0)),
    "without traced steps there is no share of the window": of((200, 5.0)),
    # A regression: a fit of toy data was traced, and the report said nothing of the steps that took the time.
    "traced steps of another loop stand for little": made(TOY, steps(90, 1e3, LOOP)),
    "no step is trained": short(),
}


def changed(log: RunLog, change: Callable[[BucketSteps], BucketSteps]) -> RunLog:
    return replace(log, buckets=tuple(replace(b, steps=tuple(map(change, b.steps))) for b in log.buckets))


def binned(steps: BucketSteps) -> BucketSteps:
    """Count steps by bins instead of telling each one."""
    bins = Counter(str(int(math.log(ms * 1000) / math.log(1.02))) for ms in steps.each)
    return replace(steps, each=(), bins=dict(bins))


TIMED = StepsSeen(untraced=UntracedSteps(200, 5.0, "steps", traced_ms=5.5))

told[lambda change, run: measured(run, changed(run.log(), change))] = {
    # Trap: ten calls of 200 steps were "each of ten training steps".
    "calls that run a loop of steps are no steps": (partial(replace, source=StepSource.GRAPH_LOOP), of((10, 11.0))),
    "bins give the quantiles to two percent": (binned, of((300, 5.0), (100, 10.0))),
    "steps that were only counted weigh as many": (binned, of((400, 5.0), (100, 10.0, True))),
    "a call of several steps is counted as several": (
        lambda one: replace(one, steps=10 * one.calls),
        of((100, 50.0)),
    ),
}
told.add("what the agent timed", lambda: measured(of((200, 5.0), (100, 5.0, True)), steps=TIMED).traced_ms)


def long(number: int, ms: float = 15.0, *, first: bool = False) -> LongStep:
    return LongStep(number, number * 0.005, ms, 5.0, first)


told[long_steps] = {
    "long steps say what they cost": ([long(0, 100.0, first=True), long(7), long(50, 45.0, first=True)],),
    "without long steps there is nothing to say": ([],),
}
told[lambda *numbers: sure(long_steps([long(0, first=True), *map(long, numbers)])).every] = {
    "long steps at equal distances have a period": (99, 199, 299, 399),
    "a few at other distances do not hide it": (99, 200, 299, 400, 499),
    "three are too few for a period": (99, 199, 299),
    "long steps anywhere have none": (3, 50, 61, 200, 277, 300),
    "where all steps are long there is none": (10, 11, 12, 13, 14),
}


@told
def the_long_steps_of_bursts_are_no_long_steps() -> object:
    """Steps of 2 and 150 ms in turn: all are like the traced ones, and one of 400 ms is long."""
    run = of(*((1, 2.0 if number % 2 else 150.0, number < 20) for number in range(40)))
    edges = list(pairwise([0, *(int(PS * at) for n in range(10) for at in (152 * n + 150, 152 * n + 152))]))
    steps = Steps.of(Step(n, a, b, b) for n, (a, b) in enumerate(edges))
    bursts = steps.paying(Intervals([(a, b) for a, b in edges if b - a > 9 * PS]), None)
    told = LongStep(20, 1.0, 150.0, 2.0), LongStep(30, 2.0, 400.0, 2.0)
    given = replace(run.recording(), run=replace(run.log(), long_steps=told))
    return {
        "in bursts": bursts.in_bursts,
        **fields(RunSteps.measure(given, bursts, None, None, NO_PHASES), "window_share long"),
    }


def waits(**parts: float) -> object:
    """200 steps of 5 ms that were traced, and 20 of 50 ms, in which the stack is at the call that trains."""
    run = of((200, 5.0, True), (20, 50.0))
    told = tuple(long(200 + number, 50.0) for number in range(20))
    given = replace(run.recording(), run=replace(run.log(), long_steps=told))
    at = LongLine(at=Location("train.py", 9), ms=800.0, samples=16, trains=True)
    other = LongLine(at=Location("train.py", 3), ms=200.0, samples=4)
    found = RunSteps.measure(given, None, Breakdown.of(**parts), RunLongLines((at, other)), NO_PHASES)
    return fields(found, "wait_longer window_share")


told.add("long steps are like traced ones that wait as well", lambda: waits(input=3.0, device=2.0))
told.add("not like those that compute longer than they wait", lambda: waits(input=2.0, device=3.0))
told.add("nor like those that do not wait", lambda: waits(device=5.0))

SAVES = SeenStack(1, at=("train.py", 30), calls="keras.Model.save", work=RunWork.SAVING, long=True)
AGAIN = replace(SAVES, id=2, runs="h5py.File")
USUAL = SeenStack(3, at=("train.py", 31))


def lines(*buckets: Bucket) -> RunLongLines:
    log = RunLog(RunProcess(), {}, {one.id: one for one in (SAVES, AGAIN, USUAL)}, buckets)
    return RunLongLines.measure(replace(recording(), run=log))


@told
def samples_of_a_line_add_up_over_stacks_and_buckets() -> object:
    found = lines(
        Bucket(0, 1, stacks={"1": 200.0, "3": 700.0}, samples={"1": 4, "3": 14}),
        Bucket(1, 2, stacks={"1": 50.0, "2": 100.0}, samples={"1": 1, "2": 2}),
    )
    (line,) = found.lines
    sure = (line.sure, replace(line, samples=4).sure, replace(line, at=None).sure)
    return {"lines": found.lines, "ms": found.ms, "sure, of fewer samples, without a line": sure}


def of_fit(work: RunWork) -> object:
    fit = CallPlace(0, RunCall.FIT, ("train.py", 9), "Model.fit")
    seen = SeenStack(1, at=("train.py", 9), calls="keras.Model.fit", work=work, long=True)
    bucket = Bucket(0, 1, stacks={"1": 400.0}, samples={"1": 8})
    log = RunLog(RunProcess(), {0: fit}, {1: seen}, (bucket,))
    return [(line, line.sure) for line in RunLongLines.measure(replace(recording(), run=log)).lines]


told[of_fit] = {
    "the call that trains is no cause": RunWork.OTHER,
    "nor is the model that it calls": RunWork.MODEL,
    "but a checkpoint of fits is": RunWork.SAVING,
    "and its input is": RunWork.INPUT,
}


# The calls of a run by the line that makes them.


def only(run: Run, kind: RunCall) -> MadeCall:
    (found,) = RunCalls.measure(run.recording()).of(kind)
    return found


PREDICTS = {"examples": 1, "steps": 1, "model": 0}


def predicts(times: int) -> Run:
    def call(*acts: Act) -> Act:
        return within(RunCall.PREDICT, "p.py:7", "Model.predict", *acts, python(0.1, "p.py:7"), **PREDICTS)

    return made(call(traces(0.5, "p.py:7", "predict_function")), *(times - 1) * [call()])


CALLED = [
    within(RunCall.EVALUATE, "p.py:7", "evaluate", python(0.5, "p.py:7", caller=f"p.py:{line}"))
    for line in (10, 20, 30)
]

told[lambda number: only(predicts(number), RunCall.PREDICT)] = {
    "three calls of a line, one row without what they trace, are made by a loop": 3,
    "two calls of a line are not": 2,
    "nor is one": 1,
}
told.add("a function called from several lines is no loop", lambda: only(made(*CALLED), RunCall.EVALUATE))


def fits(epochs: int) -> Run:
    each = steps(200, 5.0, "t.py:5"), during(RunCall.EVALUATE, 0.4, "t.py:5", "Model.evaluate")
    return made(
        during(RunCall.EVALUATE, 0.6, "t.py:2", "Model.evaluate"),
        fit("t.py:5", *(epoch("t.py:5", *each) for _ in range(epochs))),
        during(RunCall.PREDICT, 0.6, "t.py:9", "Model.predict"),
    )


SETTINGS = ProgramRecord(run=RunSettings(epochs=90, steps_per_epoch=40))
PASS = steps(100, 4.0, "t.py:8"), pass_over, python(0.3, "t.py:10")
EPOCHS = "fits epochs planned_epochs epoch_steps"

told.add("validation is told from evaluation by what is around it", lambda: RunCalls.measure(fits(4).recording()))
told[lambda run, program=None: fields(RunCalls.measure(replace(run.recording(), program=program)), EPOCHS)] = {
    "epochs are counted": fits(4),
    "the only fit plans the epochs": (fits(4), SETTINGS),
    "one of several fits plans none": (made(during(RunCall.FIT, 1.0, "t.py:30", "fit"), to=fits(2)), SETTINGS),
    "passes of a loop of ones own are epochs": made(*5 * PASS),
}

told[lambda *acts: {one.call for one in RunCalls.measure(made(*acts, to=fits(2)).recording()).calls}] = {
    "parts of loops are no calls": (traces(1.0, "t.py:20", "step", trains=True), steps(10, 4.0, "t.py:20"))
}

told.add("no line is known where no step takes long", lambda: lines(Bucket(0, 1, {}, {}, {"3": 700.0}, {"3": 14})))
told.add("a run that is too short has no growth", lambda: growth(short()))
told.add("without a log no steps are known", lambda: RunSteps.measure(recording(), None, None, None, NO_PHASES))
told[lambda kind: kind.measure(recording())] = {
    "nor long lines": RunLongLines,
    "nor calls": RunCalls,
    "nor traces": RunTraces,
    "nor growth": RunGrowth,
}

FITS = fit("t.py:5", epoch("t.py:5", steps(200, 5.0, "t.py:5")))
HAND_MADE = traces(1.0, "t.py:20", "step", trains=True), steps(400, 5.0, "t.py:20"), python(3.0, "t.py:30")

told[
    lambda ms, *acts: only(
        made(*acts, *4 * (during(RunCall.PREDICT, ms, "t.py:9", "Model.predict"),)), RunCall.PREDICT
    )
] = {
    "calls in the last bucket of fit come after training": (0.01, FITS),
    "calls after a loop of ones own come after training": (0.5, *HAND_MADE),
}


@told
def new_function_objects_of_a_line_are_one_function() -> object:
    """The calls of the training one are steps as well."""
    run = Run()
    for number in range(4):
        with run.fit("train.py:9"), run.epoch("train.py:9"):
            run.trace(1.0 if number else 2.0, "train.py:9", "step", trains=True, made=2 * number)
            run.steps(50, 4.0, "train.py:9")
            with run.call(RunCall.EVALUATE, "train.py:9", "Model.evaluate"):
                run.trace(0.5, "train.py:9", "step", made=2 * number + 1)
    found = RunTraces.measure(run.recording()).functions
    return [{**dict(stated(one)), "again_ms": one.again_ms} for one in found]


@told
def graphs_of_as_many_operations_and_weights_are_the_same_graph() -> object:
    graphs = enumerate([(318, 192), (318, 192), (318, 768), (0, 0), (0, 0)])
    return functions(*(FunctionTrace("step", None, float(n), 500.0, n, 0, *graph) for n, graph in graphs)).functions


def functions(*traces: FunctionTrace) -> RunTraces:
    run = Run()
    run.traces += traces
    run.python(9.0, "tune.py:7")
    return RunTraces.measure(run.recording())


def changing(*made: dict[str, str]) -> tuple[ChangingNumber, ...]:
    """Return what is told of a function that is traced with these values of its parameters."""
    found = []
    for number, values in enumerate(made):
        lines = {"lr": ("/job/tune.py", 61)}
        numbers = tuple(TracedNumber(name, value, lines.get(name)) for name, value in values.items())
        trace = FunctionTrace("step", None, float(number), 500.0, 0, numbers=numbers)
        found.append(replace(trace, defined=("/job/tune.py", 36)))
    (one,) = functions(*found).functions
    assert one.defined == Location("tune.py", 36)
    return one.numbers


RATES = [f"0.{number}" for number in range(1, 8)]
LR = ChangingNumber("lr", tuple(RATES), Location("tune.py", 61))


@cases(
    ([{"lr": rate, "kind": "'a'"} for rate in RATES], (LR,)),
    ([{"lr": rate} for rate in RATES for _ in range(2)], (LR,)),  # each for two shapes
    ([{"lr": rate} for rate in ("0.1", "0.2") for _ in range(4)], ()),  # most have the old values
    ([{"lr": "0.1"}] * 8, ()),
    ([{}] * 30 + [{"lr": rate} for rate in RATES], ()),
    ([{"training": truth} for truth in ("True", "False")], ()),  # a truth value is no cause
    ([{"training": truth, "lr": rate} for rate in RATES for truth in ("True", "False")], (LR,)),
)
def test_python_numbers_that_change_are_told_with_their_line(traces: Any, told: tuple[ChangingNumber, ...]) -> None:
    assert changing(*traces) == told


def test_the_source_says_which_line_assigned_a_number() -> None:
    run, call = Run(), ("/job/tune.py", 70)
    for number, rate in enumerate(RATES):
        given = (TracedNumber("lr", rate),)
        run.traces.append(FunctionTrace("step", call, float(number), 500.0, 0, numbers=given))
    run.python(9.0, "tune.py:7")
    known, at = run.recording(), ("/job/tune.py", 61)
    assert known.run is not None
    others = AssignedNumber("other", "lr", call, call), AssignedNumber("step", "lr", at, call)
    assigned = AssignedNumber("step", "lr", call, at), *others
    (found,) = RunTraces.measure(replace(known, run=replace(known.run, assigned=assigned))).functions
    assert found.numbers == (LR,)


told[
    lambda kept: (
        functions(*(FunctionTrace("step", None, float(n), 9.0, n, kept=kept and n > 0) for n in range(3))).functions
    )
] = {"a definition is run again where its Python functions are new": False, "not where they were kept": True}


def test_traces_without_numbers_after_the_first_50_count_for_nothing() -> None:
    many = [str(number) for number in range(NUMBERED)]
    (found,) = changing(*({"lr": value} for value in many), *({} for _ in range(500)))
    assert found.values == tuple(many)


@told
def a_function_that_is_traced_within_another_one_is_part_of_it() -> object:
    run = made(traces(1.0, "p.py:3", "outer"))
    run.traces.append(FunctionTrace("inner", None, run.now - 0.6, 300.0))
    return RunTraces.measure(run.recording()).functions


told[lambda *acts: RunTraces.measure(made(*acts).recording()).functions] = {
    "the usual call of another function is one that traced nothing": (
        traces(1.0, "p.py:3", "serve"), *[during(RunCall.FUNCTION, 0.2, "p.py:3", "serve")] * 3,
    )
}  # fmt: skip

# What grows over a run is told from noise, warm-up, plateaus and single jumps.

TIMES = np.arange(300.0)
SEEDS = 150
Random = np.random.Generator


def certain(values: Floats, times: Floats = TIMES) -> bool:
    line = Trend.through(times, values)
    return line is not None and line.low > 0 and line.steady


def alarms(make: Callable[[Random], Floats], seeds: int = SEEDS) -> int:
    return sum(certain(make(np.random.default_rng(seed))) for seed in range(seeds))


def walk(random: Random) -> Floats:
    return np.cumsum(random.normal(size=300))


def jump(random: Random) -> Floats:
    return 5.0 * (random.uniform(0, 300) < TIMES) + random.normal(size=300) / 10


NO_GROWTH: dict[str, Callable[[Random], Floats]] = {
    "noise": lambda random: random.normal(size=300),
    "long steps": lambda random: random.standard_t(2, size=300),
    "plateau": lambda random: -10 * np.exp(-TIMES / 30) + random.normal(size=300) / 3,
    "late plateau": lambda random: -10 * np.exp(-TIMES / 80) + random.normal(size=300) / 10,
    "jump": jump,
}
GROWTH: dict[str, Callable[[Random], Floats]] = {
    "line": lambda random: TIMES / 50 + random.normal(size=300),
    "stairs": lambda random: np.floor(TIMES / 20) + random.normal(size=300) / 20,
    "faster and faster": lambda random: (TIMES / 100) ** 2 + random.normal(size=300) / 10,
    "few stairs": lambda random: np.floor(TIMES / 60) + random.normal(size=300) / 20,
    "slower and slower": lambda random: np.sqrt(TIMES) + random.normal(size=300) / 10,
}


@each(*NO_GROWTH, "drift")
def test_what_does_not_grow_is_rarely_called_growth(kind: str) -> None:
    """A drift by chance seldom."""
    assert alarms(NO_GROWTH.get(kind, walk)) < (0.08 if kind == "drift" else 0.01) * SEEDS


@each(*GROWTH)
def test_growth_is_found(kind: str) -> None:
    assert alarms(GROWTH[kind], 60) >= 57


@given(st.floats(0.01, 1e9), st.floats(-1e9, 1e9))
def test_a_straight_line_is_its_own_trend(slope: float, start: float) -> None:
    line = Trend.through(TIMES, start + slope * TIMES)
    assert line is not None
    assert line.slope == pytest.approx(slope, rel=1e-3, abs=1e-6 * abs(start))


told.add("few points are no trend", lambda: Trend.through(TIMES[:7], TIMES[:7]))
told.add("points at one time are no trend", lambda: Trend.through(np.zeros(50), TIMES[:50]))


def growth(run: Run) -> RunGrowth:
    return RunGrowth.measure(run.recording())


def found(run: Run, what: Grows) -> object:
    trend = sure(growth(run).of(what))
    return {**dict(stated(trend)), **fields(trend, "grows last over_steps")}


told[lambda *loops: found(of(*loops), Grows.STEP)] = {
    "steps that take longer and longer grow": [(1, 41 + number * 55 / 300) for number in range(300)],
    "traced steps and long ones are no trend": ((300, 5.0), *[(9, 5.0), (1, 80.0)] * 100, (400, 15.0, True)),
}

LOADS = [act for second in range(100) for act in (count(rss=second * 10**8), python(0.5, "load.py:3"))]
WAITS = 100 * [count(rss=2 * 10**9), python(0.5, LOOP, looped=True)]


def leaks(number: float) -> float:
    return 10**9 + number * 10**7


def counted(resident: Callable[[float], float], before: Iterable[Act] = ()) -> Run:
    each = ((count(rss=round(resident(number))), steps(100, 5.0, LOOP)) for number in range(100))
    return made(*before, *(act for acts in each for act in acts))


def graph(*counts: tuple[float, int, float], run: Run | None = None) -> Trend:
    """The growth of a graph of so many operations, before so many steps of so many ms or as many of Python's."""
    run = run or Run()
    for operations, steps, ms in counts:
        run.count(graph=round(operations))
        if steps:
            run.steps(steps, ms, LOOP)
        else:
            run.python(ms / 1000, LOOP)
    return sure(growth(run).of(Grows.GRAPH))


def test_a_graph_that_slows_its_own_steps_grows_with_each_step() -> None:
    """Trap: each step takes longer than the one before, so the graph grows slower and slower over time."""
    trend = graph(*((500 + 100 * n, 1, 100.0 * 1.1**n) for n in range(40)))
    assert trend.steady
    assert trend.slope == pytest.approx(100, rel=0.02)
    assert not graph(*((min(500 + 100 * n, 1500), 1, 600.0) for n in range(40))).steady  # made once


@cases((5_000, True), (1_000, False))
def test_few_counts_of_a_graph_are_exact(most: int, *, steady: bool) -> None:
    """Nine counts are too few for a trend of anything that has noise."""
    assert graph(*((min(300 + 2 * 75 * n, most), 75, 13.0) for n in range(9))).steady is steady


def test_a_graph_grows_also_while_no_step_runs() -> None:
    """Trap: while a loop over rows makes operations, no step is counted by which the graph could grow."""
    run = Run()
    with run.call(RunCall.FUNCTION, LOOP):
        run.python(0.6, LOOP)
    assert graph(*((500 + 100 * n, 0, 600.0) for n in range(40)), *[(4500, 40, 15.0)] * 3, run=run).steady


told[lambda make: found(make(), Grows.RESIDENT)] = {
    "memory that grows with each step leaks": partial(counted, leaks),
    "data that are loaded before training are no leak": partial(counted, lambda number: 10**10 + number % 3, LOADS),
    "memory leaks although the loop waits for the end of its data": lambda: made(*WAITS, to=counted(leaks)),
    "memory of a program that trains nothing is seen as well": lambda: made(*LOADS[:120]),
}


def with_objects(*counts: int) -> object:
    run = counted(lambda number: number * 10**6)
    for number, count in enumerate(counts):
        types = {"numpy.ndarray": count, "builtins.dict": 500}
        run.censuses.append(Census(run.now * (number + 1) / (len(counts) + 1), types))
    return [fields(one, "name first last") for one in growth(run).objects]


told[with_objects] = {
    "types of objects that grow in number are named": (100, 200, 300, 400, 500, 600),
    "those that are counted seldom are not": (100, 200, 300),
    "nor those that stay": (100, 300, 400, 401, 402, 402),
    "nor those that come and go": (5, 9, 3, 8, 4),
}


@told
def steps_that_were_only_counted_have_a_trend() -> object:
    run = of(*((20, 20.0 + number) for number in range(40)))
    log = changed(run.log(), lambda steps: replace(steps, each=(), bins={}))
    return sure(RunGrowth.measure(replace(run.recording(), run=log)).of(Grows.STEP)).grows


test_run_steps = told.test("run_steps")


def near_traced(*buckets: dict[int, tuple[float, bool]]) -> float | None:
    """Compare ms at lines, in long steps or not, of the buckets; the first one is traced, and line 12 trains."""
    log = made(steps(20, 5.0, LOOP, traced=True)).log()
    first = next(b for b in log.buckets if any(one.traced for one in b.steps))
    pieces = [
        tuple(RunPiece(phase=Phase.STEPS, ms=ms, seen=SeenStack(0, at=("train.py", at), long=long), samples=ms)
              for at, (ms, long) in lines.items())
        for lines in buckets
    ]  # fmt: skip
    far = [4 * number for number in range(len(pieces))]
    log = replace(log, buckets=(first,), calls={})
    return alike([Stretch(0.0, 1.0, own, at) for at, own in zip(far, pieces, strict=True)], log, {("train.py", 12)})


A = {5: (100.0, False)}
told[near_traced] = {
    "slower steps of the same lines are alike": ({**A, 6: (50.0, False)}, {5: (600.0, True), 6: (300.0, False)}),
    "another line takes half of all": (A, {**A, 9: (200.0, True)}),
    "what long steps do at the call that trains is not seen": ({12: (100.0, False)}, {12: (300.0, True)}),
    "too few samples": ({5: (19.0, False)}, {5: (600.0, False)}),
}
