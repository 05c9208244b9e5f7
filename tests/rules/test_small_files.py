"""small-files: a file is opened for each example, while the step waits for input."""

import pytest

from tests.builders import line, manifest, recording, trace
from tests.rules.cases.small_files import example
from tests.rules.kit import *
from tfdoctor.facts.input.map_functions import MapFunction, MapFunctions
from tfdoctor.facts.run.program import FileList
from tfdoctor.recording.agent import TracedWindow
from tfdoctor.rules import small_files
from tfdoctor.rules.small_files.read_sizes import ReadSizes

NOT_RECORDED = Unavailable("the read counters of the process were not recorded")


def stage(reads: float = 64.0, **more: Any) -> StageTime:
    return StageTime.of("Root::Prefetch::Map", 40.0, reads=reads, reading_ms=10.0, **more)


def test_a_small_file_for_each_example_is_found() -> None:
    line = Dataset(id=1, kind="_MapDataset", at=Location("train.py", 20))
    verdict = as_finding(example(stage(dataset=line)))
    assert "64 small files" in verdict.summary
    assert verdict.remedies[0].at == Location("train.py", 20)


def test_the_function_itself_stays() -> None:
    verdict = as_finding(example(stage()))
    (effect,) = verdict.effects
    assert (effect.scales, effect.bound) == (0.75, Bound.AT_MOST)


def test_shards_are_few() -> None:
    assert [type(example(stage(reads))) for reads in (4.0, 3.9, 0.0)] == [Finding, Healthy, Healthy]


@pytest.mark.parametrize(("size", "kind"), [(100_000, Finding), (100_001, Healthy)])
def test_large_files_take_longer_to_read_than_to_open(size: int, kind: type) -> None:
    assert isinstance(example(files=FileList(count=1000, nbytes=size)), kind)


def test_across_a_network_the_opening_takes_long_whatever_the_size() -> None:
    verdict = as_finding(example(files=FileList(count=1000, scheme="gs", nbytes=None)))
    assert "gs://" in verdict.summary


@pytest.mark.parametrize("wait", [2.0, 1.9])
def test_only_a_step_that_waits(wait: float) -> None:
    assert isinstance(example(wait=wait), Finding if wait == 2.0 else Healthy)


def test_reading_that_does_not_limit_the_pipeline_is_healthy() -> None:
    slow = StageTime.of("Root::Prefetch::ParallelMapV2", 40.0)
    quick = StageTime.of(f"{slow.path}::Map", 9.0, reads=64.0, reading_ms=10.0)
    assert isinstance(example(slow, quick), Healthy)


def test_unrecorded_files_are_not_judged() -> None:
    verdict = as_not_applicable(example(stage(), files=None, sizes=NOT_RECORDED))
    assert "64 files" in verdict.reason
    assert "read counters" in verdict.reason


@pytest.mark.parametrize(("size", "kind"), [(100_000, Finding), (100_001, Healthy)])
def test_what_the_process_read_shows_the_size_of_unlisted_files(size: int, kind: type) -> None:
    verdict = example(stage(), files=None, sizes=ReadSizes(size))
    assert isinstance(verdict, kind)
    if isinstance(verdict, Finding):
        assert "64 small files of at most 100 kB" in verdict.summary


@pytest.mark.parametrize(
    ("types", "batch", "remaining"),
    [
        (("ReadFile", "DecodeRaw", "Cast"), 50, 0.02),
        (("ReadFile", "DecodeJpeg"), 50, 0.75),
        (("ReadFile", "DecodeRaw"), 0, 0.75),
    ],
)
def test_records_of_a_whole_batch_are_decoded_at_once(types: tuple[str, ...], batch: int, remaining: float) -> None:
    function = MapFunction(frozenset(types), None, batch=batch)
    verdict = as_finding(
        example(stage(dataset=Dataset(id=1, kind="_MapDataset")), functions=MapFunctions({1: function}))
    )
    assert verdict.effects[0].scales == remaining


def test_a_map_whose_results_were_buffered_is_not_called_healthy() -> None:
    dataset = Dataset(id=1, kind="_MapDataset", function="load", function_at=Location("t.py", 3))
    verdict = as_not_applicable(
        applied(
            small_files,
            InputPipeline((StageTime.of("Root::Prefetch"),), (), idle=(dataset,)),
            Breakdown.of(device=10.0),
        )
    )
    assert "load" in verdict.reason


def test_the_code_writes_as_many_files_as_the_recorded_ones_fill() -> None:
    (some,) = as_finding(example(files=FileList(count=100_000, nbytes=9_000))).remedies
    assert "range(9)" in some.code
    assert "cycle_length=9," in some.code
    (one,) = as_finding(example(files=FileList(count=10, nbytes=9_000))).remedies
    assert "range(1)" in one.code
    (unknown,) = as_finding(example(files=FileList(count=1000, scheme="gs", nbytes=None))).remedies
    assert "range(shards)" in unknown.code


# How large whole files are, by the read counters of the process.


READS = line("worker", *(("f/ReadFile:ReadFile", at, at + 0.5) for at in range(8)))
OTHER = line("worker", ("f/DecodeRaw:DecodeRaw", 0, 1))


def measured(nbytes: int | None, calls: int | None, *, reads: bool = True, recorded: bool = True) -> ReadSizes:
    window = TracedWindow(read_bytes=nbytes, read_calls=calls)
    kept = recording(manifest=manifest(window=window if recorded else None))
    return ReadSizes.measure(kept, trace(host=[READS, OTHER] if reads else [OTHER]))


def test_a_file_has_at_most_its_share_of_the_bytes() -> None:
    assert measured(8_000, 8).most == 1_000.0


def test_a_recording_without_counters_says_so() -> None:
    for missing in (measured_without_counters, measured_without_window):
        with pytest.raises(Unavailable, match="counters"):
            missing()


def measured_without_counters() -> ReadSizes:
    return measured(None, None)


def measured_without_window() -> ReadSizes:
    return measured(8_000, 8, recorded=False)


def test_files_that_no_system_call_read_have_no_known_size() -> None:
    with pytest.raises(Unavailable, match="system calls"):
        measured(8_000, 7)


def test_without_whole_files_there_is_nothing_to_divide() -> None:
    with pytest.raises(Unavailable, match="no operation"):
        measured(8_000, 8, reads=False)
