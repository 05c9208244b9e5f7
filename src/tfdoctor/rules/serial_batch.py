"""One thread copies large examples into batches.

## What it checks

Whether the pipeline's slowest segment contains a `batch` that is not fused with a `map`, how long its own work
takes per step, how large its examples are, and whether an option prevents tf.data from copying them on all of
its threads. The trace shows what ran: a `map` directly before `batch` is fused with it (`MapAndBatch`) and
copies on all of its threads; such a batch is not reported.

## Why it matters

`batch` copies every example into one new block of memory. For images, video clips or sensor windows, this is
tens of megabytes per batch, and one thread copies the examples one after the other.

## How to fix

Do not set the options `parallel_batch` and `apply_default_optimizations`, or write
`batch(n, num_parallel_calls=tf.data.AUTOTUNE)`, which produces several batches at once. Smaller elements help
as well: keep images as `uint8` and cast them in the model. Several batches at once take the memory of
several batches.

## Holds for

TensorFlow 2.8 and later. These versions copy a batch of 1 MiB or more on all threads of the pipeline unless an
option forbids it (`parallel_batch`; observed in 2.21: two busy threads for a plain `batch`, one with the option
off). Without such an option, large batches are not reported.

The threads share the memory bandwidth and, on a run without an accelerator, the cores with the compute, so
the saving is an upper bound. `padded_batch` cannot run in parallel. If the examples are small (numbers, short
texts), the call for each example takes the time, not the copy; this rule does not report that.

## Sources

- [tf.data.Dataset.batch](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch)
- [tf.data.experimental.OptimizationOptions](https://www.tensorflow.org/api_docs/python/tf/data/experimental/OptimizationOptions)
"""

import math
import re
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.humanize import milliseconds, quantity
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms, nbytes
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Verdict

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "the option is set where the file does not show it"

BATCH = re.compile(r"Batch(?:V\d)?")
"""What a ``.batch()`` runs as if nothing is fused with it and one thread produces it."""

SPLIT = 1 << 20
"""Bytes of a batch from which on TensorFlow copies it on all threads (``CopyBatch`` in its source)."""

ONE_THREAD = 1.2
"""Average number of busy threads up to which a stage is sequential: they overlap a little at hand-overs."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Which batches are worth copying in parallel."""

    share: float = share_limit(
        0.02, "Smallest share of the step that batching must take; below it, a parallel batch saves too little"
    )
    example_bytes: float = limit(
        32768.0,
        "Smallest size of an example, in bytes: to copy 32 kB takes about 4 microseconds, and to fetch an example "
        "1 to 3 (measured on one core), so that for smaller ones the copies are not what takes the time",
        least=1.0,
    )


