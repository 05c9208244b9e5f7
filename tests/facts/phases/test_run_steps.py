"""All training steps of a run: how long they took, and which of them the traced window is like."""

import math
from collections import Counter

from tests.facts.kit import *
from tfdoctor.facts.phases.run_calls import NUMBERED
from tfdoctor.facts.phases.run_steps import long_steps

LOOP = "train.py:12"


def of(*loops: tuple[int, float] | tuple[int, float, bool]) -> Run:
    """So many steps of so many ms, traced or not, one loop after the other."""
    run = Run()
    for count, ms, *traced in loops:
        run.steps(count, ms, LOOP, traced=bool(traced))
    return run


def measured(run: Run, log: RunLog | None = None, **told: Any) -> RunSteps:
    given = run.recording(**told)
    return RunSteps.measure(replace(given, run=log or given.run), None, None, None)


def test_all_steps_of_the_main_loop_are_added_up() -> None:
    run = Run()
    run.steps(30, 2.0, "pretrain.py:3")
    run.steps(300, 4.0, LOOP, between_ms=1.0)
    run.steps(100, 9.0, LOOP, between_ms=1.0)
    found = measured(run)
    assert (found.at, found.source) == (Location("train.py", 12), StepSource.REPEATED_CALL)
    assert (found.count, found.total_ms, found.mean_ms) == pytest.approx((400, 2500, 6.25))
    assert (found.median_ms, found.p10_ms, found.p90_ms, found.rest_ms) == pytest.approx((5.0, 5.0, 10.0, 500))


def changed(log: RunLog, change: Callable[[BucketSteps], BucketSteps]) -> RunLog:
    return replace(log, buckets=tuple(replace(b, steps=tuple(map(change, b.steps))) for b in log.buckets))


def test_calls_that_run_a_loop_of_steps_are_no_steps() -> None:
    """Trap: ten calls of 200 steps were "each of ten training steps"."""
    run = of((10, 11.0))
    with pytest.raises(Unavailable, match="loop inside"):
        measured(run, changed(run.log(), lambda steps: replace(steps, source=StepSource.GRAPH_LOOP)))


def binned(log: RunLog) -> RunLog:
    """Have the recorder count steps by bins instead of telling each one."""

    def counted(steps: BucketSteps) -> BucketSteps:
        bins = Counter(str(int(math.log(ms * 1000) / math.log(1.02))) for ms in steps.each)
        return replace(steps, each=(), bins=dict(bins))

    return changed(log, counted)


def test_bins_give_the_quantiles_to_two_percent() -> None:
    run = of((300, 5.0), (100, 10.0))
    found = measured(run, binned(run.log()))
    assert (found.median_ms, found.p90_ms) == pytest.approx((5.0, 10.0), rel=0.02)
    assert found.total_ms == pytest.approx(2500)


def test_a_call_of_several_steps_is_counted_as_several() -> None:
    run = of((100, 50.0))
    found = measured(run, changed(run.log(), lambda steps: replace(steps, steps=10 * steps.calls)))
    assert (found.count, found.median_ms, found.mean_ms) == pytest.approx((1000, 5.0, 5.0))


@cases(
    (of((200, 5.0), (200, 5.0, True), (100, 20.0)), 5.0, 2000 / 4000),  # steps like the traced ones
    (of((400, 5.0), (100, 12.0, True), (400, 5.0)), 12.0, 4000 / 5200),  # only the profiler slows these
)
def test_the_window_stands_for_steps_like_the_traced_ones(run: Run, traced_ms: float, share: float) -> None:
    found = measured(run)
    assert (found.traced_ms, found.window_share) == pytest.approx((traced_ms, share))


def test_steps_that_were_only_counted_weigh_as_many() -> None:
    run = of((400, 5.0), (100, 10.0, True))
    assert measured(run, binned(run.log())).window_share == pytest.approx(2000 / 3000, rel=0.02)


