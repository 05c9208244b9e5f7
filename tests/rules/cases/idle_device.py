"""The cases of idle-device: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.idle_device import check


def example(
    used: int = 1,
    visible: int = 4,
    replicas: Replicas = Replicas(),
    *,
    kind: DeviceKind = DeviceKind.GPU,
    steps: int = 20,
    missing: Unavailable | None = None,
) -> Verdict:
    """One of four GPUs works."""
    device = Device(kind, visible, used, missing=missing)
    return check(device, replicas, Steps.uniform(steps, 50.0), Framework())


sick = example


def healthy() -> Verdict:
    """All of four GPUs work."""
    return example(used=4)
