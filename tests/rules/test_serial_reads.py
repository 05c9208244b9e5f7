"""serial-reads: the reader that limits the pipeline of a waiting step works on one thread."""

from tests.rules.kit import *
from tfdoctor.rules.files.serial_reads import check

AHEAD = "Root::Prefetch"
GPU, CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
EIGHT = SourceFiles(8)
LINE = Dataset(id=1, kind="_InterleaveDataset", at=Location("t.py", 9))
BATCH = stage_time(f"{AHEAD}::BatchV2", 10.0)


def example(
    *stages: StageTime, work: float = 30.0, threads: float = 1.0, wait: float = 22.0,
    device: Device = Device(DeviceKind.GPU, 1, 1), cores: Cores | None = Cores(8.0, busy=1.0),
    files: SourceFiles | None = SourceFiles(8),
) -> Verdict:  # fmt: skip
    """One thread reads compressed records from eight files for 30 ms of each 32 ms step."""
    opener = f"{AHEAD}::{'Interleave' if threads == 1.0 else 'ParallelInterleaveV4'}"
    opened = stage_time(opener), stage_time(f"{opener}::TFRecord", work, threads)
    pipeline = InputPipeline.of(stage_time(AHEAD), *(stages or opened))
    return check(pipeline, Breakdown.of(input=wait, device=10.0), device, cores, files)


def interleaved(kind: str = "TFRecord", work: float = 30.0) -> tuple[StageTime, ...]:
    opener = f"{AHEAD}::Interleave"
    opens, reads = stage_time(f"{opener}::FlatMap", 1.0), stage_time(f"{opener}::FlatMap::{kind}", work)
    return BATCH, stage_time(opener, dataset=LINE), opens, reads


sick = example
healthy = described("Four threads read the same files.", example, threads=4.0, wait=0.1)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for kind in ("TFRecord", "TFRecordV2", "TextLine", "FixedLengthRecord"):
        told[f"an interleave of {kind} on one thread is found with its line"] = example(*interleaved(kind))
    told["threads at work tell"] = example(stage_time(f"{AHEAD}::ParallelMapV2::TFRecord", 30.0, 1.2))
    told[...] = example(stage_time(f"{AHEAD}::ParallelMapV2::TFRecord", 30.0, 1.3))
    told["a parallel interleave that finds no free core is not serial"] = example(threads=1.0001)
    told["less than a fifth of the segment, and more"] = [example(*interleaved(work=work)) for work in (2.74, 2.76)]
    told["a step that does not wait"] = example(wait=0.04)
    told["no reader"] = example(stage_time(f"{AHEAD}::Map", 30.0))
    buffered = Dataset(id=1, kind="_MapDataset", function="parse", function_at=Location("t.py", 3))
    pipeline = InputPipeline((stage_time(AHEAD),), (), idle=(buffered,))
    told["records that were read before"] = check(pipeline, Breakdown.of(device=10.0), GPU, None, None)
    told["a dataset of several files has an argument of its own"] = example(
        stage_time(f"{AHEAD}::FlatMap", 1.0, dataset=LINE), stage_time(f"{AHEAD}::FlatMap::TFRecord", 30.0)
    )
    told["a single file must be split first"] = example(files=SourceFiles(1))
    for name, files, cores, device in (
        ("its own core, and three free ones, beside a GPU", EIGHT, Cores(4.0, busy=1.0), GPU),
        ("its own core, and three free ones, of a CPU", EIGHT, Cores(4.0, busy=1.0), CPU),
        ("its own core, and a free one", EIGHT, Cores(4.0, busy=3.0), GPU),
        ("two files", SourceFiles(2), Cores(8.0, busy=1.0), GPU),
        ("eight files, where the cores are unknown", EIGHT, None, GPU),
        ("eight files across a network wait without a core", SourceFiles(8, "gs"), Cores(4.0, busy=4.0), GPU),
        ("16 of 100 files across a network", SourceFiles(100, "gs"), Cores(4.0, busy=4.0), GPU),
        ("the whole reading, where cores and files are unknown", None, None, GPU),
    ):
        told[name] = example(*interleaved(), device=device, cores=cores, files=files)