def test_a_window_of_slow_and_fast_steps_stands_for_both() -> None:
    """XLA compiles for every second shape: the median says whether more than half of them were compiled."""
    run = Run()
    for traced in (False, True, False):
        for _ in range(10):
            run.steps(2, 5.0, LOOP, traced=traced)
            run.steps(3 if traced else 1, 800.0, LOOP, traced=traced)
    run.steps(10, 100.0, LOOP)
    found = measured(run)
    assert (found.traced_ms, found.window_share) == pytest.approx((800.0, 1 - 1000 / found.total_ms))


def test_what_traced_steps_take_is_as_the_agent_timed_it() -> None:
    timed = StepsSeen(untraced=UntracedSteps(200, 5.0, "steps", traced_ms=5.5))
    assert measured(of((200, 5.0), (100, 5.0, True)), steps=timed).traced_ms == 5.5
    without = measured(of((200, 5.0)))
    assert (without.traced_ms, without.window_share) == (None, None)


def long(number: int, ms: float = 15.0, *, first: bool = False) -> LongStep:
    return LongStep(number, number * 0.005, ms, 5.0, first)


def test_long_steps_say_what_they_cost() -> None:
    found = long_steps([long(0, 100.0, first=True), long(7), long(50, 45.0, first=True)])
    assert found is not None
    assert (found.count, found.ms, found.beyond_ms) == (3, 160.0, 145.0)
    assert (found.first, found.first_beyond_ms, found.first_median_ms) == (2, 135.0, 67.5)
    assert long_steps([]) is None


@cases(
    ([99, 199, 299, 399], 100),
    ([99, 200, 299, 400, 499], 100),
    ([99, 199, 299], None),  # too few
    ([3, 50, 61, 200, 277, 300], None),
    ([10, 11, 12, 13, 14], None),  # all of them
)
def test_long_steps_at_equal_distances_have_a_period(numbers: list[int], every: int | None) -> None:
    found = long_steps([long(0, first=True), *map(long, numbers)])
    assert found is not None
    assert found.every == every


def test_the_long_steps_of_bursts_are_no_long_steps() -> None:
    """Steps of 2 and 150 ms in turn: all are like the traced ones, and one of 400 ms is long."""
    run = Run()
    for number in range(40):
        run.steps(1, 2.0 if number % 2 else 150.0, LOOP, traced=number < 20)
    edges = list(pairwise([0, *(int(PS * at) for n in range(10) for at in (152 * n + 150, 152 * n + 152))]))
    steps = Steps.of(Step(n, a, b, b) for n, (a, b) in enumerate(edges))
    bursts = steps.paying(Intervals([(a, b) for a, b in edges if b - a > 9 * PS]), None)
    assert bursts.in_bursts
    told = LongStep(20, 1.0, 150.0, 2.0), LongStep(30, 2.0, 400.0, 2.0)
    given = replace(run.recording(), run=replace(run.log(), long_steps=told))
    found = RunSteps.measure(given, bursts, None, None)
    assert found.window_share == pytest.approx(1.0)
    assert found.long is not None
    assert (found.long.count, found.long.ms) == (1, 400.0)


def waits(**parts: float) -> RunSteps:
    """200 steps of 5 ms that were traced, and 20 of 50 ms, in which the stack is at the call that trains."""
    run = Run()
    run.steps(200, 5.0, LOOP, traced=True)
    run.steps(20, 50.0, LOOP)
    told = tuple(long(200 + number, 50.0) for number in range(20))
    given = replace(run.recording(), run=replace(run.log(), long_steps=told))
    at = LongLine(at=Location("train.py", 9), ms=800.0, samples=16, trains=True)
    other = LongLine(at=Location("train.py", 3), ms=200.0, samples=4)
    return RunSteps.measure(given, None, Breakdown.of(**parts), RunLongLines((at, other)))


@cases(({"input": 3.0, "device": 2.0}, True), ({"input": 2.0, "device": 3.0}, False), ({"device": 5.0}, False))
def test_long_steps_are_like_traced_ones_that_wait_as_well(parts: dict[str, float], *, alike: bool) -> None:
    found = waits(**parts)
    assert found.wait_longer is alike
    assert found.window_share == pytest.approx(0.5 + 0.8 * 0.5 * alike)


