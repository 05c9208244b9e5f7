"""Where the steps are: markers, a device's own line, calls of Keras' train function, or nowhere."""

from tests.facts.kit import *

told = Told()


def steps(of: Trace, beside: Manifest | None = None) -> Steps:
    return chart(of, recording(manifest=beside)).fact(Steps)


def said(of: Trace, beside: Manifest | None = None) -> object:
    """Where the steps are from, and each one's number, begin, end, end of its call, and steps in its call."""
    found = steps(of, beside)
    times = ((s.number, s.start_ps / PS, s.end_ps / PS, s.call_end_ps / PS, s.calls) for s in found.steps)
    return {"source": found.source, "steps": [*times], "count": found.count}


def of_edges(times: Sequence[float], first: int = 0) -> tuple[Steps, list[tuple[int, int]]]:
    edges = list(pairwise([int(edge) for edge in np.cumsum([0.0, *times]) * PS]))
    return Steps.of(Step(first + n, a, b, b) for n, (a, b) in enumerate(edges)), edges


def of_times(*times: float) -> Steps:
    return of_edges(times)[0]


# Markers


def named(name: str, start: float, end: float, number: int) -> Row:
    return (name, start, end, {"_r": 1, "step_num": number})


def call(start: float, end: float, function: str) -> tuple[Row, ...]:
    inner: Row = ("EagerExecute", start + 0.1, end - 0.1, {"eager_op": function})
    return ("train_function", start, end), inner


def keras2(*numbers: int, each: float = 10) -> Thread:
    """What Keras 2 puts around a call: its numbers begin anew with each epoch, and tell not how many steps."""
    stats = [{"_r": 1, "step_num": number, "batch_size": 8} for number in numbers]
    return line("p", *(("train", at * each, at * each + 8, stat) for at, stat in enumerate(stats)))


def looped() -> Thread:
    """The loop in each of three calls of Keras 2: four iterations."""
    bodies = ("gradient_tape/MatMul:MatMul", "Adam/AssignSub:AssignSub")
    inside: list[Row] = []
    for at in (0.0, 100.0, 200.0):
        inside.append(("ExecutorState::Process", at, at + 8, {"id": round(at) + 1}))
        inside += [("while/cond/_0/Less:Less", at + 2 * n, at + 2 * n) for n in range(5)]
        inside += [(f"while/body/_1/{b}", at + 2 * n + 1, at + 2 * n + 1.5) for n in range(4) for b in bodies]
    return line("tf_Compute", *inside)


FUNCTION_RUN: Row = ("FunctionRun", 1, 8, {"_r": 1, "id": 3})
BY_TFDOCTOR = [marker(n, 10 * n, 10 * n + 9, steps=1) for n in range(3)]
BY_THE_SCRIPT = [named("train", 10 * n + 1, 10 * n + 8, 5) for n in range(3)]
KERAS = ("multi_step_on_iterator", "train_function")
TWO = marker(0, 0, 9), marker(1, 10, 19)
OVERLAP = line("a", marker(0, 0, 15)), line("b", marker(1, 10, 25))
BUSY = v100(line("Stream #1(Compute)", ("k", 0, 9), ("k", 10, 19)), line("Steps", ("21", 0, 9), ("22", 10, 20)))
IDLE = v100(line("Stream #1(Compute)", ("k", 0, 1)), line("Steps", ("0", 0, 99)))
TPU = device(line("XLA Ops", ("%fusion", 0, 9)), line("Steps", ("0", 0, 9), ("1", 10, 19)))
FIRST_KNOWN = TracedWindow(first_step=40, steps=20, calls=4)
OF_KERAS = manifest(window=FIRST_KNOWN, steps=StepsSeen(source="keras-fit", discarded=(50,)))
OF_LOOP = manifest(steps=StepsSeen(source="tf-data-loop", discarded=(1, 2)))

