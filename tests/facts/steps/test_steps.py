"""Where the steps are: markers, a device's own line, calls of Keras' train function, or nowhere."""

from tests.facts.kit import *
from tfdoctor.facts.steps.untraced_pace import slowdown


def steps(of: Trace, beside: Manifest | None = None) -> Steps:
    return chart(of, recording(manifest=beside)).fact(Steps)


def spans(found: Steps) -> list[tuple[int, float, float]]:
    return [(s.number, s.start_ps / PS, s.end_ps / PS) for s in found.steps]


def of_times(*times: float) -> Steps:
    edges = np.cumsum([0.0, *times]) * PS
    pairs = pairwise(edges)
    return Steps.of(Step(n, int(a), int(b), int(b)) for n, (a, b) in enumerate(pairs))


# Markers


def named(name: str, start: float, end: float, number: int) -> Row:
    return (name, start, end, {"_r": 1, "step_num": number})


def call(start: float, end: float, function: str) -> tuple[Row, ...]:
    inner: Row = ("EagerExecute", start + 0.1, end - 0.1, {"eager_op": function})
    return ("train_function", start, end), inner


FUNCTION_RUN: Row = ("FunctionRun", 1, 8, {"_r": 1, "id": 3})
BY_TFDOCTOR = [marker(n, 10 * n, 10 * n + 9, steps=1) for n in range(3)]
BY_THE_SCRIPT = [named("train", 10 * n + 1, 10 * n + 8, 5) for n in range(3)]
KERAS = [(name, [(name, 0, 8), (name, 10, 18)]) for name in ("multi_step_on_iterator", "train_function")]


@cases(
    ([marker(7, 0, 8), marker(8, 10, 18)], [(7, 0, 10), (8, 10, 18)], "markers"),  # until the next begins
    ([marker(0, 5, 8), ("tfdoctor_end", 10, 10)], [(0, 5, 10)], "markers"),
    ([("tfdoctor_end", 1, 1), marker(0, 5, 8)], [(0, 5, 8)], "markers"),
    ([*BY_TFDOCTOR, *BY_THE_SCRIPT], [(0, 0, 10), (1, 10, 20), (2, 20, 29)], "markers"),
    *(
        ([named(name, 0, 8, 0)], [(0, 0, 8)], "markers")
        for name in ("train", "TraceContext", "step", "Training step")
    ),
    ([marker(0, 0, 9), marker(1, 10, 19), named("test", 20, 30, 2)], [(0, 0, 10), (1, 10, 19)], "markers"),
    ([marker(0, 0, 9), FUNCTION_RUN, marker(1, 10, 19)], [(0, 0, 10), (1, 10, 19)], "markers"),
    *((rows, [(0, 0, 10), (1, 10, 18)], "repeated-call") for _, rows in KERAS),
    # of two training functions the one with the most time
    ([*call(0, 9, "a"), *call(10, 12, "b"), *call(20, 29, "a")], [(0, 0, 20), (1, 20, 29)], "repeated-call"),
)
def test_steps_of_a_thread(rows: list[Row], found: list[tuple[int, float, float]], source: str) -> None:
    measured = steps(trace([line("p", *rows)]))
    assert spans(measured) == found
    assert measured.source == source


def test_one_call_may_hold_several_training_steps() -> None:
    found = steps(trace([line("p", marker(0, 0, 38, steps=4), marker(4, 40, 78, steps=4))]))
    assert (found.count, found.steps[0].total_ms) == (8, 10)
    assert steps(trace([line("p", marker(0, 0, 8, steps=0))])).count == 1
    assert steps(trace([markers(3, step=10, call=8)])).steps[-1].call_end_ps == 28 * PS
    overlapping = steps(trace([line("a", marker(0, 0, 15)), line("b", marker(1, 10, 25))]))
    assert all(step.call_end_ps <= step.end_ps for step in overlapping.steps)


def test_the_recorder_knows_better_which_steps_count_and_where_its_markers_come_from() -> None:
    found = steps(trace([markers(4, step=10)]), manifest(steps=StepsSeen(source="tf-data-loop", discarded=(1, 2))))
    assert spans(found) == [(0, 0, 10), (3, 30, 40)]  # those discarded still end the one before
    assert found.source == "tf-data-loop"


# Markers of Keras 2 and of users, which do not tell how many steps they hold


