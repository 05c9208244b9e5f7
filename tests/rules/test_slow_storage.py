"""slow-storage: reads across a network that wait, and what only looks like it."""

import pytest

from tests.rules.kit import *
from tfdoctor.rules.files.slow_storage import LITTLE_MORE, MOST_READS, PRECONDITIONS, ReadRate, check


def example(
    *stages: StageTime, threads: float = 8.0, work: float = 320.0, wait: float = 30.0,
    files: SourceFiles | Unavailable = SourceFiles(1024, "gs://"),
    cores: Cores | Unavailable = Cores(16.0, busy=1.5), rate: ReadRate | None = None,
) -> Verdict:  # fmt: skip
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


NFS = SourceFiles(1024, "NFS")


def values(verdict: Any) -> dict[str, float]:
    return {one.label: one.value.value for one in verdict.evidence if isinstance(one, Measure)}


def test_more_reads_at_a_time_shorten_them_as_far_as_was_shown() -> None:
    finding = as_finding(example(threads=8.0))
    (effect,) = finding.effects
    assert (effect.scales, effect.bound, effect.spreads) == (near(8.0 / MOST_READS), Bound.AT_MOST, False)
    assert "gs://" in finding.summary
    assert "cycle_length" in finding.remedies[0].code
    few = example(threads=8.0, files=SourceFiles(16, "gs://"))  # no more can be read than there are
    assert [one[2] for one in effects(few)] == [near(0.5)]


def test_where_enough_reads_are_under_way_only_larger_or_nearer_ones_help() -> None:
    threads = MOST_READS / LITTLE_MORE + 1.0
    finding = as_finding(example(threads=threads, work=threads * 40.0))
    assert all("cycle_length" not in remedy.code for remedy in finding.remedies)
    assert "buffer_size" in finding.remedies[0].code


def test_threads_that_keep_cores_busy_do_not_wait() -> None:
    """Trap: decompression and checksums take cores, and look like reading in the trace."""
    assert kinds(*(example(cores=Cores(16.0, busy=busy)) for busy in (3.8, 3.9))) == [Finding, Healthy]


def test_one_file_at_a_time_does_not_show_what_the_storage_delivers() -> None:
    found = [example(threads=threads, cores=Cores(16.0, busy=0.5), work=50.0) for threads in (1.2, 1.3)]
    assert kinds(*found) == [NotApplicable, Finding]


def test_reading_has_to_take_most_of_the_slowest_segment_of_a_step_that_waits() -> None:
    reads = StageTime.of("Root::Prefetch::BatchV2::TFRecord", 320.0, 8.0)
    found = [example(StageTime.of("Root::Prefetch::BatchV2", batch), reads) for batch in (39.0, 41.0)]
    assert kinds(*found, example(wait=0.0)) == [Finding, Healthy, Healthy]


def test_what_is_not_known_to_lie_across_a_network_is_not_judged() -> None:
    assert isinstance(example(files=SourceFiles(8, local=True)), Healthy)
    assert isinstance(example(files=SourceFiles(8)), NotApplicable)
    assert "listed" in as_not_applicable(example(files=Unavailable("not listed"))).reason
    assert "sampled" in as_not_applicable(example(cores=Unavailable("not sampled"))).reason


def test_whole_files_are_read_by_a_function_which_does_other_work_too() -> None:
    line = Dataset(id=1, kind="_ParallelMapDataset", at=Location("train.py", 9))
    stage = StageTime.of("Root::ParallelMapV2", 400.0, 8.0, reading_ms=320.0, reads=32.0, dataset=line)
    finding = as_finding(example(stage, files=NFS))
    assert [one[2] for one in effects(finding)] == [near(0.2 + 0.8 / 8.0)]
    assert finding.remedies[0].at == Location("train.py", 9)
    assert "map" in finding.remedies[0].code
    assert values(finding)["time per record or file"] == near(10.0)


def test_bytes_are_told_of_mounts_alone() -> None:
    rate = ReadRate(80e6, 131_072.0)
    assert values(example(files=NFS, rate=rate))["bytes that the process read"] == 80e6
    assert "bytes that the process read" not in values(example(rate=rate))


def test_the_rate_is_that_of_the_window() -> None:
    window = TracedWindow(started_unix_ns=10**9, stopped_unix_ns=3 * 10**9, read_bytes=4_000_000, read_calls=100)
    made = chart(trace([]), recording(manifest=manifest(window=window))).fact(ReadRate)
    assert (made.bytes_per_s, made.bytes_per_call) == (2e6, 40_000.0)
    for lacking in (TracedWindow(), None):
        with pytest.raises(Unavailable):
            chart(trace([]), recording(manifest=manifest(window=lacking))).fact(ReadRate)
