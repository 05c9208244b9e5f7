"""The cases of disabled-autotune: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.disabled_autotune import check


def example(
    options: DataOptions = DataOptions({"threading.private_threadpool_size": 1}),
    *stages: StageTime,
    wait: float = 22.0,
    device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(8.0, busy=1.0),
) -> Verdict:
    """A pool of one thread decodes images while seven of eight cores are idle."""
    ahead = StageTime.of("Root::Prefetch"), StageTime.of("Root::Prefetch::ParallelMapV2", 30.0)
    pipeline = InputPipeline.of(*(stages or ahead))
    return check(options, pipeline, Breakdown.of(input=wait, device=10.0), device, cores)


sick = example


def healthy() -> Verdict:
    """The same pipeline with a pool of sixteen threads, which are mostly idle."""
    return example(DataOptions({"threading.private_threadpool_size": 16}))
