"""between-steps: the time between two calls without tracing and making batches, and the lines it is spent on."""

from tests.rules.kit import *
from tfdoctor.rules.execution import between_steps

WEIGHTS = TimedLine(script(27), 11, callback="Weights.on_train_batch_end")
LOGS, MAKES = script(40), script(12)
TOOK = TimedLine(MAKES, 18), TimedLine(LOGS, 2)
BATCH = TimedLine(MAKES, 18, makes=True), TimedLine(LOGS, 2, makes=False)
NEW: dict[str, Any] = {"new_arguments": ((128, 32),)}
SAMPLE = "Sample.on_train_batch_end"
SAMPLES = TimedLine(MAKES, 19, callback=SAMPLE), TimedLine(LOGS, 1, callback=SAMPLE)


def example(  # noqa: PLR0913 - each may explain the time between two steps
    between: float = 7.0, *places: TimedLine, step: float | None = None,
    new_arguments: tuple[tuple[int, ...], ...] = (), retracing: Retracing | None = None,
    slow: SlowCalls | None = None, untraced: float | None = None, single: SingleOperations | None = None,
    lines: HostLines | None = None, saves: MadeCall | None = None, with_it: int | None = None,
    source: StepSource = StepSource.KERAS_FIT,
) -> Verdict:  # fmt: skip
    """Judge steps that compute for 6 ms, or take ``step``, of which these places were seen between calls.

    ``with_it`` of 30 steps have the time between calls; None is all. The run has 1000 steps and these saves.
    """
    usual = Breakdown.of(between=between, device=step - between if step else 6.0)
    rows = [{**usual.median, Stage.BETWEEN: between if at < (with_it or 0) else 0.1} for at in range(30)]
    usual = usual if with_it is None else replace(usual, steps=tuple(rows))
    samples = StackSamples(places, new_arguments=new_arguments) if places else None
    pace = None if untraced is None else UntracedPace(untraced, 20.0 * untraced)
    calls, run = RunCalls((saves,), epochs=1) if saves else None, equal_steps(script(1), 1000, 10.0)
    steps = replace(Steps.uniform(20, 13.0), source=source)
    return between_steps.check(usual, samples, retracing, slow, pace, single, lines, calls, run, steps)


def logs(seen: int, callback: str = "Log.on_batch_end") -> TimedLine:
    return TimedLine(LOGS, seen, callback=callback)


def slow(kind: SlowCall, seen: int, ms: float) -> SlowCalls:
    return SlowCalls((TimedLine.slow(MAKES, kind, seen, range(seen), {Stage.BETWEEN: ms}),), 20)


def tracing(between_ms: float = 0.0, calling_ms: float = 0.0) -> Retracing:
    return Retracing((), 0.0, between_ms, calling_ms)


def saves(each_ms: float) -> MadeCall:
    return made_call(RunCall.SAVE, LOGS, 1000, each_ms)


def ran(at: Location, seen: int, work: LineWork = LineWork.OPERATIONS) -> TimedLine:
    return TimedLine(at, seen, 1.0, work=work)


def lines(within: TimedLine, *between: TimedLine) -> HostLines:
    return HostLines({Stage.HOST: (within,), **({Stage.BETWEEN: between} if between else {})})