told[lambda *rows: said(trace([line("p", *rows)]))] = {
    "a step lasts until the next begins": (marker(7, 0, 8), marker(8, 10, 18)),
    "or until the end of the window": (marker(0, 5, 8), ("tfdoctor_end", 10, 10)),
    "if that comes after it": (("tfdoctor_end", 1, 1), marker(0, 5, 8)),
    "tfdoctor's markers go before the script's": (*BY_TFDOCTOR, *BY_THE_SCRIPT),
    **{
        f"a marker of {name}": [named(name, 0, 8, 0)] for name in ("train", "TraceContext", "step", "Training step")
    },
    "a test is no step": (*TWO, named("test", 20, 30, 2)),
    "nor is the run of a function": (*TWO, FUNCTION_RUN),
    **{f"calls of {name} are steps": ((name, 0, 8), (name, 10, 18)) for name in KERAS},
    "of two training functions the longer one": (*call(0, 9, "a"), *call(10, 12, "b"), *call(20, 29, "a")),
    "one call may hold several training steps": (marker(0, 0, 38, steps=4), marker(4, 40, 78, steps=4)),
    "a call of no step is one": [marker(0, 0, 8, steps=0)],
}
told[said] = {
    "the last call ends before its step": trace([markers(3, step=10, call=8)]),
    "no call ends after its step": trace(OVERLAP),
    # Those discarded still end the one before.
    "the recorder knows which steps count and whose its markers are": (trace([markers(4, step=10)]), OF_LOOP),
    "numbers that begin anew are numbered through": trace([keras2(7, 8, 9, 0, 1)]),
    "or as the recorder knows the first number and the steps of a call": (trace([keras2(15, 0, 5, 10)]), OF_KERAS),
    "without a recorder the loop in a call tells its steps": trace([keras2(0, 4, 8, each=100), looped()]),
    "a device counts its own steps": trace([], gpus=[IDLE, BUSY]),
    "a TPU too": trace([], tpus=[TPU]),
    "markers go before": trace([markers(3, step=10)], gpus=[BUSY]),
}


# What is typical


def test_the_mean_keeps_the_outliers() -> None:
    found = of_times(10, 10, 10, 10, 110)
    assert (found.mean_ms, found.median_ms, found.percentile_ms(100)) == (30, 10, 110)
    assert even_steps(3, 2.5) == of_times(2.5, 2.5, 2.5)


def test_the_window_holds_the_typical_steps_half_open() -> None:
    window = of_times(10, 10, 100, 10, 10).steady_spans
    times = np.array([-1, 0, 9.999, 10, 20, 119.9, 120, 139.9, 140]) * PS
    inside = window.holds(times.astype(np.int64)).tolist()
    assert inside == [False, True, True, True, False, False, True, True, False]


USUAL, LONG = 10.0, 100.0


def typical(found: Steps) -> object:
    """Which steps are left out, which are stalls, and how long a usual step is."""
    assert [step for step, usual in zip(found.steps, found.steady, strict=True) if usual] == [*found.steady_steps]
    left, stalls = (
        [at for at, one in enumerate(which) if one] for which in ((not s for s in found.steady), found.stalled)
    )
    return {"left out": left, "stalled": stalls, **fields(found, "median_ms usual_ms in_bursts")}


def compiling(*which: int) -> Steps:
    """Steps of 10 ms; these compile for 8 of them."""
    rows = [("XlaCompile" if at in which else "Add", at * 10 + 1, at * 10 + 9) for at in range(8)]
    return steps(trace([markers(8, step=10, call=9), line("compiler", *rows)]))


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


def untraced(count: int, total_ms: float | None, *long: Any, median_ms: float | None = USUAL) -> UntracedSteps:
    return UntracedSteps(count=count, median_ms=median_ms, of="steps", total_ms=total_ms, long=long)


def of_epochs(*of: Any) -> Steps:
    """One long wait among 20 traced steps, and 72 untraced ones, if any."""
    return stalled(10, first=10, passes=20.0, untraced=untraced(*of) if of else None)


def of_passes(*of: Any) -> Steps:
    """One long wait at the end of a pass of ten steps, and the untraced steps."""
    return stalled(4, first=6, passes=10.0, untraced=untraced(*of))


