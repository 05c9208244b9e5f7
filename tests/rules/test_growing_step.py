"""growing-step: steps and calls that certainly get slower, with what grows along; and what only looks like it."""

from tests.rules.kit import *
from tfdoctor.rules.run import growing_step
from tfdoctor.rules.run.growing_step.longer_times import LongerTimes, SlowingCall, StepLine

GROWS = Trend(
    what=Grows.STEP, first=41.0, last=96.0, slope=2.7, low=2.5, steady=True, over_steps=300
)  # fmt: skip
"""The step time of the examples."""
EXAMPLE_STEPS = RunSteps(
    at=script(48), source="session-run", count=330, total_ms=22_600.0,
    mean_ms=68.5, median_ms=68.0, p10_ms=45.0, p90_ms=92.0,
)  # fmt: skip
EXAMPLE_PHASES = RunPhases(total_ms=30e3, times={Phase.STEPS: 22_600.0, Phase.IMPORTS: 7_400.0})
TRAINS, OTHER = script(48), script(52)
STEP = replace(GROWS, first=40.0, last=80.0, slope=1.0, low=0.9)
STEPS = replace(equal_steps(TRAINS, 330, 60.0), source="repeated-call", total_ms=20_000.0, p10_ms=45.0, p90_ms=75.0)
PHASES = RunPhases(total_ms=25_000.0, times={Phase.STEPS: 20_000.0, Phase.IMPORTS: 5_000.0})
RUNS = SlowingCall(name="Session.run", at=Location("score.py", 10), calls=350, first_ms=4.0, last_ms=24.0)
SCORES = RunPhases(
    total_ms=20_000.0, times={Phase.PREDICTION: 8_000.0, Phase.IMPORTS: 12_000.0}, once_ms=12_000.0,
    lines=(RunLine(phase=Phase.PREDICTION, at=RUNS.at, ms=7_000.0, samples=70),),
)  # fmt: skip
LONG = replace(
    STEPS, source="session-run", median_ms=4.0, long=LongSteps(count=66, ms=18_900.0, beyond_ms=18_700.0)
)
LEVEL = replace(STEP, first=60.0, last=6.0, slope=0.2, low=-20.0, steady=False)


def example(
    *trends: Trend, steps: RunSteps = EXAMPLE_STEPS, phases: RunPhases = EXAMPLE_PHASES,
    lines: tuple[StepLine, ...] = (), calls: tuple[SlowingCall, ...] = (), clocks: GpuClocks | None = None,
) -> Verdict:  # fmt: skip
    """Judge a run of 330 steps with these trends."""
    return growing_step.check(phases, RunGrowth(trends, 20.0), steps, LongerTimes(lines, calls), clocks)


def sick() -> Verdict:
    """The default graph grows by 12 operations a step, and the steps get slower."""
    graph = replace(GROWS, what=Grows.GRAPH, first=400, last=4000, slope=180, low=170)
    at = script(48)
    line = StepLine(at=at, first_ms=36.0, last_ms=90.0, samples=180, calls="Session.run")
    return example(GROWS, graph, lines=(line,))


def grows(what: Grows, first: float, last: float, name: str = "") -> Trend:
    return replace(STEP, what=what, first=first, last=last, name=name)


def at(line: Location, first_ms: float, last_ms: float, samples: int = 50, **more: Any) -> StepLine:
    return StepLine(at=line, first_ms=first_ms, last_ms=last_ms, samples=samples, **more)


def slowing(*beside: Trend, repeats: bool | None = None, **more: Any) -> Verdict:
    """Judge calls of a program that trains nothing, where a line may make operations."""
    maker = RunLine(phase=Phase.BUILDING, at=Location("score.py", 9), ms=100.0, samples=5, repeats=bool(repeats))
    made = SCORES.lines if repeats is None else (*SCORES.lines, maker)
    return check(*beside, phases=replace(SCORES, lines=made), calls=(replace(RUNS, **more),))


def remade(making_ms: float, steps: RunSteps = LONG) -> Verdict:
    """A line outside of the steps makes operations in each epoch of a run of 25 s."""
    maker = run_line(Phase.BUILDING, OTHER, making_ms, "Optimizer.minimize")
    phases = divided_run(25_000.0, {Phase.BUILDING: making_ms}, maker)
    return check(LEVEL, GRAPH, steps=steps, phases=phases)


