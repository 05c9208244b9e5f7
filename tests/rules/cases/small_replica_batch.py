"""The cases of small-replica-batch: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.scale.small_replica_batch import check


def example(
    batch: int | None = 32,
    step: Breakdown | None = None,
    *,
    replicas: int | None = 4,
    divided: bool = True,
    device: Device = Device(DeviceKind.GPU, 4, 4),
) -> Verdict:
    """A batch of 32 on four GPUs: launches and the exchange take half of the step."""
    job = Replicas("MirroredStrategy", replicas, 4, batch=batch, divided=divided)
    return check(job, step or Breakdown.of(device=10.0, host=6.0, collective=4.0), device)


sick = example


def healthy() -> Verdict:
    """A batch of 256 on four GPUs."""
    return example(256, Breakdown.of(device=50.0, host=1.0, collective=4.0))