SAVES = SeenStack(1, at=("train.py", 30), calls="keras.Model.save", work=RunWork.SAVING, long=True)
AGAIN = replace(SAVES, id=2, runs="h5py.File")
USUAL = SeenStack(3, at=("train.py", 31))


def lines(*buckets: Bucket) -> RunLongLines:
    log = RunLog(RunProcess(), {}, {one.id: one for one in (SAVES, AGAIN, USUAL)}, buckets)
    return RunLongLines.measure(replace(recording(), run=log))


def test_samples_of_a_line_add_up_over_stacks_and_buckets() -> None:
    found = lines(
        Bucket(0, 1, stacks={"1": 200.0, "3": 700.0}, samples={"1": 4, "3": 14}),
        Bucket(1, 2, stacks={"1": 50.0, "2": 100.0}, samples={"1": 1, "2": 2}),
    )
    (line,) = found.lines
    at = Location("train.py", 30)
    assert line == LongLine(at=at, ms=350.0, samples=7, calls="keras.Model.save", work=RunWork.SAVING)
    assert found.ms == 350.0
    assert (line.sure, replace(line, samples=4).sure, replace(line, at=None).sure) == (True, False, False)


@cases((RunWork.OTHER, False), (RunWork.MODEL, False), (RunWork.SAVING, True), (RunWork.INPUT, True))
def test_the_call_that_trains_is_no_cause(work: RunWork, *, names: bool) -> None:
    """But for a checkpoint of fit's, or its input."""
    fit = CallPlace(0, RunCall.FIT, ("train.py", 9), "Model.fit")
    seen = SeenStack(1, at=("train.py", 9), calls="keras.Model.fit", work=work, long=True)
    bucket = Bucket(0, 1, stacks={"1": 400.0}, samples={"1": 8})
    log = RunLog(RunProcess(), {0: fit}, {1: seen}, (bucket,))
    (line,) = RunLongLines.measure(replace(recording(), run=log)).lines
    assert line.sure is names


# The calls of a run by the line that makes them.


def only(run: Run, kind: RunCall) -> MadeCall:
    (found,) = RunCalls.measure(run.recording()).of(kind)
    return found


def predicts(times: int) -> Run:
    run = Run()
    for number in range(times):
        with run.call(RunCall.PREDICT, "p.py:7", "Model.predict", examples=1, steps=1, model=0):
            if not number:
                run.trace(0.5, "p.py:7", "predict_function")
            run.python(0.1, "p.py:7")
    return run


def test_calls_of_a_line_are_one_row_without_what_they_trace() -> None:
    found = only(predicts(20), RunCall.PREDICT)
    assert (found.name, found.count, found.function) == ("Model.predict", 20, "<module>")
    assert found.each_ms == pytest.approx(100)
    assert found.nested_ms == pytest.approx(500)
    assert found.times_ms == pytest.approx([600] + 19 * [100])
    assert (found.examples, found.batches, found.models) == (1.0, 1.0, 1)


@cases((1, False), (2, False), (3, True))
def test_many_calls_of_a_line_are_made_by_a_loop(times: int, *, looped: bool) -> None:
    assert only(predicts(times), RunCall.PREDICT).looped is looped


def test_a_function_called_from_several_lines_is_no_loop() -> None:
    run = Run()
    for line in (10, 20, 30):
        with run.call(RunCall.EVALUATE, "p.py:7", "Model.evaluate"):
            run.python(0.5, "p.py:7", caller=f"p.py:{line}")
    assert not only(run, RunCall.EVALUATE).looped


def fits(epochs: int) -> Run:
    run = Run()
    run.during(RunCall.EVALUATE, 0.6, "t.py:2", "Model.evaluate")
    with run.fit("t.py:5"):
        for number in range(epochs):
            with run.epoch("t.py:5", number):
                run.steps(200, 5.0, "t.py:5")
                run.during(RunCall.EVALUATE, 0.4, "t.py:5", "Model.evaluate")
    run.during(RunCall.PREDICT, 0.6, "t.py:9", "Model.predict")
    return run