healthy = described(
    "The steps take the same time at the end.", example, replace(GROWS, last=41.2, slope=0.01, low=-0.05)
)
check = partial(example, steps=STEPS, phases=PHASES)
GRAPH = grows(Grows.GRAPH, 400, 4000)
FILES = grows(Grows.FILES, 4, 400)
LIST = at(OTHER, 5.0, 45.0)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["files stay open; the trend's values lie at 14.5 and 95.5 % of the 330 steps"] = check(STEP, FILES)
    told["a fifth longer at the end, and less: clocks and caches"] = check(replace(STEP, last=48.0), FILES)
    told[...] = check(replace(STEP, last=47.9), FILES), check(replace(STEP, low=-0.1, last=47.9), FILES)
    told["a first epoch that is slow by tracing, then a plateau"] = check(replace(STEP, steady=False), FILES)
    told["50 steps are enough for a trend"] = [check(replace(STEP, over_steps=n), FILES) for n in (50, 49)]
    told["810 ms of 20 s are little"] = check(replace(STEP, first=10.0, last=14.0), GRAPH)
    told["others may hide a trend; but more operations slow steps"] = check(replace(STEP, low=-0.1), FILES)
    told[...] = check(replace(STEP, low=-0.1), GRAPH), check(replace(STEP, low=-0.1, last=47.9), GRAPH)
    told["a GPU that heat throttles for a tenth of its time explains the growth, and a power cap does not"] = [
        check(STEP, lines=(LIST,), clocks=GpuClocks((GpuClock("GPU 0", 0, 100, {reason: samples}, {}, 1500.0),)))
        for reason, samples in (("software-thermal", 10), ("software-thermal", 9), ("power-cap", 90))
    ]
    told["no trend"] = check()
    told["a graph that grows, before calls that get slower"] = check(STEP, GRAPH, calls=(RUNS,))
    makers = at(TRAINS, 36.0, 70.0), at(OTHER, 3.0, 3.0, graph_samples=20)
    told["the line that makes operations is the one to change"] = check(STEP, GRAPH, lines=makers)
    told["tf.functions that are made again and again"] = check(STEP, grows(Grows.FUNCTIONS, 10, 70))
    told["live objects of the script's own class"] = check(STEP, grows(Grows.OBJECTS, 1_000, 9_000, "Experience"))
    part = replace(PHASES, whole=False, missing="only its window was traced")
    told["nothing is judged of a window"] = applied(growing_step, part, RunGrowth((STEP,), 20.0))

    def caused(*lines: StepLine) -> Verdict:
        return check(STEP, lines=lines)

    def of_script(line: Location, first_ms: float, last_ms: float) -> StepLine:
        return at(line, first_ms, last_ms, function="<module>")

    told["a line that holds the growth is the cause"] = caused(LIST)
    told["a line is compared with the rest of the step only where there is a rest"] = caused(at(OTHER, 39.0, 79.0))
    told["two lines, and neither has half"] = caused(of_script(OTHER, 5.0, 23.0), of_script(script(53), 5.0, 21.0))
    told["too few samples to name a line"] = caused(at(OTHER, 5.0, 45.0, samples=4))
    told["a line with less than half of the growth"] = caused(at(OTHER, 5.0, 24.0))
    told["the training call, whose inputs may be longer"] = caused(at(TRAINS, 39.0, 79.0))
    told["all lines became slower by the same factor, as if throttled"] = caused(at(OTHER, 20.0, 40.0))
    told["no line"] = caused()
    told["of two lines one calls the training"] = caused(of_script(TRAINS, 30.0, 45.0), of_script(OTHER, 5.0, 21.0))
    told["counts that grow by little"] = check(STEP, grows(Grows.OBJECTS, 1_000, 1_499, "dict"))
    told[...] = check(STEP, grows(Grows.GRAPH, 5_000, 5_400))


