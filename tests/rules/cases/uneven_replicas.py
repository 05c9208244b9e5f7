"""The cases of uneven-replicas: what its tests judge, and the examples of its page."""

from tfdoctor.facts.scale.replicas import DeviceSkew
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.scale.uneven_replicas import check
from tfdoctor.terms.verdict import Verdict


def example(lag: float = 4.0, waited: float = 4.0, each: float = 8.0, step: Breakdown | None = None) -> Verdict:
    """One GPU computes for 12 ms, and the other one for 8 ms, after which it waits for 4 ms."""
    computing = {"GPU 0": each + lag, "GPU 1": each}
    skew = DeviceSkew(computing, {"GPU 0": 1.0, "GPU 1": 1.0 + waited})
    return check(skew, step or Breakdown.of(device=12.0, collective=1.0))


sick = example


def healthy() -> Verdict:
    """Two GPUs with the same compute time."""
    return example(0.1, 0.1, 11.9)