def test_validation_is_told_from_evaluation_by_what_is_around_it() -> None:
    found = RunCalls.measure(fits(4).recording())
    first, validation = sorted(found.of(RunCall.EVALUATE), key=lambda call: call.count)
    assert (first.within, first.count) == (RunCall.SCRIPT, 1)
    assert (validation.within, validation.count) == (RunCall.EPOCH, 4)
    assert not validation.looped
    assert (first.before_training, validation.before_training) == (True, False)
    (predict,) = found.of(RunCall.PREDICT)
    assert predict.after_training


def test_the_only_fit_plans_the_epochs() -> None:
    settings = ProgramRecord(run=RunSettings(epochs=90, steps_per_epoch=40))
    once, twice = fits(4).recording(), fits(2)
    twice.during(RunCall.FIT, 1.0, "t.py:30", "Model.fit")
    for run, fit_count, planned, epoch_steps in (
        (once, 1, None, None),
        (replace(once, program=settings), 1, 90, 40),
        (replace(twice.recording(), program=settings), 2, None, None),
    ):
        found = RunCalls.measure(run)
        assert (found.fits, found.planned_epochs, found.epoch_steps) == (fit_count, planned, epoch_steps)
    assert RunCalls.measure(once).epochs == 4


def test_passes_of_a_loop_of_ones_own_are_epochs() -> None:
    run = Run()
    for _ in range(5):
        run.steps(100, 4.0, "t.py:8")
        run.pass_over()
        run.python(0.3, "t.py:10")
    assert RunCalls.measure(run.recording()).epochs == 5


def test_parts_of_loops_are_no_calls() -> None:
    run = fits(2)
    run.trace(1.0, "t.py:20", "step", trains=True)
    run.steps(10, 4.0, "t.py:20")
    kinds = {call.call for call in RunCalls.measure(run.recording()).calls}
    assert kinds == {RunCall.FIT, RunCall.EVALUATE, RunCall.PREDICT}


def short() -> Run:
    run = Run()
    run.during(RunCall.PREDICT, 1.0, "p.py:3", "Model.predict")
    return run


test_what_is_not_known = unavailable(
    (lambda: lines(Bucket(0, 1, stacks={"3": 700.0}, samples={"3": 14})), "no step that takes long"),
    (lambda: measured(short()), "no training step"),
    (lambda: growth(short()), "too short"),
    (lambda: RunSteps.measure(recording(), None, None, None), "not recorded"),
    *(
        (partial(kind.measure, recording()), "not recorded")
        for kind in (RunLongLines, RunCalls, RunTraces, RunGrowth)
    ),
)


@pytest.mark.parametrize("own", [False, True])
def test_calls_right_after_the_last_steps_come_after_training(*, own: bool) -> None:
    run = Run()
    if own:
        run.trace(1.0, "t.py:20", "step", trains=True)
        run.steps(400, 5.0, "t.py:20")
        run.python(3.0, "t.py:30")
    else:
        with run.fit("t.py:5"), run.epoch("t.py:5", 0):
            run.steps(200, 5.0, "t.py:5")
    for _ in range(4):
        run.during(RunCall.PREDICT, 0.5 if own else 0.01, "t.py:9", "Model.predict")  # in fit's last bucket
    assert only(run, RunCall.PREDICT).after_training


def compiled_in_each_epoch() -> Run:
    run = Run()
    for number in range(4):
        with run.fit("train.py:9"), run.epoch("train.py:9"):
            run.trace(1.0 if number else 2.0, "train.py:9", "step", trains=True, made=2 * number)
            run.steps(50, 4.0, "train.py:9")
            with run.call(RunCall.EVALUATE, "train.py:9", "Model.evaluate"):
                run.trace(0.5, "train.py:9", "step", made=2 * number + 1)
    return run


