"""The cases of frequent-saving: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.run.frequent_saving import check

AT = Location("train.py", 35)


def example(*calls: MadeCall, total_ms: float = 60_000.0, epochs: int = 10, once_ms: float = 0.0) -> Verdict:
    """Judge a run with these saves, whose other time is in training steps."""
    times = {Phase.SAVING: sum(call.ms for call in calls)}
    phases = replace(divided_run(total_ms, times), once_ms=once_ms)
    return check(phases, RunCalls(calls, epochs))


def sick() -> Verdict:
    """A checkpoint in every fifth of 3,000 steps: 600 times 20 ms of a minute."""
    return example(made_call(RunCall.SAVE, AT, 600, 20.0, looped=True))


def healthy() -> Verdict:
    """A checkpoint of half a second at the end of each of 10 epochs, in ten minutes."""
    return example(made_call(RunCall.SAVE, AT, 10, 500.0, looped=True), total_ms=600_000.0)
