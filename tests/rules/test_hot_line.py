"""hot-line: the lines that take the host's time, where no other finding explains it."""

from tests.rules.kit import *
from tfdoctor.rules.execution import hot_line

HISTOGRAM = TimedLine(script(36), 20, 4.3, calls={"numpy.histogram": 16, "": 4})
LINE, OTHER = script(36), script(37)
PREDICTS = TimedLine(LINE, 20, 8.0, calls={"keras.src.trainer.Trainer.predict": 20})
PYTHON = (TimedLine(LINE, 10, 4.0),)
MODEL = script(9)
LONG, LONG_OTHER = TimedLine(LINE, 20, 8.0), TimedLine(OTHER, 20, 8.0)


def example(  # noqa: PLR0913 - each says of a line that it is another finding's
    *lines: TimedLine, step: Breakdown | None = None, left: Mapping[str, float] | None = None,
    between: tuple[TimedLine, ...] = (), subjects: frozenset[str] = frozenset(), around: Location | None = None,
    model: Location | None = None, makers: tuple[TimedLine, ...] = (),
) -> Verdict:  # fmt: skip
    """A line calls numpy.histogram in each step, for 4.3 of 11 ms."""
    parts: Mapping[str, float] = {Stage.HOST: 6.6} if left is None else left
    seen = {Stage.HOST: lines or (() if between else (HISTOGRAM,)), Stage.BETWEEN: between}
    whole = step or Breakdown.of(host=6.6, device=4.4)
    outer = frozenset((around,) if around else ())
    samples = StackSamples(makers, new_arguments=((64, 16),), models_at=frozenset((model,) if model else ()))
    return hot_line.check(Unexplained(parts, subjects), whole, HostLines(seen, outer), samples)


def check(*lines: TimedLine, host: float = 8.0, **more: Any) -> Verdict:
    """Judge lines of steps of 20 ms, 8 of them the host's."""
    left: dict[str, float] = {Stage.HOST: host} if host else {}
    if more.get("between"):
        left[Stage.BETWEEN] = 4.0
    step = Breakdown.of(host=8.0, between=4.0, device=8.0)
    return example(*lines, step=step, left=left, **more)


def about(*work: StepWork) -> dict[str, Any]:
    """Another finding is about this work."""
    return {"subjects": frozenset(work)}


def seen(work: LineWork, time_ms: float = 4.0) -> TimedLine:
    return TimedLine(LINE, 20, time_ms, work=work)


sick = example
healthy = described("Other findings explain the host's time.", example, left={})
READS = (seen(LineWork.READING),)
ENTERS = (seen(LineWork.ENTERING),)
MAKERS = tuple(TimedLine(one, seen, makes=True) for one, seen in ((LINE, 9), (OTHER, 5)))
BATCHES = {"makers": MAKERS, **about(StepWork.MAKING_BATCHES)}


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a millisecond of the step, and less"] = check(TimedLine(LINE, 10, 1.0)), check(TimedLine(LINE, 50, 0.99))
    told["nine samples are too few"] = check(TimedLine(LINE, 9, 1.0))
    told["predict, which slow-call may name"] = check(PREDICTS), check(PREDICTS, **about(StepWork.SLOW_CALLS))
    told["busy machines start fit's function for a tenth of a traced step"] = check(seen(LineWork.ENTERING, 8.0))
    told["Python outside of the user's lines, unless it is a callback"] = check(TimedLine(None, 20, 8.0))
    told[...] = check(TimedLine(None, 20, 8.0, "Log.on_batch_end"))
    told["explained time"] = check(LONG, host=0.0)
    told["a line that waits for the function's operations"] = check(seen(LineWork.DISPATCHING, 8.0))
    told["a line that reads between the steps, which another finding may name"] = check(between=READS)
    told[...] = check(between=READS, **about(StepWork.READING_RESULTS))
    told["a line that enters the step, which another finding may name"] = check(between=ENTERS)
    told[...] = check(between=ENTERS, **about(StepWork.STEP_ENTRY))
    told["a line of Python between the steps, which another finding may name"] = check(between=PYTHON)
    told[...] = check(between=PYTHON, **about(StepWork.BETWEEN_CALLS))
    told["a line makes batches, as python-input may name"] = check(LONG, makers=MAKERS), check(LONG, **BATCHES)
    told["where a model decides the data, python-input has the first line"] = check(LONG, model=MODEL, **BATCHES)
    told[...] = check(LONG_OTHER, model=MODEL, **BATCHES)
    draws = "numpy.random.permutation", "random.Random.sample", "tensorflow.random.uniform"
    told["a random draw is not made once"] = [check(TimedLine(LINE, 20, 8.0, calls={calls: 20})) for calls in draws]
    told["fit's own iterator takes 15 % of short steps, and its line has nothing to change"] = check(
        TimedLine(LINE, 20, 3.0, work=LineWork.LOOPING), TimedLine(OTHER, 2, 0.3)
    )
    # between-steps leaves out the calls of compiled functions: nothing else names this line
    starts = TimedLine(LINE, 10, 3.5, work=LineWork.ENTERING)
    told["starting functions between calls is no other finding's, unless it makes what comes next"] = (
        check(between=(starts, TimedLine(OTHER, 10, 2.0)), **about(StepWork.BETWEEN_CALLS)),
        check(between=(starts,), model=LINE),
    )
    told["no more promised than unexplained"] = check(TimedLine(LINE, 20, 5.0), TimedLine(OTHER, 12, 3.0), host=6.0)
    lines = [TimedLine(script(n), 4, 0.9, calls={"": 4}, callers={LINE: 4}) for n in (4, 5, 6)]
    told["lines of one function are named by its call, unless that is the function of the loop"] = check(*lines)
    told[...] = check(*lines, around=LINE)
    told["lines of a callback are named by it"] = check(between=(TimedLine(LINE, 10, 4.0, "Log.on_batch_end"),))