def test_new_function_objects_of_a_line_are_one_function() -> None:
    found = RunTraces.measure(compiled_in_each_epoch().recording())
    training, evaluation = found.functions
    assert (training.at, training.tracings, training.made) == (Location("train.py", 9), 4, 4)
    assert (training.within, evaluation.within) == (RunCall.STEP, RunCall.EVALUATE)
    assert training.ms == pytest.approx(5000 - 4 * 4)  # each call is a step as well
    assert training.first_ms == pytest.approx(1996)
    assert training.again_ms == pytest.approx(3000 - 12)
    assert len(training.starts_s) == 4
    assert evaluation.ms == pytest.approx(2000)


def test_graphs_of_as_many_operations_and_weights_are_the_same_graph() -> None:
    graphs = enumerate([(318, 192), (318, 192), (318, 768), (0, 0), (0, 0)])
    (found,) = functions(
        *(FunctionTrace("step", None, float(n), 500.0, n, 0, *graph) for n, graph in graphs)
    ).functions
    assert (found.alike_ms, found.alike) == pytest.approx((500, 1))


def functions(*traces: FunctionTrace) -> RunTraces:
    run = Run()
    run.traces += traces
    run.python(9.0, "tune.py:7")
    return RunTraces.measure(run.recording())


def changing(*traces: dict[str, str]) -> tuple[ChangingNumber, ...]:
    """Return what is told of a function that is traced with these values of its parameters."""
    made = []
    for number, values in enumerate(traces):
        lines = {"lr": ("/job/tune.py", 61)}
        numbers = tuple(TracedNumber(name, value, lines.get(name)) for name, value in values.items())
        trace = FunctionTrace("step", None, float(number), 500.0, 0, numbers=numbers)
        made.append(replace(trace, defined=("/job/tune.py", 36)))
    (found,) = functions(*made).functions
    assert found.defined == Location("tune.py", 36)
    return found.numbers


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
def test_python_numbers_that_change_are_told_with_their_line(
    traces: list[dict[str, str]], told: tuple[ChangingNumber, ...]
) -> None:
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


@pytest.mark.parametrize("kept", [False, True])
def test_a_definition_is_run_again_where_its_python_functions_are_new(*, kept: bool) -> None:
    made = (FunctionTrace("step", None, float(n), 9.0, n, kept=kept and n > 0) for n in range(3))
    (found,) = functions(*made).functions
    assert (found.made, found.redefined) == (3, not kept)


def test_traces_without_numbers_after_the_first_50_count_for_nothing() -> None:
    many = [str(number) for number in range(NUMBERED)]
    (found,) = changing(*({"lr": value} for value in many), *({} for _ in range(500)))
    assert found.values == tuple(many)


def test_a_function_that_is_traced_within_another_one_is_part_of_it() -> None:
    run = Run()
    run.trace(1.0, "p.py:3", "outer")
    run.traces.append(FunctionTrace("inner", None, run.now - 0.6, 300.0))
    assert [one.name for one in RunTraces.measure(run.recording()).functions] == ["outer"]


def test_the_usual_call_of_another_function_is_as_the_recorder_timed_it() -> None:
    run = Run()
    run.trace(1.0, "p.py:3", "serve")
    timed = StepsSeen(functions=(TracedFunction("serve", ("/job/p.py", 3), call_ms=200.0),))
    (found,) = RunTraces.measure(run.recording(steps=timed)).functions
    assert found.ms == pytest.approx(800)


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


@pytest.mark.parametrize("kind", GROWTH)
def test_growth_is_found(kind: str) -> None:
    assert alarms(GROWTH[kind], 60) >= 57


@given(st.floats(0.01, 1e9), st.floats(-1e9, 1e9))
def test_a_straight_line_is_its_own_trend(slope: float, start: float) -> None:
    line = Trend.through(TIMES, start + slope * TIMES)
    assert line is not None
    assert line.slope == pytest.approx(slope, rel=1e-3, abs=1e-6 * abs(start))


def test_few_points_are_no_trend() -> None:
    assert Trend.through(TIMES[:7], TIMES[:7]) is None
    assert Trend.through(np.zeros(50), TIMES[:50]) is None