# What is measured: lines per step in the first third of the steps and the last, and calls that certainly get slower
CALLS = {
    0: CallPlace(0, RunCall.SCRIPT),
    1: CallPlace(1, RunCall.STEP, ("train.py", 5), "train_step"),
    2: CallPlace(2, RunCall.BETWEEN),
    3: CallPlace(3, RunCall.EVALUATE),
    4: CallPlace(4, RunCall.FUNCTION, ("score.py", 10), "Session.run"),
    5: CallPlace(5, RunCall.PREDICT, ("score.py", 20), "Model.predict"),
}
STACKS = {
    0: SeenStack(0, call=2, at=("train.py", 52), calls="numpy.append", looped=True),
    1: SeenStack(1, call=1, at=("train.py", 48)),
    2: SeenStack(2, call=3, at=("train.py", 60), looped=True),  # evaluation is no part of a step
    3: SeenStack(3, call=0, at=("train.py", 9)),  # nor is what the script does before
    4: SeenStack(4, call=0, at=("train.py", 50), work=RunWork.BUILDING, looped=True),
    5: SeenStack(5, call=1),
}
RISING = [2.0 + at for at in range(30)]


def longer(*buckets: Bucket, spans: Sequence[float] = ()) -> LongerTimes:
    alone = tuple(Span(5, float(at), at + each / 1000) for at, each in enumerate(spans))
    run = RunLog(process=RunProcess(), calls=CALLS, stacks=STACKS, buckets=buckets, spans=alone)
    return chart(trace([]), replace(recording(), run=run)).fact(LongerTimes)


def lines(ms: Sequence[dict[str, float]], steps: int = 10) -> tuple[StepLine, ...]:
    each = (BucketSteps(steps=steps),) if steps else ()
    buckets = (
        Bucket(float(at), at + 1.0, stacks=stacks, samples=dict.fromkeys(stacks, 6), steps=each)
        for at, stacks in enumerate(ms)
    )
    return longer(*buckets).lines


def calls(ms: Sequence[float] = (), call: str = "4", spans: Sequence[float] = ()) -> tuple[SlowingCall, ...]:
    buckets = (Bucket(float(at), at + 1.0, {call: each * 5}, {call: 5}) for at, each in enumerate(ms))
    return longer(*buckets, spans=spans).calls


@given(st.lists(st.floats(0.0, 1e3), min_size=20, max_size=40))
def test_what_is_constant_does_not_grow_and_no_time_is_negative(ms: list[float]) -> None:
    for line in lines([{"0": one, "1": 5.0} for one in ms]):
        assert line.first_ms >= 0
        assert line.last_ms >= 0
        assert line.at.line != 48 or line.grown_ms == pytest.approx(0)


@golden_cases
def test_calls_and_epochs(told: Cases) -> None:
    told["calls of a program that trains nothing get slower too"] = slowing(replace(GRAPH, over_steps=0))
    told["a line makes operations for calls, again and again or once"] = slowing(GRAPH, repeats=True)
    told[...] = slowing(GRAPH, repeats=False)
    told["a text that is generated word by word makes the input of predict longer"] = slowing()
    told["few calls, calls that hardly get slower, and calls that lose little"] = slowing(GRAPH, calls=49)
    told[...] = slowing(GRAPH, last_ms=4.7), slowing(GRAPH, calls=60, last_ms=14.0)
    told["a graph grows in each epoch: the first step after it is long, and the others usual"] = remade(5_000.0)
    told["operations made for a twentieth of the run, and less"] = remade(1_250.0, steps=replace(LONG, long=None))
    told[...] = remade(1_249.0, steps=replace(LONG, long=None))
    # Its first third are buckets 2 to 7, without the first tenth, and its last third 14 to 19
    told["a line that grows is first, from end to end"] = lines([{"0": 10.0 * at, "1": 300.0} for at in range(20)])
    told["only the loop of the steps counts; graphs too"] = lines([{str(number): 10.0 for number in STACKS}] * 20)
    told["too few steps are not compared"] = lines([]), lines([{"1": 1.0}]), lines([{"1": 1.0}] * 20, steps=0)
    told["a recording without the run"] = lambda: chart(trace([]), recording()).fact(LongerTimes)
    told["calls that a bucket adds up get slower: the mean is 16.5 ms, the first took 2"] = calls(RISING)
    told["calls told alone; the longest first"] = calls(RISING, spans=[50.0 + 100 * at for at in range(30)])
    told["training steps are judged elsewhere"] = calls(RISING, call="1")
    told["calls that do not certainly get slower, as on a plateau of memory that warms up"] = [
        calls([time(at) for at in range(30)])
        for time in (lambda _: 5.0, lambda at: 5.0 + at % 3, lambda at: min(at, 8.0) + 2, lambda at: 30.0 - at)
    ]
    told["two calls"] = calls([2.0, 9.0])
