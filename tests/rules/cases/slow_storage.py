"""The cases of slow-storage: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.files.slow_storage import PRECONDITIONS, check
from tfdoctor.rules.files.slow_storage.read_rate import ReadRate


def example(
    *stages: StageTime,
    threads: float = 8.0,
    work: float = 320.0,
    wait: float = 30.0,
    files: SourceFiles | Unavailable = SourceFiles(1024, "gs://"),
    cores: Cores | Unavailable = Cores(16.0, busy=1.5),
    rate: ReadRate | None = None,
) -> Verdict:
    """Eight threads are in reads for 40 ms of each step of 42 ms, and the run keeps 1.5 cores busy."""
    opener = "Root::Prefetch::ParallelInterleaveV4"
    reader = StageTime.of(f"{opener}::TFRecord", work, threads, calls=256.0)
    pipeline = InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or (StageTime.of(opener), reader)))
    breakdown = Breakdown.of(input=wait, device=12.0)
    return PRECONDITIONS[0](breakdown) or check(pipeline, breakdown, files, cores, rate)


sick = example


def healthy() -> Verdict:
    """The same files on a local disk."""
    return example(files=SourceFiles(1024, local=True))