def keras2(*numbers: int, each: float = 10) -> Thread:
    """What Keras 2 puts around a call: its numbers begin anew with each epoch."""
    stats = [{"_r": 1, "step_num": number, "batch_size": 8} for number in numbers]
    return line("p", *(("train", at * each, at * each + 8, stat) for at, stat in enumerate(stats)))


@cases(
    ([7, 8, 9, 0, 1], None, [(7, 1), (8, 1), (9, 1), (10, 1), (11, 1)]),  # numbered through
    # the recorder knows the first number and the steps of a call
    (
        [15, 0, 5, 10],
        manifest(
            window=TracedWindow(first_step=40, steps=20, calls=4),
            steps=StepsSeen(source="keras-fit", discarded=(50,)),
        ),
        [(40, 5), (45, 5), (55, 5)],
    ),
)
def test_numbers_that_begin_anew(numbers: list[int], known: Manifest | None, found: list[tuple[int, int]]) -> None:
    measured = steps(trace([keras2(*numbers)]), known)
    assert [(step.number, step.calls) for step in measured.steps] == found
    assert measured.source == ("keras-fit" if known else "markers")


def test_without_a_recorder_the_loop_in_a_call_of_keras_2_tells_its_steps() -> None:
    bodies = ("gradient_tape/MatMul:MatMul", "Adam/AssignSub:AssignSub")
    inside: list[Row] = []
    for at in (0.0, 100.0, 200.0):
        inside.append(("ExecutorState::Process", at, at + 8, {"id": round(at) + 1}))
        inside += [("while/cond/_0/Less:Less", at + 2 * n, at + 2 * n) for n in range(5)]
        inside += [(f"while/body/_1/{b}", at + 2 * n + 1, at + 2 * n + 1.5) for n in range(4) for b in bodies]
    found = steps(trace([keras2(0, 4, 8, each=100), line("tf_Compute", *inside)]))
    assert [step.calls for step in found.steps] == [4, 4, 4]


# Devices and calls


def test_a_device_counts_its_own_steps() -> None:
    idle = v100(line("Stream #1(Compute)", ("k", 0, 1)), line("Steps", ("0", 0, 99)))
    busy = v100(line("Stream #1(Compute)", ("k", 0, 9), ("k", 10, 19)), line("Steps", ("21", 0, 9), ("22", 10, 20)))
    assert spans(steps(trace([], gpus=[idle, busy]))) == [(21, 0, 10), (22, 10, 20)]
    tpu = device(line("XLA Ops", ("%fusion", 0, 9)), line("Steps", ("0", 0, 9), ("1", 10, 19)))
    assert steps(trace([], tpus=[tpu])).source == "tpu-steps"
    assert steps(trace([markers(3, step=10)], gpus=[busy])).count == 3  # markers go before


# Nothing


# What is typical


@cases(
    ((90, 10, 11, 10, 11, 10, 11), 0),
    ((10, 10, 10, 10, 12.9), None),  # below the floor
    ((10, 10, 10, 10, 13.1), 4),
    ((10, 10, 500), None),  # too few to tell
)
def test_a_far_outlier_is_not_typical(times: tuple[float, ...], outlier: int | None) -> None:
    found = of_times(*times)
    assert found.steady == tuple(at != outlier for at in range(len(times)))
    assert len(found.steady_steps) == len(times) - (outlier is not None)


def test_the_mean_keeps_the_outliers() -> None:
    found = of_times(10, 10, 10, 10, 110)
    assert (found.mean_ms, found.median_ms, found.percentile_ms(100)) == (30, 10, 110)
    assert of_times(90, 10, 11, 10, 11, 10, 11).median_ms == pytest.approx(11)
    assert Steps.uniform(3, 2.5) == of_times(2.5, 2.5, 2.5)


def test_the_window_holds_the_typical_steps_half_open() -> None:
    window = of_times(10, 10, 100, 10, 10).steady_spans
    times = np.array([-1, 0, 9.999, 10, 20, 119.9, 120, 139.9, 140]) * PS
    inside = window.holds(times.astype(np.int64)).tolist()
    assert inside == [False, True, True, True, False, False, True, True, False]


# Steps in which XLA compiles


