"""serial-reads: the reader that limits the pipeline of a waiting step works on one thread."""

from tests.rules.kit import *
from tfdoctor.rules.files import serial_reads
from tfdoctor.rules.files.serial_reads import check


def example(
    *stages: StageTime, work: float = 30.0, threads: float = 1.0, wait: float = 22.0,
    device: Device = Device(DeviceKind.GPU, 1, 1), cores: Cores | None = Cores(8.0, busy=1.0),
    files: SourceFiles | None = SourceFiles(8),
) -> Verdict:  # fmt: skip
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


GPU, CPU = Device(DeviceKind.GPU, 1, 1), Device(DeviceKind.CPU, 1, 1)
EIGHT = SourceFiles(8)
LINE = Dataset(id=1, kind="_InterleaveDataset", at=Location("t.py", 9))
BATCH = StageTime.of(f"{AHEAD}::BatchV2", 10.0)


def interleaved(kind: str = "TFRecord", work: float = 30.0) -> tuple[StageTime, ...]:
    opener = f"{AHEAD}::Interleave"
    opens, reads = StageTime.of(f"{opener}::FlatMap", 1.0), StageTime.of(f"{opener}::FlatMap::{kind}", work)
    return BATCH, StageTime.of(opener, dataset=LINE), opens, reads


def test_an_interleave_on_one_thread_is_found_with_its_line() -> None:
    for kind in ("TFRecord", "TFRecordV2", "TextLine", "FixedLengthRecord"):
        verdict = as_finding(example(*interleaved(kind)))
        assert {subject.rpartition("::")[2] for subject in scales(verdict)} == {kind, "FlatMap"}
        assert all(effect.bound is Bound.AT_MOST and effect.spreads for effect in verdict.effects)
        assert (verdict.remedies[0].at, verdict.remedies[0].edit_id) == (Location("t.py", 9), "parallel-interleave")


def test_the_threads_at_work_tell_whether_it_is_serial() -> None:
    """A parallel interleave that finds no free core is not."""
    readers = (StageTime.of(f"{AHEAD}::ParallelMapV2::TFRecord", 30.0, threads) for threads in (1.2, 1.3))
    assert kinds(*map(example, readers)) == [Finding, Healthy]
    assert kinds(example(threads=1.0001), example(threads=3.0)) == [Healthy, Healthy]


def test_a_reader_that_takes_little_of_the_segment_is_healthy() -> None:
    assert kinds(*(example(*interleaved(work=work)) for work in (2.74, 2.76))) == [Healthy, Finding]
    no_records = example(StageTime.of(f"{AHEAD}::Map", 30.0))
    assert kinds(example(wait=0.04), no_records) == [Healthy, Healthy]


def test_records_that_were_read_before_are_not_called_healthy() -> None:
    buffered = Dataset(id=1, kind="_MapDataset", function="parse", function_at=Location("t.py", 3))
    pipeline = InputPipeline((StageTime.of(AHEAD),), (), idle=(buffered,))
    assert isinstance(serial_reads.check(pipeline, Breakdown.of(device=10.0), GPU, None, None), NotApplicable)


def test_files_and_cores_limit_what_reading_together_gains() -> None:
    for files, cores, device, times in (
        (EIGHT, Cores(4.0, busy=1.0), GPU, 4.0),  # its own core, and three free ones
        (EIGHT, Cores(4.0, busy=1.0), CPU, 4.0),
        (EIGHT, Cores(4.0, busy=3.0), GPU, 2.0),
        (SourceFiles(2), Cores(8.0, busy=1.0), GPU, 2.0),
        (EIGHT, None, GPU, 8.0),
        (SourceFiles(8, "gs"), Cores(4.0, busy=4.0), GPU, 8.0),
        (SourceFiles(100, "gs"), Cores(4.0, busy=4.0), GPU, 16.0),
    ):
        verdict = as_finding(example(*interleaved(), device=device, cores=cores, files=files))
        assert [effect.scales for effect in verdict.effects] == [near(1 / times)] * 2


def test_with_unknown_cores_and_files_the_whole_reading_is_the_ceiling() -> None:
    assert {*scales(example(cores=None, files=None)).values()} == {0.0}


def test_reads_across_a_network_wait_without_a_core() -> None:
    verdict = as_finding(example(files=SourceFiles(8, "s3")))
    assert not any(effect.spreads for effect in verdict.effects)
    assert "s3" in verdict.summary


def test_a_single_file_must_be_split_first() -> None:
    first, second = as_finding(example(files=SourceFiles(1))).remedies
    assert "TFRecordWriter" in first.code
    assert second.edit_id == ""


def test_a_dataset_of_several_files_has_an_argument_of_its_own() -> None:
    reader = StageTime.of(f"{AHEAD}::FlatMap::TFRecord", 30.0)
    flat = StageTime.of(f"{AHEAD}::FlatMap", 1.0, dataset=LINE)
    (remedy,) = as_finding(example(flat, reader)).remedies
    assert "tf.data.TFRecordDataset(files, num_parallel_reads" in remedy.code
    assert remedy.edit_id == ""
