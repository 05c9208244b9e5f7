"""The cases of starved-cpu: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.input.starved_cpu import check
from tfdoctor.rules.input.starved_cpu.cpu_pressure import CpuPressure


def example(
    work: float = 28.0,
    *,
    breakdown: Breakdown | None = None,
    cores: Cores = Cores(2.0, 1.9),
    device: Device = Device(DeviceKind.CPU, 1, 1),
    pressure: CpuPressure | None = None,
    decodes: DecodedImages | None = None,
    **more: Any,
) -> Verdict:
    """A decode takes 28 of the 30 ms of core time that two cores offer in a step of 15 ms."""
    stage = StageTime.of("Root::Prefetch::ParallelMapV2", work, cores.busy, **more)
    step = breakdown or Breakdown.of(input=11.0, device=4.0)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage),
        step,
        cores,
        device,
        pressure or CpuPressure(),
        CpuContention.measure(device, cores, step),
        decodes,
    )


sick = example


def healthy() -> Verdict:
    """A smaller decode, for which the step does not wait."""
    return example(5.0, breakdown=Breakdown.of(input=0.1, device=4.0), cores=Cores(2.0, 1.5))
