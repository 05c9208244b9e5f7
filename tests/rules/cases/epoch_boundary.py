"""The cases of epoch-boundary: what its tests judge, and the examples of its page."""

from collections import defaultdict

from tests.rules.kit import *
from tfdoctor.rules.run.epoch_boundary import check
from tfdoctor.terms.run_time import PhaseSegment

FIT = Location("train.py", 40)

PHASES = {RunCall.EVALUATE: Phase.EVALUATION, RunCall.PREDICT: Phase.PREDICTION, RunCall.SAVE: Phase.SAVING}


def example(
    *calls: MadeCall,
    lines: tuple[RunLine, ...] = (),
    total_ms: float = 67_000.0,
    epochs: int = 10,
    long: LongSteps | None = None,
    spans: tuple[PhaseSegment, ...] = (),
    fits: int = 1,
) -> Verdict:
    """Judge a run of 5,000 steps of 4 ms with these calls and lines."""
    times: dict[Phase, float] = defaultdict(float)
    for call in calls:
        if call.call in PHASES:
            times[PHASES[call.call]] += call.ms
    for line in lines:
        times[line.phase] += line.ms
    run = replace(divided_run(total_ms, times, *lines), spans=spans)
    return check(run, RunCalls(calls, epochs, fits=fits), equal_steps(FIT, 5_000, 4.0, long))


def sick() -> Verdict:
    """A validation of 3,000 batches in each of 10 epochs takes 40 s beside 20 s of training steps."""
    return example(_validated(4_000.0, 3_125.0))


def healthy() -> Verdict:
    """A validation of 100 batches in each of 10 epochs takes 3 s beside 20 s of training steps."""
    return example(_validated(300.0, 100.0), total_ms=30_000.0)


def _validated(each_ms: float, batches: float) -> MadeCall:
    given = {"batches": batches, "examples": 32 * batches, "within": RunCall.EPOCH}
    return made_call(RunCall.EVALUATE, FIT, 10, each_ms, **given)