def check(  # noqa: PLR0913, PLR0917 - what the copy costs, what spreads it, and on how many cores
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    properties: DatasetProperties | None,
    options: DataOptions | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for a batch of large examples in the segment that limits the pipeline."""
    batches = [stage for stage in pipeline.stages if BATCH.fullmatch(stage.kind)]
    limiting = [stage for stage in batches if stage in pipeline.limiting and stage.work_ms]
    stage = max(limiting, key=lambda stage: stage.work_ms, default=None)
    small = stage is None or stage.work_ms < limits.share * breakdown.step_ms
    if stage is None or small or not breakdown.waits_for_input:
        work = milliseconds(sum(stage.work_ms for stage in batches))
        return Healthy(summary=f"Batching takes {work} per step and does not limit the pipeline")
    if stage.concurrency > ONE_THREAD:
        return Healthy(summary="Batches are copied on several threads already")
    size = _example_bytes(stage, properties)
    if size is None or size < limits.example_bytes:
        return _not_the_copy(stage, size)
    whole = size * _batch_size(stage)
    if whole < SPLIT or (options and options.no_parallel_copy):
        speedup = cores.for_stage(device.kind) if cores else math.inf
        return _finding(stage, size, limits, speedup, options)
    by_all = f"tf.data copies batches of {quantity(nbytes(whole))} on all of its threads"
    if options is None:
        return NotApplicable(reason=f"{by_all} {UNLESS}")
    return Healthy(summary=by_all)


UNLESS = (
    "unless an option forbids it, but the pipeline's options were not recorded; record again with "
    "`tfdoctor profile`"
)


def _not_the_copy(stage: StageTime, size: float | None) -> Verdict:
    """Say what the time of a batch is that need not be the copy of its examples."""
    time = f"a batch takes {milliseconds(stage.work_ms)} per step"
    if size is None:
        return NotApplicable(
            reason=f"{time}, but the size of its examples is unknown (their shapes are not fixed, they hold "
            "text, or they were not recorded): either the copy or the calls for each example take the time"
        )
    return Healthy(
        summary=f"{time.capitalize()} for examples of {quantity(nbytes(size))}; most of this time is not the copy"
    )


def _example_bytes(stage: StageTime, properties: DatasetProperties | None) -> float | None:
    """Return the bytes of one example, from the size of the batch."""
    if properties is None or stage.dataset is None:
        return None
    number = stage.dataset.parameters.batch_size
    whole = properties.element_bytes(stage.dataset)
    return whole / number if whole is not None and number else None


def _batch_size(stage: StageTime) -> int:
    return (stage.dataset.parameters.batch_size or 1) if stage.dataset else 1


def _finding(stage: StageTime, size: float, limits: Limits, speedup: float, options: DataOptions | None) -> Finding:
    whole = nbytes(size * _batch_size(stage))
    code = f"dataset = dataset.batch({_batch_size(stage)}, num_parallel_calls=tf.data.AUTOTUNE)"
    remedies = [Remedy("Produce several batches at once", code, stage.at, "parallel-batch")]
    if options and options.no_parallel_copy and not options.by_keras:
        off = options.no_parallel_copy
        removed = REMOVED.format(off)
        remedies.append(Remedy(f"Or remove the option {off}", removed, options.at))
    return Finding(
        summary=f"One thread copies the examples into batches of {quantity(whole)}",
        evidence=(
            Measure("batching time per step", ms(stage.work_ms)),
            Measure("bytes per example", nbytes(size), nbytes(limits.example_bytes)),
            Measure("bytes per batch", whole),
        ),
        remedies=tuple(remedies),
        effects=(stage.scaled(1.0 / speedup, Bound.AT_MOST, spreads=True),),
    )


REMOVED = "# options.{} = False  # remove this: tf.data then copies on all of its threads"


def element(shape: str, dtype: str = "float32") -> str:
    """Return tf.data's text for batches of examples of a shape."""
    return f"TensorSpec(shape=(None, {shape}), dtype=tf.{dtype}, name=None)"


def example(  # noqa: PLR0913 - what the verdict depends on
    *others: StageTime,
    batches: str = element("224, 224, 3"),
    size: int = 64,
    kind: str = "BatchV2",
    work: float = 20.0,
    threads: float = 1.0,
    wait: float = 10.0,
    device: Device = Device(DeviceKind.GPU, 1, 1),
    cores: Cores | None = Cores(4.0, busy=1.0),
    options: DataOptions | None = DataOptions({"experimental_optimization.parallel_batch": False}),
    at: Location | None = None,
) -> Verdict:
    """One thread copies batches of 64 images of 602 kB for 20 ms per step, because of an option."""
    made = Dataset(
        id=1, kind="_BatchDataset", parameters=DatasetParameters(batch_size=size), element=batches, at=at
    )
    stage = StageTime.of(f"Root::Prefetch::{kind}", work, threads, dataset=made)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), stage, *others),
        Breakdown.of(input=wait, device=20.0 - wait),
        device,
        cores,
        DatasetProperties((made,)),
        options,
    )


sick = example


def healthy() -> Verdict:
    """Batches of 64 numbers."""
    return example(batches=element(""), work=0.1)
