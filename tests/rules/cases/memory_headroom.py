"""The cases of memory-headroom: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.scale.memory_headroom import check


def example(
    allocator: Allocator | None = Allocator("GPU_0_bfc", 15.5e9, 15.4e9, 15.4e9),
    host: HostMemory | Unavailable = HostMemory(64e9, 20e9),
    tuned: TunedBuffers | None = None,
) -> Verdict:
    """On a GPU, 15.4 of 15.5 GB are in use."""
    device = DeviceMemory((allocator,)) if allocator else Unavailable("no accelerator")
    return check(device, host, tuned)


sick = example


def healthy() -> Verdict:
    """The host's memory is a third full, and no task waits for memory."""
    return example(None, HostMemory(64e9, 20e9, stalled=0.0))
