"""small-files: a file is opened for each example, while the step waits for input."""

from tests.rules.kit import *
from tfdoctor.facts.input.feeding_datasets import FileReads
from tfdoctor.rules.files.small_files import PRECONDITIONS, check

MAPPED = Dataset(id=1, kind="_MapDataset", at=script(20))


def example(
    *stages: StageTime, files: FileList | None = FileList(count=10_000, nbytes=3_000), wait: float = 30.0,
    sizes: FileReads | Unavailable = Unavailable("not recorded"), functions: MapFunctions | None = None,
) -> Verdict:  # fmt: skip
    """Each step opens 256 files of 3 kB, for 25 of the 40 ms that a batch takes."""
    reader = stage_time("Root::Prefetch::Map", 40.0, reading_ms=25.0, reads=256.0)
    pipeline = InputPipeline.of(PREFETCH, *(stages or (reader,)))
    properties = DatasetProperties((dataset_of("TensorSlice", files=files),))
    waits = PRECONDITIONS[1](Breakdown.of(input=wait, device=40.0 - wait))
    return waits or check(pipeline, properties, sizes, functions)


def stage(reads: float = 64.0, **more: Any) -> StageTime:
    return stage_time("Root::Prefetch::Map", 40.0, reads=reads, reading_ms=10.0, **more)


sick = example
LARGE = FileList(count=10_000, nbytes=4_000_000)
healthy = described("The same number of files of 4 MB each.", example, files=LARGE)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["a small file for each example: the function itself stays"] = example(stage(dataset=MAPPED))
    told["four files in a step; shards are fewer"] = [example(stage(reads)) for reads in (4.0, 3.9, 0.0)]
    told["files of 100 kB; larger ones take longer to read"] = example(files=FileList(count=1000, nbytes=100_000))
    told[...] = example(files=FileList(count=1000, nbytes=100_001))
    told["a step that waits 5 % of its time, and less"] = example(wait=2.0), example(wait=1.9)
    told["opening across a network takes long"] = example(files=FileList(count=1000, scheme="gs", nbytes=None))
    slow = stage_time("Root::Prefetch::ParallelMapV2", 40.0)
    quick = stage_time(f"{slow.path}::Map", 9.0, reads=64.0, reading_ms=10.0)
    told["reading that does not limit the pipeline"] = example(slow, quick)
    counters = Unavailable("the read counters of the process were not recorded")
    told["files that were not recorded"] = example(stage(), files=None, sizes=counters)
    told["what was read shows the size of unlisted files"] = example(
        stage(), files=None, sizes=FileReads(200_000, 2, files=2)
    )
    told[...] = example(stage(), files=None, sizes=FileReads(200_002, 2, files=2))
    for name, types, batch in (
        ("records of a whole batch are decoded at once", ("ReadFile", "DecodeRaw", "Cast"), 50),
        ("images are decoded one by one", ("ReadFile", "DecodeJpeg"), 50),
        ("records without a batch", ("ReadFile", "DecodeRaw"), 0),
    ):
        functions = MapFunctions({1: MapFunction(frozenset(types), None, batch=batch)})
        told[name] = example(stage(dataset=MAPPED), functions=functions)
    load = Dataset(id=1, kind="_MapDataset", function="load", function_at=Location("t.py", 3))
    pipeline = InputPipeline((PREFETCH,), (), idle=(load,))
    told["a map whose results were buffered"] = applied(check, pipeline, Breakdown.of(device=10.0))
    for count in (100_000, 10):
        told[f"{count} files of 9 kB fill so many larger ones"] = example(files=FileList(count=count, nbytes=9_000))


# How large whole files are, by the read counters of the process.
READS = line("worker", *(("f/ReadFile:ReadFile", at, at + 0.5) for at in range(8)))
OTHER = line("worker", ("f/DecodeRaw:DecodeRaw", 0, 1))


def measured(nbytes: int | None, calls: int | None, *, reads: bool = True, recorded: bool = True) -> FileReads:
    window = TracedWindow(read_bytes=nbytes, read_calls=calls)
    kept = recording(manifest=manifest(window=window if recorded else None))
    return FileReads.measure(kept, trace(host=[READS, OTHER] if reads else [OTHER]))


@golden_cases
def test_read_sizes(told: Cases) -> None:
    told["a file has at most its share of the bytes"] = measured(8_000, 8)
    told["counters that were not recorded"] = lambda: measured(None, None)
    told["a window that was not recorded"] = lambda: measured(8_000, 8, recorded=False)
    told["fewer system calls than files"] = example(stage(), files=None, sizes=FileReads(8_000, 7, files=8))
    told["no operation that reads whole files"] = lambda: measured(8_000, 8, reads=False)