told[typical] = {
    "a far outlier": of_times(90, 10, 11, 10, 11, 10, 11),
    "a long step below the floor": of_times(10, 10, 10, 10, 12.9),
    "a long step above the floor": of_times(10, 10, 10, 10, 13.1),
    "too few to tell": of_times(10, 10, 500),
    # A quarter of long steps moves the quartiles: one would pass for usual.
    "steps that mostly compile are not typical": compiling(1, 4, 6),
    "where most compile that is the typical step": compiling(0, 1, 4, 6),
    "and where all do": compiling(*range(8)),
    "stalls on two occasions are part of the mean step": stalled(4, 15),
    "a single one of unknown cause may be chance": stalled(4),
    "adjacent ones are one occasion": stalled(4, 5),
    "step 10 of the run is the first of the second pass": stalled(4, first=5, count=12, passes=10.0),
    "and step 9 the last of the first one": stalled(4, first=6, count=12, passes=10.0),
    "a stall within a pass": stalled(4, first=7, passes=10.0),
    "the first step of the run is no end of a pass": stalled(0, passes=10.0),
    "of less than a pass nobody knows how often it ends": stalled(4, first=6, count=9, passes=10.0),
    "of a whole pass it is known": stalled(4, first=6, count=10, passes=10.0),
    "a step that mostly does something else": stalled(4, 15, waited=44.0),
    "a step that mostly waits": stalled(4, 15, waited=46.0),
    "stalls of some of the time": stalled(50, 150, count=330),
    "stalls of little of the time": stalled(50, 150, count=350),
    "a stall without untraced epochs": of_epochs(),
    "one that the untraced epochs lack": of_epochs(72, 730.0),
    "one that untraced epochs have, too": of_epochs(72, 1500.0, *((number, 260.0) for number in (40, 60, 80))),
    "twenty passes begin as usual, and steps are long elsewhere": of_passes(200, 30_000.0),
    "a long step within a pass": of_passes(200, 30_000.0, (13, 95.0)),
    "a long step at one of twenty passes": of_passes(200, 30_000.0, (10, 95.0)),
    "a long step at each of ten passes": of_passes(200, 30_000.0, *((10 * n, 95.0) for n in range(1, 11))),
    "a single pass": of_passes(19, 3_000.0),
    "shorter ones untold": of_passes(400, 60_000.0, *((10 * n + 3, 95.0) for n in range(40))),
    "passes of unknown time": of_passes(200, None),
    "steps short and long in turn are judged by all of their time": bursts([150.0, 2.0] * 6),
    "one of three steps is long": bursts([150.0, 2.0, 2.0] * 5),
    "two of three steps are long": bursts([150.0, 140.0, 2.0] * 5),
    "each second step is long": bursts([2.0, 160.0] * 3),
    "steps of one kind": bursts([10.0, 11.0, 12.0, 13.0] * 4),
    "steps long for another reason": bursts([150.0, 2.0] * 6, 0.3),
    "a queue that is empty from then on": bursts([2.0] * 8 + [150.0] * 8),
    "the untraced steps lack long ones": bursts([150.0, 2.0] * 6, untraced=untraced(40, 100.0, median_ms=2.0)),
}


# The steps outside of the traced window: what tracing costs, slow steps, the first ones of a pass.


def beside(untraced: UntracedSteps | None, **told: Any) -> Recording:
    """A recording in which these steps were timed without the profiler."""
    return recording(manifest=manifest(steps=StepsSeen(untraced=untraced, **told)))