@cases(
    ((1, 4, 6), {0, 2, 3, 5, 7}),  # a quarter of long steps moves the quartiles: one would pass for usual
    ((0, 1, 4, 6), set(range(8))),  # where most compile, that is the typical step
    (range(8), set(range(8))),
)
def test_steps_that_mostly_compile_are_not_typical(which: Sequence[int], steady: set[int]) -> None:
    """Steps of 10 ms; those of ``which`` compile for 8 of them."""
    rows = [("XlaCompile" if at in which else "Add", at * 10 + 1, at * 10 + 9) for at in range(8)]
    found = steps(trace([markers(8, step=10, call=9), line("compiler", *rows)]))
    assert {at for at, is_steady in enumerate(found.steady) if is_steady} == steady


USUAL, LONG = 10.0, 100.0


def of_edges(times: Sequence[float], first: int = 0) -> tuple[Steps, list[tuple[int, int]]]:
    edges = list(pairwise([int(edge) for edge in np.cumsum([0.0, *times]) * PS]))
    return Steps.of(Step(first + n, a, b, b) for n, (a, b) in enumerate(edges)), edges


def stalled(
    *long: int, first: int = 0, count: int = 20, waited: float = 90.0, passes: float | None = None,
    untraced: UntracedSteps | None = None,
) -> Steps:  # fmt: skip
    """Steps of which some are long and wait for input, and how many steps a pass over the data has."""
    steps, edges = of_edges([LONG if at in long else USUAL for at in range(count)], first)
    waits = Intervals.union((edges[at][0], edges[at][0] + int(waited * PS)) for at in long)
    return steps.paying(waits, passes, untraced)


def bursts(times: list[float], waited: float = 0.95, untraced: UntracedSteps | None = None) -> Steps:
    steps, edges = of_edges(times)
    return steps.paying(Intervals.union((a, a + int(waited * (b - a))) for a, b in edges), None, untraced)


@cases(
    (stalled(4, 15), 19.0),  # on two occasions
    (stalled(4), None),  # a single one of unknown cause may be chance
    (stalled(4, 5), None),  # adjacent ones are one occasion
    # step 10 of the run is the first of the second pass, and step 9 the last of the first one
    (stalled(4, first=5, count=12, passes=10.0), 17.5),
    (stalled(4, first=6, count=12, passes=10.0), 17.5),
    (stalled(4, first=7, passes=10.0), None),  # within a pass
    (stalled(0, passes=10.0), None),  # the first step of the run is no end of a pass
    (stalled(4, first=6, count=9, passes=10.0), None),  # less than a pass: how often does it end?
    (stalled(4, first=6, count=10, passes=10.0), 19.0),
    (stalled(4, 15, waited=44.0), None),  # mostly does something else
    (stalled(4, 15, waited=46.0), 19.0),
    (stalled(50, 150, count=330), 10.0 + 180 / 330),
    (stalled(50, 150, count=350), None),  # little of the time
)
def test_stalls_that_recur_are_part_of_the_mean_step(found: Steps, usual_ms: float | None) -> None:
    long = [step.total_ms > USUAL for step in found.steps]
    assert found.median_ms == USUAL
    assert list(found.stalled) == (long if usual_ms else [])
    assert found.steady == tuple(bool(usual_ms) or not one for one in long)
    assert found.usual_ms == pytest.approx(usual_ms or USUAL)


@cases((730.0, False), (1500.0, True))
def test_a_stall_that_the_untraced_epochs_lack_is_none(total_ms: float, *, is_stall: bool) -> None:
    """One long wait among 20 traced steps; 72 untraced ones run at the median of the others, or stall, too."""
    long = tuple((number, 260.0) for number in (40, 60, 80)) if is_stall else ()
    untraced = UntracedSteps(count=72, median_ms=USUAL, of="steps", total_ms=total_ms, long=long)
    assert any(stalled(10, first=10, passes=20.0).stalled)
    assert any(stalled(10, first=10, passes=20.0, untraced=untraced).stalled) is is_stall


@cases(
    ((), 200, 30_000.0, False),  # twenty passes begin as usual, and steps are long elsewhere
    (((13, 95.0),), 200, 30_000.0, False),  # a long one within a pass
    (((10, 95.0),), 200, 30_000.0, False),  # one of twenty
    (tuple((10 * n, 95.0) for n in range(1, 11)), 200, 30_000.0, True),
    ((), 19, 3_000.0, True),  # one pass only
    (tuple((10 * n + 3, 95.0) for n in range(40)), 400, 60_000.0, True),  # shorter ones untold
    ((), 200, None, True),
)
def test_a_stall_where_a_pass_ends_must_be_in_other_passes(
    long: tuple[tuple[int, float], ...], count: int, total_ms: float | None, *, stalls: bool
) -> None:
    untraced = UntracedSteps(count=count, median_ms=USUAL, of="steps", total_ms=total_ms, long=long)
    assert bool(stalled(4, first=6, passes=10.0, untraced=untraced).stalled) is stalls


