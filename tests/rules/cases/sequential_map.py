"""The cases of sequential-map: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.sequential_map import check


def example(
    *stages: StageTime,
    wait: float = 30.0,
    device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(4.0, busy=1.0),
    options: DataOptions | None = None,
) -> Verdict:
    """A map of 40 ms runs on one thread while three of four cores are idle."""
    given = stages or (StageTime.of("Root::Prefetch::Map", 40.0),)
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), *given)
    return check(pipeline, Breakdown.of(input=wait, device=40.0 - wait), device, cores, options)


sick = example


def healthy() -> Verdict:
    """The same map, which tf.data runs on three threads."""
    parallel = StageTime.of("Root::Prefetch::ParallelMapV2", 40.0, threads=3)
    return example(parallel, wait=3.0, cores=Cores(4.0, busy=3.0))
