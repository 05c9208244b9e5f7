"""The cases of slow-evaluation: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_evaluation import check

AT = Location("evaluate.py", 31)


def example(
    *calls: MadeCall, lines: tuple[RunLine, ...] = (), total_ms: float = 110_000.0, epochs: int = 0
) -> Verdict:
    """Judge a run with these calls and lines, whose other time is in training steps."""
    times = {Phase.EVALUATION: sum(call.ms for call in calls)}
    for line in lines:
        times[line.phase] = times.get(line.phase, 0.0) + line.ms
    return check(divided_run(total_ms, times, *lines), RunCalls(calls, epochs), None)


def sick() -> Verdict:
    """A loop calls evaluate for each of 600 batches after the training: 30 of 110 s."""
    each = {"looped": True, "examples": 32.0, "batches": 1.0, "after_training": True}
    return example(made_call(RunCall.EVALUATE, AT, 600, 50.0, **each))


def healthy() -> Verdict:
    """One call evaluates 50,000 examples in 24 s: 15 ms for each batch of 32."""
    call = made_call(RunCall.EVALUATE, AT, 1, 24_000.0, examples=50_000.0, batches=1563.0)
    return example(call, total_ms=104_000.0)
