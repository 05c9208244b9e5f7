"""The cases of sequential-map: what its tests judge, and the examples of its page."""

from tfdoctor.facts.input.feeding_datasets import DataOptions
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.sequential_map import check
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Verdict


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
