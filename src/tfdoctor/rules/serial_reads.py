"""Records are read from one file at a time.

## What it checks

Whether the pipeline's slowest segment reads records (`TFRecordDataset`, `TextLineDataset`,
`FixedLengthRecordDataset`) on one thread while the step waits for input. What ran is read from the
trace: an `interleave` without `num_parallel_calls` takes records of several files in turn, and still
reads one after the other.

## Why it matters

One thread reads, decompresses and checks one record after the other. Files are independent of each
other, so several can be read at a time; where they lie across a network, each read waits most of its
time for an answer, and many reads can wait together.

## How to fix

Give `interleave` `num_parallel_calls=tf.data.AUTOTUNE` (or `TFRecordDataset(files,
num_parallel_reads=tf.data.AUTOTUNE)`), and `deterministic=False` where the order of records does not
matter. Data in a single file must be split into several first: ten or more for each host that
reads, of 10 MB at least and better 100.

## Holds for

TensorFlow 2.3 and later. The saving is a ceiling: whether the storage delivers more at a time is not in
the trace, and a single hard disk may not. On a run without accelerator, reading on more threads takes cores
from the compute.

## Sources

- [Better performance with the tf.data API: parallelizing data extraction](https://www.tensorflow.org/guide/data_performance#parallelizing_data_extraction)
- [tf.data.Dataset.interleave](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#interleave)
- [TFRecord and tf.train.Example](https://www.tensorflow.org/tutorials/load_data/tfrecord)
"""

import re
from dataclasses import dataclass

from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime, feeds
from tfdoctor.facts.input.source_files import SourceFiles
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import counted
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"

READER = re.compile(r"TFRecord(?:V\d)?|TextLine|FixedLengthRecord(?:V\d)?")
"""The stages that read records of files."""

OPENER = re.compile(r"FlatMap|Interleave")
"""The stages that open one file after the other, on the thread that asks."""

ASKED = ("ParallelInterleave", "LegacyParallelInterleave")
"""The stages that read several files at a time: few threads at work in them wait for a core or a disk."""

TOGETHER = 16
"""Reads across a network that wait together: tf.data's own number of threads until it knows better."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    threads: float = limit(
        1.2,
        "threads at work in a reader, on average, up to which it counts as serial: hand-overs "
        "overlap a little",
    )
    share: float = limit(
        0.2,
        "of the pipeline's slowest segment spent reading: below it, the other stages limit it",
        most=1.0,
    )


LIMITS = Limits()


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    files: SourceFiles | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for readers on one thread in the segment that limits the pipeline."""
    readers = [stage for stage in pipeline.stages if READER.fullmatch(stage.kind)]
    if not readers:
        return _without_readers(pipeline, breakdown)
    reader = max(readers, key=lambda stage: stage.work_ms)
    slowest = pipeline.slowest
    share = slowest.stages.get(reader.path, 0.0) / slowest.ms if slowest and slowest.ms else 0.0
    waiting = breakdown.waits_for_input
    if not waiting or share < limits.share or _several(pipeline, reader, limits):
        return Healthy(summary=_fine(reader, breakdown, share=share, limits=limits))
    speedup = _speedup(device, cores, files)
    return _finding(pipeline, reader, files, share, speedup, limits)


def _without_readers(pipeline: InputPipeline, breakdown: Breakdown) -> Verdict:
    if pipeline.why_idle and not breakdown.waits_for_input:
        return NotApplicable(reason=pipeline.why_idle)
    return Healthy(
        summary="No stage of the pipeline read records of files while the steps were traced"
    )


def _fine(reader: StageTime, breakdown: Breakdown, *, share: float, limits: Limits) -> str:
    if not breakdown.waits_for_input:
        return f"{reader.kind} reads records, and {breakdown.little_wait}"
    if share < limits.share:
        return f"{reader.kind} reads records, and is not what limits the pipeline"
    return f"{reader.kind} reads several files at a time"


def _several(pipeline: InputPipeline, reader: StageTime, limits: Limits) -> bool:
    """Whether several files are read at a time, or would be if a core were free for it."""
    parallel = (
        s for s in pipeline.stages if s.kind.startswith(ASKED) and feeds(reader.path, s.path)
    )
    return reader.concurrency > limits.threads or any(parallel)