@each([150.0, 2.0] * 6, [150.0, 2.0, 2.0] * 5, [150.0, 140.0, 2.0] * 5, [2.0, 160.0] * 3)
def test_steps_short_and_long_in_turn_are_judged_by_all_of_their_time(times: list[float]) -> None:
    steps = bursts(times)
    assert any(steps.stalled)
    assert all(steps.steady)
    assert steps.usual_ms == pytest.approx(sum(times) / len(times))


LACKING = UntracedSteps(count=40, median_ms=2.0, of="steps", total_ms=100.0)


@each(
    bursts([10.0, 11.0, 12.0, 13.0] * 4),  # of one kind
    bursts([150.0, 2.0] * 6, 0.3),  # long for another reason
    bursts([2.0] * 8 + [150.0] * 8),  # a queue that is empty from then on
    bursts([150.0, 2.0] * 6, untraced=LACKING),  # the untraced steps lack them
)
def test_other_steps_are_judged_by_their_median(found: Steps) -> None:
    assert not found.in_bursts


# The steps outside of the traced window: what tracing costs, slow steps, the first ones of a pass.


def beside(untraced: UntracedSteps | None, **told: Any) -> Recording:
    """A recording in which these steps were timed without the profiler."""
    return recording(manifest=manifest(steps=StepsSeen(untraced=untraced, **told)))


@cases(
    ([9.0, 10.0, 11.0, 10.0], UntracedSteps(100, 5.0, "steps"), 2.0),
    # XLA compiles in 11 of 20 traced steps, and in a third of the others: not the profiler's cost
    ([800.0] * 11 + [5.0] * 9, UntracedSteps(100, 8.4, "steps"), 1.0),
    ([6.0, 7.0, 4.0, 4.0], UntracedSteps(100, 4.0, "steps"), 1.25),  # a little: as measured
    ([5.0, 5.0, 5.0], UntracedSteps(100, 10.0, "calls", traced_ms=20.0), 2.0),  # of several steps, as timed
    ([5.0, 6.0], None, 1.0),
    ([5.0, 6.0], UntracedSteps(0, None, "steps"), 1.0),
)
def test_steps_are_slower_traced(traced_ms: list[float], untraced: UntracedSteps | None, slower: float) -> None:
    assert slowdown(beside(untraced), of_times(*traced_ms)) == pytest.approx(slower)


def pace(of: str, median_ms: float | None, *, in_bursts: bool = False) -> UntracedPace:
    steps = replace(Steps.uniform(10, 4.0), in_bursts=in_bursts)
    return UntracedPace.measure(beside(UntracedSteps(count=90, median_ms=median_ms, of=of)), steps)


def test_untraced_steps_are_compared_with_the_traced_ones() -> None:
    found = pace("steps", 6.0)
    assert (found.ratio, found.step_ms, found.traced) == (1.5, 6.0, 10)


@cases(
    (90, 4.0, 400.0, 0.25, True),  # a tenth of their time is beyond the median
    (90, 4.0, 400.0, 0.15, False),
    (9, 4.0, 40.0, 0.25, False),  # fewer than were traced
    (90, 5.1, 510.0, 0.25, False),  # slowed by something else: traced steps take 4 ms
    (90, 4.0, None, 0.25, False),
)
def test_long_steps_that_the_untraced_ones_lack_are_the_traced_steps_alone(
    count: int, median_ms: float, total_ms: float | None, share: float, *, contradicts: bool
) -> None:
    run = beside(UntracedSteps(count=count, median_ms=median_ms, of="steps", total_ms=total_ms))
    assert UntracedPace.measure(run, Steps.uniform(10, 4.0)).contradicts(share) is contradicts


