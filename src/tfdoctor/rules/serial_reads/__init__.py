"""Files are read one at a time.

## What it checks

Whether the pipeline's slowest segment reads records (`TFRecordDataset`, `TextLineDataset`,
`FixedLengthRecordDataset`) on one thread while the step waits for input. The trace shows what ran: an
`interleave` without `num_parallel_calls` takes records from several files in turn, but still reads one
record after the other.

## Why it matters

One thread reads, decompresses and checks one record after the other. Files are independent, so several can
be read at the same time. If they are stored across a network, each read mostly waits for an answer, and many
reads can wait at the same time.

## How to fix

Give `interleave` `num_parallel_calls=tf.data.AUTOTUNE` (or `TFRecordDataset(files,
num_parallel_reads=tf.data.AUTOTUNE)`), and `deterministic=False` if the order of records does not
matter. Split data in a single file into several files first: ten or more for each host that
reads, each of at least 10 MB (better 100 MB).

## Holds for

TensorFlow 2.3 and later. The saving is an upper bound: the trace does not show whether the storage can deliver
more, and a single hard disk may not. On a run without an accelerator, reading on more threads takes cores
from the compute.

## Sources

- [Better performance with the tf.data API: parallelizing data extraction](https://www.tensorflow.org/guide/data_performance#parallelizing_data_extraction)
- [tf.data.Dataset.interleave](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#interleave)
- [TFRecord and tf.train.Example](https://www.tensorflow.org/tutorials/load_data/tfrecord)
"""

import re
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime, feeds
from tfdoctor.facts.input.source_files import SourceFiles
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Measure, NotApplicable, Remedy, Verdict

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "there is only one file to read: it has to be written again as several"

READER = re.compile(r"TFRecord(?:V\d)?|TextLine|FixedLengthRecord(?:V\d)?")
"""The stages that read records from files."""

OPENER = re.compile(r"FlatMap|Interleave")
"""The stages that open one file after the other, on their consumer's thread."""

PARALLEL_OPENER = ("ParallelInterleave", "LegacyParallelInterleave")
"""The stages that read several files at a time: if few threads are busy, they wait for a core or a disk."""

REMOTE_READS = 16
"""Simultaneous reads across a network: tf.data's number of threads before it tunes it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Which readers are serial and limit the pipeline."""

    threads: float = limit(
        1.2,
        "Average number of busy threads in a reader up to which it counts as serial; threads overlap a "
        "little when they hand over elements",
    )
    share: float = share_limit(
        0.2,
        "Smallest share of the pipeline's slowest segment that reading must take; below it, the other stages "
        "limit the pipeline",
    )


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    files: SourceFiles | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for readers on one thread in the segment that limits the pipeline."""
    readers = [stage for stage in pipeline.stages if READER.fullmatch(stage.kind)]
    if not readers and pipeline.why_idle and not breakdown.waits_for_input:
        return NotApplicable(reason=pipeline.why_idle)
    if not readers:
        return Healthy(summary=NO_READER)
    reader = max(readers, key=lambda stage: stage.work_ms)
    if not breakdown.waits_for_input:
        return Healthy(summary=f"{reader.kind} reads records, and {breakdown.little_wait}")
    slowest = pipeline.slowest
    share = slowest.stages.get(reader.path, 0.0) / slowest.ms if slowest and slowest.ms else 0.0
    if share < limits.share:
        return Healthy(summary=f"{reader.kind} reads records and does not limit the pipeline")
    openers = [stage for stage in pipeline.stages if feeds(reader.path, stage.path)]
    parallel = any(stage.kind.startswith(PARALLEL_OPENER) for stage in openers)
    if parallel or reader.concurrency > limits.threads:
        return Healthy(summary=f"{reader.kind} reads several files at a time")
    speedup = _speedup(device, cores, files)
    return _finding(pipeline, reader, files, share, speedup, limits)


NO_READER = "No stage of the pipeline read records from files during the traced steps"


def _speedup(device: Device, cores: Cores | None, files: SourceFiles | None) -> float:
    """Return the largest speedup of reading; inf if nothing is known to limit it."""
    bounds = [float(files.count)] if files and files.count and files.count > 1 else []
    if files and files.remote:
        bounds.append(float(REMOTE_READS))
    elif cores is not None:
        bounds.append(cores.for_stage(device.kind))
    return max(1.0, min(bounds, default=float("inf")))


def _finding(
    pipeline: InputPipeline,
    reader: StageTime,
    files: SourceFiles | None,
    share: float,
    speedup: float,
    limits: Limits,
) -> Finding:
    openers = _openers(pipeline, reader)
    source = f" from {files.network}" if files and files.network else ""
    label = "share of the pipeline's slowest segment spent reading"
    spreads = not (files and files.remote)
    spread = (reader, *openers[:-1])  # the outermost opener stays alone
    return Finding(
        summary=f"{reader.kind} reads one file at a time{source} and limits the pipeline",
        evidence=(
            Measure("reading time per step", ms(reader.work_ms)),
            Measure.share(label, share, limits.share),
            Measure("busy threads in the reader", count(reader.concurrency), count(limits.threads)),
            *((Measure("files", count(files.count)),) if files and files.count else ()),
        ),
        remedies=_remedies(openers, reader, files),
        effects=tuple(
            stage.scaled(1.0 / speedup, Bound.AT_MOST, spreads=spreads) for stage in spread if stage.work_ms
        ),
    )


def _openers(pipeline: InputPipeline, reader: StageTime) -> list[StageTime]:
    """Return the stages that open files one after the other for a reader, the nearest first."""
    openers = [
        stage for stage in pipeline.stages if feeds(reader.path, stage.path) and OPENER.fullmatch(stage.kind)
    ]
    return sorted(openers, key=lambda stage: -len(stage.path))


def _remedies(openers: list[StageTime], reader: StageTime, files: SourceFiles | None) -> tuple[Remedy, ...]:
    interleave = next((stage for stage in openers if stage.kind == "Interleave"), None)
    at = (interleave or reader).at
    single = files is not None and files.count == 1
    split = (Remedy("Split the file into about ten shards", SHARDS, at),) if single else ()
    if interleave is not None:
        edit_id = "" if single else "parallel-interleave"
        return (*split, Remedy("Read several files at a time", INTERLEAVE, at, edit_id))
    name = re.sub(r"V\d$", "", reader.kind)
    code = f"dataset = tf.data.{name}Dataset(files, num_parallel_reads=tf.data.AUTOTUNE)"
    return (*split, Remedy("Read several files at a time", code, at))


INTERLEAVE = """\
dataset = files.interleave(
    read_one_file,
    num_parallel_calls=tf.data.AUTOTUNE,
    deterministic=False,  # if the order of the records does not matter
)"""

SHARDS = """\
for shard in range(10):
    with tf.io.TFRecordWriter(f"train-{shard:02d}.tfrecord") as writer:
        for record in dataset.shard(10, shard).as_numpy_iterator():
            writer.write(record)"""


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
