"""The cases of slow-prediction: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.slow_prediction import check

AT = Location("predict.py", 20)


def example(
    *calls: MadeCall,
    lines: tuple[RunLine, ...] = (),
    total_ms: float = 50_000.0,
    epochs: int = 0,
    steps: RunSteps | None = None,
) -> Verdict:
    """Judge a run with these calls and lines, whose other time is in training steps."""
    predicting = sum(one.ms for one in calls) + sum(one.ms for one in lines)
    phases = divided_run(total_ms, {Phase.PREDICTION: predicting}, *lines)
    return check(phases, RunCalls(calls, epochs), steps)


def sick() -> Verdict:
    """A loop calls predict for each of 1,000 examples: 40 of 50 s."""
    return example(made_call(RunCall.PREDICT, AT, 1_000, 40.0, looped=True, examples=1.0))


def healthy() -> Verdict:
    """One call predicts 100,000 examples in 12 s, in batches of 256."""
    call = made_call(RunCall.PREDICT, AT, 1, 12_000.0, examples=100_000.0, batches=391.0)
    return example(call, total_ms=22_000.0)
