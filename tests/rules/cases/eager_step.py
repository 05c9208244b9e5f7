"""The cases of eager-step: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.tracing.eager_step import check


def example(
    work: EagerWork = EagerWork(525.0, 12.0, 0.0, asked=True, at=Location("train.py", 19), least_ms=4.0),
    breakdown: Breakdown | None = None,
    slow: SlowCalls | None = None,
    lines: HostLines | None = None,
) -> Verdict:
    """A Keras model compiled with run_eagerly=True: 525 operations per step."""
    return check(work, breakdown or Breakdown.of(host=34.0, device=12.0), slow, lines)


sick = example


def healthy() -> Verdict:
    """The same model without run_eagerly: one function per step."""
    return example(EagerWork(0.0, 0.0, 3.8, asked=False), Breakdown.of(host=1.4, device=3.3))