# Of a run


def growth(run: Run) -> RunGrowth:
    return RunGrowth.measure(run.recording())


def found(run: Run, what: Grows) -> Trend:
    trend = growth(run).of(what)
    assert trend is not None
    return trend


def test_steps_that_take_longer_and_longer_grow() -> None:
    trend = found(of(*((1, 41 + number * 55 / 300) for number in range(300))), Grows.STEP)
    assert trend.grows
    assert (trend.first, trend.last) == pytest.approx((47 + 55 / 20, 96 - 55 / 20), abs=3)  # after a tenth
    assert trend.over_steps == pytest.approx(270, abs=15)


def test_traced_steps_and_long_ones_are_no_trend() -> None:
    run = of((300, 5.0), *[(9, 5.0), (1, 80.0)] * 100, (400, 15.0, True))
    assert not found(run, Grows.STEP).grows


def counted(resident: Callable[[float], float], *, prepares: bool = False) -> Run:
    run = Run()
    if prepares:
        for second in range(100):
            run.count(rss=second * 10**8)
            run.python(0.5, "train.py:3")
    for number in range(100):
        run.count(rss=round(resident(number)))
        run.steps(100, 5.0, LOOP)
    return run


def test_memory_that_grows_with_each_step_leaks() -> None:
    trend = found(counted(lambda number: 10**9 + number * 10**7), Grows.RESIDENT)
    assert trend.grows
    assert trend.slope == pytest.approx(2 * 10**7, rel=0.02)  # 100 steps of 5 ms
    assert trend.last == pytest.approx(10**9 + 95 * 10**7, rel=0.05)


def graph(*counts: tuple[float, int, float], run: Run | None = None) -> Trend:
    """The growth of a graph of so many operations, before so many steps of so many ms or as many of Python's."""
    run = run or Run()
    for operations, steps, ms in counts:
        run.count(graph=round(operations))
        if steps:
            run.steps(steps, ms, LOOP)
        else:
            run.python(ms / 1000, LOOP)
    return found(run, Grows.GRAPH)


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


def test_data_that_are_loaded_before_training_are_no_leak() -> None:
    assert not found(counted(lambda number: 10**10 + number % 3, prepares=True), Grows.RESIDENT).grows


def test_memory_leaks_although_the_loop_waits_for_the_end_of_its_data() -> None:
    run = counted(lambda number: 10**9 + number * 10**7)
    for _ in range(100):
        run.count(rss=2 * 10**9)
        run.python(0.5, LOOP, looped=True)
    assert found(run, Grows.RESIDENT).grows


def test_memory_of_a_program_that_trains_nothing_is_seen_as_well() -> None:
    run = Run()
    for second in range(60):
        run.count(rss=second * 10**8)
        run.python(0.5, "load.py:3")
    assert found(run, Grows.RESIDENT).grows


def with_objects(counts: list[int]) -> Run:
    run = counted(lambda number: number * 10**6)
    for number, count in enumerate(counts):
        types = {"numpy.ndarray": count, "builtins.dict": 500}
        run.censuses.append(Census(run.now * (number + 1) / (len(counts) + 1), types))
    return run


def test_types_of_objects_that_grow_in_number_are_named() -> None:
    (trend,) = growth(with_objects([100, 200, 300, 400, 500, 600])).objects
    assert (trend.name, trend.first, trend.last) == ("numpy.ndarray", 100, 600)


@each([100, 200, 300], [100, 300, 400, 401, 402, 402], [5, 9, 3, 8, 4])
def test_types_that_are_counted_seldom_or_stay_are_not(counts: list[int]) -> None:
    assert not growth(with_objects(counts)).objects


def test_steps_that_were_only_counted_have_a_trend() -> None:
    run = of(*((20, 20.0 + number) for number in range(40)))
    log = changed(run.log(), lambda steps: replace(steps, each=(), bins={}))
    trend = RunGrowth.measure(replace(run.recording(), run=log)).of(Grows.STEP)
    assert trend is not None
    assert trend.grows
