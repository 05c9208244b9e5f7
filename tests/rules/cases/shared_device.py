"""The cases of shared-device: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.scale.shared_device import CopiedWork, check

SMALL = OperationTime(name="replica_1/dense/MatMul", type="MatMul", ms=0.017, calls=1.0)


UPDATES = OperationTime(name="adam/update_1/Mul", type="Mul", ms=0.3, calls=217.0)


def example(
    replicas: Replicas = Replicas("MirroredStrategy", 2, 0, batch=128, divided=True, sharing=2),
    copied: CopiedWork | None = CopiedWork((SMALL,), updates=(UPDATES,)),
    step: Breakdown | None = None,
    overhead: PythonOverhead | None = PythonOverhead(0.8, 0.1),
) -> Verdict:
    """Two replicas of a small model on one processor."""
    parts = step or Breakdown.of(device=1.0, host=1.2, collective=0.3)
    return check(replicas, parts, copied, overhead)


sick = example


def healthy() -> Verdict:
    """Two replicas, each on a GPU."""
    return example(Replicas("MirroredStrategy", 2, 2, batch=128, divided=True, sharing=1))