test_steps_are_slower_traced = answers(
    lambda traced_ms, *without: slowdown(
        beside(UntracedSteps(*without) if without else None), of_times(*traced_ms)
    ),
    ([9.0, 10.0, 11.0, 10.0], 100, 5.0, "steps", 2.0),
    # XLA compiles in 11 of 20 traced steps, and in a third of the others: not the profiler's cost
    ([800.0] * 11 + [5.0] * 9, 100, 8.4, "steps", 1.0),
    ([6.0, 7.0, 4.0, 4.0], 100, 4.0, "steps", 1.25),  # a little: as measured
    ([5.0, 5.0, 5.0], 100, 10.0, "calls", 20.0, 2.0),  # of several steps, as timed
    ([5.0, 6.0], 1.0),
    ([5.0, 6.0], 0, None, "steps", 1.0),
)


def pace(of: str, median_ms: float | None, *, in_bursts: bool = False) -> UntracedPace:
    steps = replace(even_steps(10, 4.0), in_bursts=in_bursts)
    return UntracedPace.measure(beside(UntracedSteps(count=90, median_ms=median_ms, of=of)), steps)


told.add("untraced steps are compared with the traced ones", lambda: pace("steps", 6.0))


def alone(count: int, median_ms: float, total_ms: float | None, log: RunLog | None = None) -> UntracedPace:
    """The pace of the untraced ones beside ten traced steps of 4 ms."""
    run = beside(untraced(count, total_ms, median_ms=median_ms))
    return UntracedPace.measure(replace(run, run=log), even_steps(10, 4.0))


test_long_steps_that_the_untraced_ones_lack_are_the_traced_steps_alone = answers(
    lambda share, *of: alone(*of).contradicts(share),
    (0.25, 90, 4.0, 400.0, True),  # a tenth of their time is beyond the median
    (0.15, 90, 4.0, 400.0, False),
    (0.25, 9, 4.0, 40.0, False),  # fewer than were traced
    (0.25, 90, 5.1, 510.0, False),  # slowed by something else: traced steps take 4 ms
    (0.25, 90, 4.0, None, False),
)


def test_steps_that_trace_a_function_are_long_for_another_reason() -> None:
    """Each of ten epochs traces anew: that says nothing of other long steps."""
    log = RunLog(RunProcess(), {}, {}, (), traces=(FunctionTrace("train_step", ms=2_000.0),))
    traced = alone(90, 4.0, 2_400.0, log)
    assert traced.contradicts(0.25)
    assert traced.beyond_ms == pytest.approx(40 / 90)
    assert not alone(90, 4.0, 2_400.0).contradicts(0.25)


def slow(without: UntracedSteps | None = None, long_ms: float = 200.0) -> SlowSteps:
    """Twenty traced steps of 4 ms, the third of which takes longer."""
    times = [long_ms if at == 2 else 4.0 for at in range(20)]
    return SlowSteps.measure(of_times(*times), beside(without))


told[slow] = {
    "traced and untraced steps add up": untraced(70, 1200.0, (3, 500.0), (40, 480.0), median_ms=3.0),
    "untraced ones of unknown time count for nothing": untraced(70, None, median_ms=3.0),
    "nor those that were not timed": None,
    **{f"a step of {ms} ms beside 19 of 4 ms": (None, ms) for ms in (76.0, 75.0, 4.0)},  # half of the time
}

test_steps = told.test("steps")

EARLY = [
    manifest(missing=(Missing("samples", "no"), Missing(of, "the run ended early"))) for of in ("steps", "trace")
]

test_what_is_not_known = unavailable(
    (lambda: steps(trace([line("p", *(marker(n, 5, 5) for n in range(3)))])), "take no time"),
    (lambda: steps(trace([line("p", FUNCTION_RUN)])), ""),
    (lambda: steps(trace([line("p", ("train", 0, 9, {"step_num": 0}))])), ""),  # without the root flag
    (lambda: steps(trace([line("p", ("something", 0, 1))])), "record with `tfdoctor profile`"),
    (lambda: steps(trace(None)), ""),
    *((partial(steps, trace([]), early), "^the run ended early$") for early in EARLY),
    # Untraced steps: the time of a call leaves out what is between two of them.
    (lambda: pace("calls", 6.0), ""),
    (lambda: pace("steps", None), ""),
    (lambda: pace("steps", 10.7, in_bursts=True), "short and long in turn"),
)
