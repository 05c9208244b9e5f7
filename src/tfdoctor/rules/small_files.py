"""Each example lies in a small file of its own.

## What it checks

How many whole files (`tf.io.read_file`) the functions of the pipeline's slowest segment read per step and how
long that takes, while the step waits for input. Files of this disk count as small by the size of a few of
them, which is asked for when the run ends; of files across a network (`gs://`, `s3://`) the opening is what
takes long.

## Why it matters

To open a file is a walk through directories, a few system calls, and on a disk or across a network a wait. For
an image of some kilobytes that takes longer than to read it, and it is paid for every example of every epoch.

## How to fix

Write the examples once into TFRecord files, ten or more for each host that reads, of 10 MB at least and better
100, and read these with `interleave`. Where all of it fits into memory, `.cache()` behind the reading does as well.

## Holds for

TensorFlow 2.3 and later, any hardware. The saving is a ceiling: reading a record is not free either. Files
that Python opens count as python-input.

## Sources

- [TFRecord and tf.train.Example](https://www.tensorflow.org/tutorials/load_data/tfrecord)
- [Better performance with the tf.data API: time to first byte](https://www.tensorflow.org/guide/data_performance#parallelizing_data_extraction)
"""

from dataclasses import dataclass

from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.run.program import Dataset, FileList
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds, number
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, nbytes
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    files: float = limit(
        4.0,
        "whole files read per step from which they are many: shards are opened far less than once a step",
    )
    size: float = limit(
        100_000.0,
        "bytes up to which a file of this disk is small: to read more takes longer than to open it, some "
        "10 to 100 microseconds at 1 GB/s",
    )


LIMITS = Limits()


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    properties: DatasetProperties | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for functions that read a file for each example, in the segment that limits the pipeline."""
    slowest = pipeline.slowest
    stages = [s for s in pipeline.stages if slowest and s.path in slowest.stages and s.reads]
    reads, reading = sum(s.reads for s in stages), sum(s.reading_ms for s in stages)
    if not breakdown.waits_for_input:
        return _not_waiting(pipeline, breakdown)
    measure = Measure("whole files read per step", count(reads), count(limits.files))
    if reads < limits.files:
        summary = f"The stages that limit the pipeline read {number(reads)} whole files per step"
        return Healthy(summary=summary, evidence=(measure,))
    told = [one.files for one in properties.chain if one.files] if properties else []
    if len(told) != 1:
        return NotApplicable(
            reason=f"{number(reads)} files are read per step in {milliseconds(reading)}, but how large they "
            "are is not recorded"
        )
    size, scheme = told[0].nbytes, told[0].scheme
    sized = (Measure("size of a file", nbytes(size), nbytes(limits.size)),) if size else ()
    evidence = (measure, Measure("reading them takes per step", ms(reading)), *sized)
    if not scheme and (size is None or size > limits.size):
        summary = f"The {number(reads)} files that are read per step are not small"
        return Healthy(summary=summary, evidence=evidence)
    return _finding(stages, evidence, f" from {scheme}://" if scheme else "")


def _finding(stages: list[StageTime], evidence: tuple[Measure, ...], where: str) -> Finding:
    files = number(sum(stage.reads for stage in stages))
    return Finding(
        summary=f"Each step opens {files} small files{where}"
        if not where
        else f"Each step opens {files} files{where}",
        evidence=evidence,
        remedies=(Remedy("Write the examples into a few large files", RECORDS, stages[0].at),),
        effects=tuple(map(_effect, stages)),
    )


def _not_waiting(pipeline: InputPipeline, breakdown: Breakdown) -> Verdict:
    if pipeline.why_idle:
        return NotApplicable(reason=pipeline.why_idle)
    return Healthy(summary=f"Files of any size serve the step: {breakdown.little_wait}")


def _effect(stage: StageTime) -> Effect:
    """A record is read within a microsecond or two; its function stays."""
    left = max(0.0, 1.0 - stage.reading_ms / stage.work_ms) if stage.work_ms else 1.0
    return Effect(Stage.INPUT, left, stage.path, ms(stage.work_ms), bound=Bound.AT_MOST)


RECORDS = """\
# once: files of 100 MB or more
for n in range(16):
    with tf.io.TFRecordWriter(f"train-{n:02}.tfrecord") as writer:
        for path, label in examples[n::16]:
            feature = {
                "data": tf.train.Feature(bytes_list=tf.train.BytesList(value=[open(path, "rb").read()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())

# in training
files = tf.data.Dataset.list_files("train-*.tfrecord")
dataset = files.interleave(tf.data.TFRecordDataset, cycle_length=16,
                           num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
dataset = dataset.shuffle(10_000).map(parse, num_parallel_calls=tf.data.AUTOTUNE)"""


def sick() -> Verdict:
    """256 files of 3 kB are opened per step, which takes 25 of the 40 ms that a batch takes."""
    return check(_pipeline(256), Breakdown.of(input=30.0, device=10.0), _files(3_000))


def healthy() -> Verdict:
    """The same number of photographs of 4 MB each."""
    return check(_pipeline(256), Breakdown.of(input=30.0, device=10.0), _files(4_000_000))


def _files(size: int) -> DatasetProperties:
    listed = FileList(count=10_000, nbytes=size)
    return DatasetProperties((Dataset(id=0, kind="_TensorSliceDataset", files=listed),))


def _pipeline(reads: int) -> InputPipeline:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path="Root::Prefetch::Map",
        kind="Map",
        work_ms=40.0,
        wall_ms=40.0,
        reading_ms=25.0,
        reads=float(reads),
    )
    return InputPipeline.of(ahead, stage)
