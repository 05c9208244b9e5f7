"""The cases of collective-bound: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.scale.collective_bound import check


def sick() -> Verdict:
    """An all-reduce of 5 ms follows 15 ms of compute."""
    return check(Breakdown.of(device=15.0, collective=5.0), None, None, Replicas())


def healthy() -> Verdict:
    """An all-reduce of which 0.5 ms are exposed."""
    return check(Breakdown.of(device=19.5, collective=0.5), None, None, Replicas())