def _speedup(device: Device, cores: Cores | None, files: SourceFiles | None) -> float:
    """Return how many times as fast reading gets at most; inf where nothing is known to limit it."""
    found = [float(files.count)] if files and files.count and files.count > 1 else []
    if files and files.remote:
        found.append(float(TOGETHER))
    elif cores is not None:
        found.append(cores.usable if device.kind == DeviceKind.CPU else 1.0 + cores.free)
    return max(1.0, min(found, default=float("inf")))


def _finding(
    pipeline: InputPipeline,
    reader: StageTime,
    files: SourceFiles | None,
    share: float,
    speedup: float,
    limits: Limits,
) -> Finding:
    beside = [reader, *_openers(pipeline, reader)[:-1]]  # the outermost opener stays alone
    where = f", from {files.scheme}" if files and files.scheme else ""
    return Finding(
        summary=f"{reader.kind} reads one file at a time{where}, and limits the pipeline",
        evidence=(
            Measure("reading, per step", ms(reader.work_ms)),
            Measure("of the pipeline's slowest segment", ratio(share), ratio(limits.share)),
            Measure("threads at work in it", count(reader.concurrency), count(limits.threads)),
            *((Measure("files", count(files.count)),) if files and files.count else ()),
        ),
        remedies=_remedies(pipeline, reader, files),
        effects=tuple(
            Effect(
                Stage.INPUT,
                1.0 / speedup,
                stage.path,
                ms(stage.work_ms),
                bound=Bound.AT_MOST,
                spreads=not (files and files.remote),
            )
            for stage in beside
            if stage.work_ms
        ),
    )


def _openers(pipeline: InputPipeline, reader: StageTime) -> list[StageTime]:
    """Return the stages that open files one after the other for a reader, the nearest first."""
    above = [s for s in pipeline.stages if feeds(reader.path, s.path) and OPENER.fullmatch(s.kind)]
    return sorted(above, key=lambda stage: -len(stage.path))


def _remedies(
    pipeline: InputPipeline, reader: StageTime, files: SourceFiles | None
) -> tuple[Remedy, ...]:
    interleave = next((s for s in _openers(pipeline, reader) if s.kind == "Interleave"), None)
    at = (interleave or reader).at
    single = files is not None and files.count == 1
    edit_id = "" if single else "parallel-interleave"
    first = (
        (Remedy(f"Split the file into {counted(10, 'shard')} or so", SHARDS, at),) if single else ()
    )
    if interleave is not None:
        return (*first, Remedy("Read several files at a time", INTERLEAVE, at, edit_id))
    name = re.sub(r"V\d$", "", reader.kind)
    code = f"dataset = tf.data.{name}Dataset(files, num_parallel_reads=tf.data.AUTOTUNE)"
    return (*first, Remedy("Read several files at a time", code, at))


INTERLEAVE = """\
dataset = files.interleave(
    read_one_file,
    num_parallel_calls=tf.data.AUTOTUNE,
    deterministic=False,  # where the order of the records does not matter
)"""

SHARDS = """\
for shard in range(10):
    with tf.io.TFRecordWriter(f"train-{shard:02d}.tfrecord") as writer:
        for record in dataset.shard(10, shard).as_numpy_iterator():
            writer.write(record)"""


def sick() -> Verdict:
    """Compressed records that take 30 ms of each 32 ms step on one thread, from eight files."""
    return _example("Interleave", threads=1, wait=22.0)


def healthy() -> Verdict:
    """The same files, read by four threads."""
    return _example("ParallelInterleaveV4", threads=4, wait=0.1)


def _example(kind: str, threads: int, wait: float) -> Verdict:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    opener = StageTime(path=f"Root::Prefetch::{kind}", kind=kind, asynchronous=threads > 1)
    reader = StageTime(
        path=f"{opener.path}::TFRecord",
        kind="TFRecord",
        work_ms=30.0,
        wall_ms=30.0 / threads,
        calls=64.0,
    )
    return check(
        InputPipeline.of(ahead, opener, reader),
        Breakdown.of(input=wait, device=10.0),
        Device(DeviceKind.GPU, 1, 1),
        Cores(8.0, busy=1.0),
        SourceFiles(8),
    )