def test_steps_that_trace_a_function_are_long_for_another_reason() -> None:
    """Each of ten epochs traces anew: that says nothing of other long steps."""
    log = RunLog(RunProcess(), {}, {}, (), traces=(FunctionTrace("train_step", ms=2_000.0),))
    of_run = beside(UntracedSteps(count=90, median_ms=4.0, of="steps", total_ms=2_400.0))
    traced = UntracedPace.measure(replace(of_run, run=log), Steps.uniform(10, 4.0))
    assert traced.contradicts(0.25)
    assert traced.beyond_ms == pytest.approx(40 / 90)
    assert not UntracedPace.measure(of_run, Steps.uniform(10, 4.0)).contradicts(0.25)


def slow(untraced: UntracedSteps | None = None, long_ms: float = 200.0) -> SlowSteps:
    """Twenty traced steps of 4 ms, the third of which takes longer."""
    times = [long_ms if at == 2 else 4.0 for at in range(20)]
    return SlowSteps.measure(of_times(*times), beside(untraced))


def test_traced_and_untraced_steps_add_up() -> None:
    untraced = UntracedSteps(count=70, median_ms=3.0, of="steps", total_ms=1200.0, long=((3, 500.0), (40, 480.0)))
    found = slow(untraced)
    assert (found.number, found.timed, found.prevail) == (3, 90, True)
    assert (found.ms, found.timed_ms, found.mean_ms) == pytest.approx((1180.0, 1476.0, 1476.0 / 90))
    assert slow(replace(untraced, total_ms=None, long=())) == slow()
    assert [slow(long_ms=ms).prevail for ms in (76.0, 75.0, 4.0)] == [True, False, False]  # half of the time


FED = Program(datasets=(Dataset(id=1, kind="_BatchDataset", cardinality=30),), feeds=1)
FILLS = ((30, 400.0), (59, 150.0), (60, 390.0), (89, 150.0), (90, 380.0))


def starts(
    *long: tuple[int, float], source: str = "keras-fit", seen: int = 110, program: Program = FED
) -> PassStarts:
    untraced = UntracedSteps(100, 30.0, "steps", total_ms=5000.0, long=long)
    return PassStarts.measure(beside(untraced, source=source, seen=seen), program)


def test_the_first_steps_of_passes_are_told_from_the_last() -> None:
    found = starts(*FILLS)
    assert (found.number, found.pass_steps, found.long_ms, found.usual_ms) == (3, 30, 390.0, 30.0)
    assert (found.share, found.each_step_ms) == pytest.approx((3 * 360.0 / 5000.0, 10.8))
    # Other programs delay a step now and then, which does not raise the share.
    assert starts((30, 3000.0), *FILLS[1:]).share == pytest.approx(3 * 360.0 / 5000.0)


def ended_early(what: str) -> Manifest:
    return manifest(missing=(Missing("samples", "no"), Missing(what, "the run ended early")))


OF_NO_SIZE = Program(datasets=(Dataset(id=1, kind="_BatchDataset"),), feeds=1)

test_what_is_not_known = unavailable(
    (lambda: steps(trace([line("p", *(marker(n, 5, 5) for n in range(3)))])), "take no time"),
    (lambda: steps(trace([line("p", FUNCTION_RUN)])), ""),
    (lambda: steps(trace([line("p", ("train", 0, 9, {"step_num": 0}))])), ""),  # without the root flag
    (lambda: steps(trace([line("p", ("something", 0, 1))])), "record with `tfdoctor profile`"),
    (lambda: steps(trace(None)), ""),
    *((partial(steps, trace([]), ended_early(what)), "^the run ended early$") for what in ("steps", "trace")),
    # Untraced steps: the time of a call leaves out what is between two of them.
    (lambda: pace("calls", 6.0), ""),
    (lambda: pace("steps", None), ""),
    (lambda: pace("steps", 10.7, in_bursts=True), "short and long in turn"),
    # Steps that begin no passes again and again: the ends of passes, a validation
    (lambda: starts(FILLS[1], FILLS[3]), "again and again"),
    (lambda: starts(*FILLS[:1], seen=50), "again and again"),  # once
    (lambda: starts(FILLS[0], FILLS[2], seen=121), "again and again"),  # two of four passes
    (lambda: starts((0, 900.0), FILLS[0], seen=50), "again and again"),  # the first step of the run
    # In other loops the wait for a batch is in the step before, as is what the script does after an epoch.
    (lambda: starts(*FILLS, source="repeated-call"), "was not recorded"),
    (lambda: starts(*FILLS, program=OF_NO_SIZE), "was not recorded"),
)
