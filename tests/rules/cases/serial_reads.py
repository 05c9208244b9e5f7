"""The cases of serial-reads: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.files.serial_reads import check


def example(
    *stages: StageTime,
    work: float = 30.0,
    threads: float = 1.0,
    wait: float = 22.0,
    device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(8.0, busy=1.0),
    files: SourceFiles | None = SourceFiles(8),
) -> Verdict:
    """One thread reads compressed records from eight files for 30 ms of each 32 ms step."""
    opener = f"{AHEAD}::{'Interleave' if threads == 1.0 else 'ParallelInterleaveV4'}"
    opened = StageTime.of(opener), StageTime.of(f"{opener}::TFRecord", work, threads)
    pipeline = InputPipeline.of(StageTime.of(AHEAD), *(stages or opened))
    return check(pipeline, Breakdown.of(input=wait, device=10.0), device, cores, files)


AHEAD = "Root::Prefetch"


sick = example


def healthy() -> Verdict:
    """Four threads read the same files."""
    return example(threads=4.0, wait=0.1)
