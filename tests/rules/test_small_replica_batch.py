"""small-replica-batch: both sides of each limit, and batches that nobody divides."""

from tests.rules.kit import *
from tfdoctor.rules.scale.small_replica_batch import check


def example(
    batch: int | None = 32, step: Breakdown | None = None, *, replicas: int | None = 4, divided: bool = True,
    device: Device = Device(DeviceKind.GPU, 4, 4),
) -> Verdict:  # fmt: skip
    """A batch of 32 on four GPUs: launches and the exchange take half of the step."""
    job = Replicas(replicas, 4, batch=batch, divided=divided)
    return check(job, step or Breakdown.of(device=10.0, host=6.0, collective=4.0), device)


sick = example
healthy = described(
    "A batch of 256 on four GPUs.", example, 256, Breakdown.of(device=50.0, host=1.0, collective=4.0)
)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["31 examples each, and 32"] = example(124), example(128)
    told["the fixed cost is 30 % of the step, and less"] = example(step=Breakdown.of(host=30.0, device=100 - 30.0))
    told[...] = example(step=Breakdown.of(host=29.9, device=100 - 29.9))
    told["trap: distribute_datasets_from_function makes the batch of one replica"] = example(64, divided=False)
    told[...] = example(64, divided=True)
    told["one replica, and an unknown number"] = example(32, replicas=1), example(32, replicas=None)
    told["an unknown batch"] = example(None)
    told["a wait for input"] = example(step=Breakdown.of(host=50.0, device=50.0, input=20.0))
    unrecorded = Device(DeviceKind.GPU, 4, 0, missing=NO_CUPTI)
    told["kernels that were not recorded"] = example(32, device=unrecorded)
