"""uneven-replicas: both sides of each limit, and devices that are no replicas."""

from tests.replicas import examine, replica
from tests.rules.kit import *
from tfdoctor.rules.scale import uneven_replicas
from tfdoctor.rules.scale.uneven_replicas import check


def example(lag: float = 4.0, waited: float = 4.0, each: float = 8.0, step: Breakdown | None = None) -> Verdict:
    """One GPU computes for 12 ms, and the other one for 8 ms, after which it waits for 4 ms."""
    computing = {"GPU 0": each + lag, "GPU 1": each}
    skew = DeviceSkew(computing, {"GPU 0": 1.0, "GPU 1": 1.0 + waited})
    return check(skew, step or Breakdown.of(device=12.0, collective=1.0))


def judged(lag: float, waited: float) -> Verdict:
    """Steps of 100 ms."""
    return example(lag, waited, 50.0, Breakdown.of(device=50 + lag, collective=50 - lag))


sick = example
healthy = described("Two GPUs with the same compute time.", example, 0.1, 0.1, 11.9)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a twentieth of the step, and less"] = judged(5.0, 5.0), judged(4.9, 4.9)
    told["trap: parts of one model differ, and do not wait"] = [judged(10.0, waited) for waited in (5.0, 4.9)]
    skew = DeviceSkew({"0": 80.0, "1": 50.0}, {"0": 0.0, "1": 0.0})
    told["devices that exchange nothing"] = check(skew, Breakdown.of(device=80.0))
    for order in ((12, 8, 8), (8, 8, 12)):
        result = examine(uneven_replicas, *(replica(computes, 12) for computes in order))
        told[f"GPUs that compute for {order} ms: the step could be 4 ms shorter"] = result.outcome, result.saving
    equal = [examine(uneven_replicas, *[replica(12, 12)] * number).outcome for number in (3, 1)]
    told["equal replicas, and a single one, which is not compared"] = equal
