"""small-files: a file is opened for each example, while the step waits for input."""

import pytest

from tests.builders import line
from tests.rules.kit import *
from tfdoctor.rules.files import small_files
from tfdoctor.rules.files.small_files import PRECONDITIONS, ReadSizes, check


def example(
    *stages: StageTime, files: FileList | None = FileList(count=10_000, nbytes=3_000), wait: float = 30.0,
    sizes: ReadSizes | Unavailable = Unavailable("not recorded"), functions: MapFunctions | None = None,
) -> Verdict:  # fmt: skip
    """Each step opens 256 files of 3 kB, for 25 of the 40 ms that a batch takes."""
    reader = StageTime.of("Root::Prefetch::Map", 40.0, reading_ms=25.0, reads=256.0)
    return PRECONDITIONS[1](Breakdown.of(input=wait, device=40.0 - wait)) or check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or (reader,))),
        DatasetProperties((Dataset(id=0, kind="_TensorSliceDataset", files=files),)),
        sizes,
        functions,
    )


sick = example


def healthy() -> Verdict:
    """The same number of files of 4 MB each."""
    return example(files=FileList(count=10_000, nbytes=4_000_000))


NOT_RECORDED = Unavailable("the read counters of the process were not recorded")


def stage(reads: float = 64.0, **more: Any) -> StageTime:
    return StageTime.of("Root::Prefetch::Map", 40.0, reads=reads, reading_ms=10.0, **more)


def test_a_small_file_for_each_example_is_found() -> None:
    verdict = as_finding(example(stage(dataset=Dataset(id=1, kind="_MapDataset", at=Location("train.py", 20)))))
    assert "64 small files" in verdict.summary
    assert verdict.remedies[0].at == Location("train.py", 20)
    assert [one[2:] for one in effects(verdict)] == [(0.75, Bound.AT_MOST)]  # the function itself stays


def test_both_sides_of_each_limit() -> None:
    """Shards are few, large files take longer to read than to open, and only a step that waits gains."""
    assert kinds(*(example(stage(reads)) for reads in (4.0, 3.9, 0.0))) == [Finding, Healthy, Healthy]
    sizes = (example(files=FileList(count=1000, nbytes=size)) for size in (100_000, 100_001))
    assert kinds(*sizes) == kinds(example(wait=2.0), example(wait=1.9)) == [Finding, Healthy]


def test_across_a_network_the_opening_takes_long_whatever_the_size() -> None:
    assert "gs://" in as_finding(example(files=FileList(count=1000, scheme="gs", nbytes=None))).summary


def test_reading_that_does_not_limit_the_pipeline_is_healthy() -> None:
    slow = StageTime.of("Root::Prefetch::ParallelMapV2", 40.0)
    quick = StageTime.of(f"{slow.path}::Map", 9.0, reads=64.0, reading_ms=10.0)
    assert isinstance(example(slow, quick), Healthy)


def test_unrecorded_files_are_not_judged() -> None:
    reason = as_not_applicable(example(stage(), files=None, sizes=NOT_RECORDED)).reason
    assert all(words in reason for words in ("64 files", "read counters"))


def test_what_the_process_read_shows_the_size_of_unlisted_files() -> None:
    small, large = (example(stage(), files=None, sizes=ReadSizes(size)) for size in (100_000, 100_001))
    assert "64 small files of at most 100 kB" in as_finding(small).summary
    assert isinstance(large, Healthy)


def test_records_of_a_whole_batch_are_decoded_at_once() -> None:
    for types, batch, remaining in (
        (("ReadFile", "DecodeRaw", "Cast"), 50, 0.02),
        (("ReadFile", "DecodeJpeg"), 50, 0.75),
        (("ReadFile", "DecodeRaw"), 0, 0.75),
    ):
        functions = MapFunctions({1: MapFunction(frozenset(types), None, batch=batch)})
        verdict = example(stage(dataset=Dataset(id=1, kind="_MapDataset")), functions=functions)
        assert effects(verdict)[0][2] == remaining


def test_a_map_whose_results_were_buffered_is_not_called_healthy() -> None:
    dataset = Dataset(id=1, kind="_MapDataset", function="load", function_at=Location("t.py", 3))
    pipeline = InputPipeline((StageTime.of("Root::Prefetch"),), (), idle=(dataset,))
    assert "load" in as_not_applicable(applied(small_files, pipeline, Breakdown.of(device=10.0))).reason


def test_the_code_writes_as_many_files_as_the_recorded_ones_fill() -> None:
    some = first_code(example(files=FileList(count=100_000, nbytes=9_000)))
    assert "range(9)" in some
    assert "cycle_length=9," in some
    assert "range(1)" in first_code(example(files=FileList(count=10, nbytes=9_000)))
    assert "range(shards)" in first_code(example(files=FileList(count=1000, scheme="gs", nbytes=None)))


# How large whole files are, by the read counters of the process.


READS = line("worker", *(("f/ReadFile:ReadFile", at, at + 0.5) for at in range(8)))
OTHER = line("worker", ("f/DecodeRaw:DecodeRaw", 0, 1))


def measured(nbytes: int | None, calls: int | None, *, reads: bool = True, recorded: bool = True) -> ReadSizes:
    window = TracedWindow(read_bytes=nbytes, read_calls=calls)
    kept = recording(manifest=manifest(window=window if recorded else None))
    return ReadSizes.measure(kept, trace(host=[READS, OTHER] if reads else [OTHER]))


def test_a_file_has_at_most_its_share_of_the_bytes() -> None:
    assert measured(8_000, 8).most == 1_000.0


def test_what_is_missing_is_said() -> None:
    """The counters, the window, system calls for each file, and operations that read whole files."""
    for given, recorded, reads, words in (
        ((None, None), True, True, "counters"),
        ((8_000, 8), False, True, "counters"),
        ((8_000, 7), True, True, "system calls"),
        ((8_000, 8), True, False, "no operation"),
    ):
        with pytest.raises(Unavailable, match=words):
            measured(*given, recorded=recorded, reads=reads)
