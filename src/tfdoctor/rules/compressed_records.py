"""Local records are decompressed in every epoch.

## What it checks

Whether a pipeline that the step waits for reads records (`TFRecordDataset`, `TextLineDataset`,
`FixedLengthRecordDataset`) with a `compression_type` from local files, and how long one record takes. In the long
run each step needs as many records as its batch has examples, even if the traced steps take them from a shuffle
buffer that was filled at the start of the epoch.

## Why it matters

One thread decompresses a file from its start to its end, so this work cannot be divided. Compression pays where a
network is slower than the decompression; a local disk and the page cache usually deliver faster. Data that hardly
shrink, such as encoded images and sound, still take the full time.

## How to fix

Write local copies without compression: `tf.io.TFRecordWriter(path)`, and read them without `compression_type`. If
disk space is short, compress single features that shrink well (`tf.io.encode_png`, `tf.io.encode_jpeg`); the map
that decodes them runs on many threads. If the files must stay, split them, and read several at a time.

## Holds for

TensorFlow 2.3 and later, in recordings of `tfdoctor profile`. Remote files are not checked. The time of a record
also contains waiting for the disk, so the saving is an upper bound. No saving is predicted if the traced steps took
their records from a shuffle buffer.

## Sources

- [tf.data.TFRecordDataset](https://www.tensorflow.org/api_docs/python/tf/data/TFRecordDataset)
- [tf.io.TFRecordOptions](https://www.tensorflow.org/api_docs/python/tf/io/TFRecordOptions)
"""

import re
from dataclasses import dataclass
from math import prod

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.passes import kind_of
from tfdoctor.facts.run.program import Dataset, DatasetParameters, FileList
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Verdict

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "the files have to be written again, once, without compression"

READER = re.compile(r"TFRecord(?:V\d)?|TextLine|FixedLengthRecord(?:V\d)?")
"""The stages that read records from files."""


BATCHES = ("Batch", "PaddedBatch", "ParallelBatch")


@dataclass(frozen=True, slots=True)
class Limits:
    """When decompression matters."""

    share: float = share_limit(
        0.1,
        "Smallest share of the step that reading a step's records must take; smaller shares are hidden behind the "
        "compute",
    )


def check(
    pipeline: InputPipeline, properties: DatasetProperties, breakdown: Breakdown, limits: Limits = Limits()
) -> Verdict:
    """Compare the reading of a step's compressed records with the step."""
    compressed = [data for data in properties.chain if data.parameters.compression_type]
    if not compressed:
        return Healthy(summary="The pipeline reads no compressed records")
    kinds = ", ".join(sorted({data.parameters.compression_type for data in compressed}))
    places = {data.files.network for data in properties.chain if data.files}
    if places != {""}:
        where = f"remote ({', '.join(sorted(places))})" if places else "unknown"
        return NotApplicable(reason=f"the records are compressed ({kinds}), but their place is {where}")
    readers = (s for s in pipeline.stages if READER.fullmatch(s.kind) and s.calls and s.wall_ms)
    reader = max(readers, key=lambda stage: stage.work_ms, default=None)
    if reader is None:
        return NotApplicable(reason="no compressed record was read in the traced steps")
    if not breakdown.waits_for_input:
        return Healthy(summary=f"Decompressing records does not slow training: {breakdown.little_wait}")
    return _judged(reader, compressed[0], properties, breakdown, pipeline, limits)


def _judged(
    reader: StageTime,
    dataset: Dataset,
    properties: DatasetProperties,
    breakdown: Breakdown,
    pipeline: InputPipeline,
    limits: Limits,
) -> Verdict:
    """Price the records that a step takes in the long run, those of its batch."""
    batches = [data for data in properties.chain if kind_of(data) in BATCHES]
    records = float(prod(data.parameters.batch_size or 1 for data in batches))
    each = reader.wall_ms / reader.calls
    taken = each * records
    share = taken / breakdown.step_ms if breakdown.step_ms else 0.0
    evidence = (
        Measure("time per compressed record", ms(each)),
        Measure("records per step", count(records)),
        Measure("records read in a traced step", count(reader.calls)),
        Measure.share("share of a step's time needed to read its records", share, limits.share),
    )
    kind = dataset.parameters.compression_type
    summary = f"Reading the {kind} records of a step takes {milliseconds(taken)} on one thread"
    if share < limits.share:
        return Healthy(summary=summary, evidence=evidence)
    remedy = Remedy("Store local records without compression", WRITE, dataset.at)
    effects = (reader.scaled(0.0, Bound.AT_MOST),) if reader in pipeline.limiting else ()
    return Finding(summary=summary, evidence=evidence, remedies=(remedy,), effects=effects)


WRITE = """\
with tf.io.TFRecordWriter(path) as writer:  # no compression
    for record in tf.data.TFRecordDataset(compressed_path, compression_type="GZIP"):
        writer.write(record.numpy())
dataset = tf.data.TFRecordDataset(path)"""


def example(
    *others: StageTime,
    compression: str = "GZIP",
    each: float = 0.15,
    calls: float = 32.0,
    files: FileList | None = FileList(1),
    wait: float = 4.0,
) -> Verdict:
    """Each of 32 records takes 0.15 ms, in a step of 8 ms that waits."""
    records = Dataset(
        id=0,
        kind="TFRecordDatasetV2",
        parameters=DatasetParameters(compression_type=compression),
        files=files,
        at=Location("train.py", 46),
    )
    batch = Dataset(id=1, kind="_BatchDataset", inputs=(0,), parameters=DatasetParameters(batch_size=32))
    path = "Root::Prefetch::Batch::TFRecord"
    reader = StageTime.of(path, each * calls, calls=calls, dataset=records)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), reader, *others),
        DatasetProperties((batch, records)),
        Breakdown.of(input=wait, device=8.0 - wait),
    )


sick = example


def healthy() -> Verdict:
    """The same records without compression."""
    return example(compression="")