sick = described("A callback takes 7 ms of each 13 ms step.", example, 7.0, WEIGHTS)
healthy = described("Steps of 6 ms with a pause of 0.1 ms between them.", example, 0.1)
check = partial(example, step=20.0)
SAVED = (logs(9, "ModelCheckpoint.on_train_batch_end"),)
PREDICTS: dict[str, Any] = {"slow": slow(SlowCall.PREDICT, 18, 7.2)}


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = [check(ms) for ms in (1.0, 0.99)]
    told["half a millisecond, and less, which Keras' own loop takes"] = [check(ms, step=2.0) for ms in (0.5, 0.49)]
    told["in a loop of ones own nothing says what takes it"] = check(
        0.49, step=2.0, source=StepSource.REPEATED_CALL
    )
    told["90 % of the samples are on the lines that make arguments, new in each step"] = check(8.0, *BATCH, **NEW)
    told[...] = check(12.0, *BATCH, **NEW)
    told["what stays the same is no batch"] = check(8.0, *BATCH[:1])
    told["a checkpoint every fourth batch, which the mean has in each step"] = check(3.0, logs(9), with_it=10)
    told[...] = check(3.0, logs(9), with_it=11)
    told["ModelCheckpoint saves every batch of the run's 1000, which leaves less than a twentieth, or more"] = [
        check(10.0, *SAVED, saves=saves(each_ms)) for each_ms in (9.1, 8.9)
    ]
    told["predict is left to slow-call, not the rest"] = [check(ms, *TOOK, **PREDICTS) for ms in (8.0, 12.0)]
    told["a callback that is all predict"] = check(10.0, *SAMPLES, slow=slow(SlowCall.PREDICT, 18, 9.0))
    # A marked call begins within the tf.function, after Python has found or made its graph
    told["calls and traces of functions are not counted"] = check(10.0, retracing=tracing(between_ms=9.5))
    told[...] = check(1.2, retracing=tracing(calling_ms=0.3)), check(0.1 + 0.2, retracing=tracing(calling_ms=0.3))
    told["all 18.6 ms are told, and not all judged"] = check(18.6, step=40.0, retracing=tracing(calling_ms=17.5))
    told["the last 10 ms of `optimizer.apply`, after the last operation that it runs"] = check(
        10.0, TimedLine(MAKES, 40), TimedLine(LOGS, 10), lines=lines(ran(MAKES, 30), ran(MAKES, 10))
    )
    told["a line is the step's own when it mostly runs operations in it"] = [
        check(10.0, TimedLine(LOGS, 19), lines=lines(within, ran(LOGS, 10)))
        for within in (ran(LOGS, 9), ran(LOGS, 30, LineWork.PYTHON))
    ]
    told["only the step was seen, or another line"] = check(10.0, TimedLine(MAKES, 30), lines=lines(ran(MAKES, 30)))
    told[...] = check(10.0, TimedLine(LOGS, 30), lines=lines(ran(MAKES, 30)))
    told["what runs only between eager steps is named"] = check(
        10.0, TimedLine(MAKES, 40), TimedLine(LOGS, 10), lines=lines(ran(MAKES, 30), ran(MAKES, 10), ran(LOGS, 10))
    )
    told["without samples of stacks it has no name and a ceiling"] = check(10.0)
    told["untraced steps a quarter longer, less"] = [
        check(10.0, untraced=untraced) for untraced in (1.25, 1.24, 0.8)
    ]
    told["less than half is not named in the summary"] = check(10.0, *(TimedLine(script(n), 2) for n in (1, 2, 3)))
    told["five samples are enough for a line"] = [check(12.0, TimedLine(LOGS, seen)) for seen in (4, 5)]
    other = TimedLine(script(41), 3, callback="Log.on_batch_end")
    told["a callback is named over all of its lines"] = check(10.0, logs(4), other, TimedLine(MAKES, 6))
    told["a named callback leaves a hundredth and what else ran"] = check(10.0, logs(8), TimedLine(MAKES, 2))
    places = logs(10, WEIGHTS.callback), replace(WEIGHTS, at=MAKES, seen=8), TimedLine(None, 2)
    weights, single = slow(SlowCall.WEIGHTS, 8, 4.0), SingleOperations(0.0, 2.0)
    told["get_weights and a histogram of each: to run the callback rarely spares both, and its operations"] = check(
        10.0, *places, slow=weights, single=single
    )
    told["fit for one batch builds a dataset of operations, which are spared with it"] = (
        check(10.0, single=SingleOperations(inside_ms=1.0, between_ms=4.0)),
        check(10.0, retracing=tracing(calling_ms=5.0), single=SingleOperations(0.0, between_ms=4.0)),
    )
