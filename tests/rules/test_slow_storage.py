"""slow-storage: reads across a network that wait, and what only looks like it."""

from tests.rules.kit import *
from tfdoctor.facts.input.feeding_datasets import FileReads
from tfdoctor.rules.files.slow_storage import LITTLE_MORE, MOST_READS, PRECONDITIONS, check

NFS = SourceFiles(1024, "NFS")


def example(
    *stages: StageTime, threads: float = 8.0, work: float = 320.0, wait: float = 30.0,
    files: SourceFiles | Unavailable = SourceFiles(1024, "gs://"),
    cores: Cores | Unavailable = Cores(16.0, busy=1.5), rate: FileReads | None = None,
) -> Verdict:  # fmt: skip
    """Eight threads are in reads for 40 ms of each step of 42 ms, and the run keeps 1.5 cores busy."""
    opener = "Root::Prefetch::ParallelInterleaveV4"
    reader = stage_time(f"{opener}::TFRecord", work, threads, calls=256.0)
    pipeline = InputPipeline.of(PREFETCH, *(stages or (stage_time(opener), reader)))
    breakdown = Breakdown.of(input=wait, device=12.0)
    return PRECONDITIONS[0](breakdown) or check(pipeline, breakdown, files, cores, rate)


def read_in(window: TracedWindow | None) -> FileReads:
    return chart(trace([]), recording(manifest=manifest(window=window))).fact(FileReads)


sick = example
healthy = described("The same files on a local disk.", example, files=SourceFiles(1024, local=True))


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["no more can be read at a time than there are"] = example(files=SourceFiles(16, "gs://"))
    threads = MOST_READS / LITTLE_MORE + 1.0
    told["enough reads are under way: larger or nearer ones help"] = example(threads=threads, work=threads * 40.0)
    told["trap: decompression and checksums take cores, and look like reads"] = example(cores=Cores(16.0, busy=3.8))
    told[...] = example(cores=Cores(16.0, busy=3.9))
    told["one file at a time shows no storage"] = example(threads=1.2, cores=Cores(16.0, busy=0.5), work=50.0)
    told[...] = example(threads=1.3, cores=Cores(16.0, busy=0.5), work=50.0)
    reads = stage_time("Root::Prefetch::BatchV2::TFRecord", 320.0, 8.0)
    told["reading takes half of it, and less"] = example(stage_time("Root::Prefetch::BatchV2", 39.0), reads)
    told[...] = example(stage_time("Root::Prefetch::BatchV2", 41.0), reads)
    window = TracedWindow(started_unix_ns=10**9, stopped_unix_ns=3 * 10**9, read_bytes=4_000_000, read_calls=100)
    told["the rate is that of the window"] = read_in(window)
    told["a window without reads, and no window"] = [partial(read_in, one) for one in (TracedWindow(), None)]
    told["a step that does not wait"] = example(wait=0.0)
    told["files that are not known to lie across a network"] = example(files=SourceFiles(8))
    told["files that were not listed, and cores that were not sampled"] = example(files=Unavailable("not listed"))
    told[...] = example(cores=Unavailable("not sampled"))
    line = Dataset(id=1, kind="_ParallelMapDataset", at=script(9))
    stage = stage_time("Root::ParallelMapV2", 400.0, 8.0, reading_ms=320.0, reads=32.0, dataset=line)
    told["whole files are read by a function which does other work too"] = example(stage, files=NFS)
    rate = FileReads(160_000_000, 1_220, 2.0)
    told["bytes are told of mounts alone"] = example(files=NFS, rate=rate), example(rate=rate)
