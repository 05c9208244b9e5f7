"""Large examples are copied into batches on one thread, and the step waits for it.

## What it checks

Whether the pipeline's slowest segment holds a `batch` that ran by itself, how long its own work takes
per step, how large its examples are, and whether an option keeps tf.data from copying them on all its
threads. What ran is read from the trace: a `map` directly before `batch` is fused with it
(`MapAndBatch`) and copies on all its threads; such a batch is not reported.

## Why it matters

`batch` copies every example into one new block of memory. For images, clips or windows of sensors these are tens
of megabytes per batch, and one thread copies them one after the other.

## How to fix

Leave the options `parallel_batch` and `apply_default_optimizations` alone, or write
`batch(n, num_parallel_calls=tf.data.AUTOTUNE)`, which makes several batches at once. Smaller elements help
as well: keep images as `uint8` and cast them in the model. Several batches at once take the memory of
several batches.

## Holds for

TensorFlow 2.8 and later, which copy a batch of 1 MiB or more on all threads of the pipeline unless an option
forbids it (`parallel_batch`; seen in 2.21: two threads at work for a plain `batch`, one with the option off).
Without such an option nothing is reported of large batches.

The threads share the memory's bandwidth and, on a run without accelerator, the cores with the compute, so
the saving is a ceiling. `padded_batch` cannot run in parallel. Where
the examples are small (numbers, short texts) it is not the copy that takes time but the call for each of
them: nothing is said of that here.

## Sources

- [tf.data.Dataset.batch](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#batch)
- [tf.data.experimental.OptimizationOptions](https://www.tensorflow.org/api_docs/python/tf/data/experimental/OptimizationOptions)
"""

import math
import re
from dataclasses import dataclass

from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.machine.cores import Cores
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import milliseconds, quantity
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import ms, nbytes
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

BATCH = re.compile(r"Batch(?:V\d)?")
"""What a ``.batch()`` runs as where nothing is fused with it and one thread makes it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.02,
        "of the step that a batch takes by itself: below it, making it parallel is not worth a word",
        most=1.0,
    )
    example_bytes: float = limit(
        32768.0,
        "bytes of one example: to copy this much takes about 4 microseconds, and the call for it 1 to 3 "
        "(measured on one core): of smaller ones the copy is not the main part",
        least=1.0,
    )


LIMITS = Limits()


def check(  # noqa: PLR0913, PLR0917 - what the copy costs, what spreads it, and on how many cores
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    properties: DatasetProperties | None,
    options: DataOptions | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for a batch of large examples in the segment that limits the pipeline."""
    everywhere = [stage for stage in pipeline.stages if BATCH.fullmatch(stage.kind)]
    slowest = pipeline.slowest
    limiting = [s for s in everywhere if slowest and s.path in slowest.stages and s.work_ms]
    stage = max(limiting, key=lambda stage: stage.work_ms, default=None)
    if (
        stage is None
        or not breakdown.waits_for_input
        or stage.work_ms < limits.share * breakdown.step_ms
    ):
        return Healthy(summary=_fine(everywhere))
    if stage.concurrency > ONE_THREAD:
        return Healthy(summary="Batches are copied on several threads already")
    size = _example_bytes(stage, properties)
    if size is None:
        return NotApplicable(
            reason=f"a batch takes {milliseconds(stage.work_ms)} per step by itself, but how large its examples "
            "are is not known (their shapes are open, they hold text, or they were not recorded): it may be the "
            "copy, or the calls for each example"
        )
    if size < limits.example_bytes:
        return Healthy(
            summary=f"A batch takes {milliseconds(stage.work_ms)} per step by itself, for examples of "
            f"{quantity(nbytes(size))}: that is not their copy"
        )
    whole = size * _number(stage)
    if whole >= SPLIT and (options is None or not options.no_parallel_copy):
        return _copied_by_all(whole, options)
    return _finding(stage, size, limits, _speedup(device, cores), options)


SPLIT = 1 << 20
"""Bytes of a batch from which on TensorFlow copies it on all threads (``CopyBatch`` in its source)."""

ONE_THREAD = 1.2
"""Threads at work in a stage, on average, up to which it is sequential: hand-overs overlap a little."""


def _fine(batches: list[StageTime]) -> str:
    work = sum(stage.work_ms for stage in batches)
    return f"Putting examples into batches takes {milliseconds(work)} per step, which is not what limits it"


def _example_bytes(stage: StageTime, properties: DatasetProperties | None) -> float | None:
    """Return the bytes of what goes into a batch, from the size of what comes out of it."""
    if properties is None or stage.dataset is None:
        return None
    number = stage.dataset.parameters.get("batch_size")
    whole = properties.element_bytes(stage.dataset)
    return whole / int(number) if whole is not None and number else None


def _number(stage: StageTime) -> int:
    return int(stage.dataset.parameters["batch_size"]) if stage.dataset else 1


def _copied_by_all(whole: float, options: DataOptions | None) -> Verdict:
    said = f"batches of {quantity(nbytes(whole))}"
    if options is None:
        return NotApplicable(
            reason=f"tf.data copies {said} on all its threads unless an option forbids it, and the pipeline's "
            "options were not recorded"
        )
    return Healthy(summary=f"tf.data copies {said} on all its threads by itself")


def _speedup(device: Device, cores: Cores | None) -> float:
    """Return how many times as fast it gets at most: on all cores, or beside an accelerator the free ones."""
    if cores is None:
        return math.inf
    return max(1.0, cores.usable if device.kind == DeviceKind.CPU else 1.0 + cores.free)


def _finding(
    stage: StageTime, size: float, limits: Limits, speedup: float, options: DataOptions | None
) -> Finding:
    whole = nbytes(size * _number(stage))
    return Finding(
        summary=f"One thread copies the examples into batches of {quantity(whole)}",
        evidence=(
            Measure("the batch's own work per step", ms(stage.work_ms)),
            Measure("bytes of an example", nbytes(size), nbytes(limits.example_bytes)),
            Measure("bytes of a batch", whole),
        ),
        remedies=_remedies(stage, options),
        effects=(
            Effect(
                Stage.INPUT,
                1.0 / speedup,
                stage.path,
                ms(stage.work_ms),
                bound=Bound.AT_MOST,
                spreads=True,
            ),
        ),
    )


def _remedies(stage: StageTime, options: DataOptions | None) -> tuple[Remedy, ...]:
    code = f"dataset = dataset.batch({_number(stage)}, num_parallel_calls=tf.data.AUTOTUNE)"
    parallel = Remedy("Make several batches at once", code, stage.at, "parallel-batch")
    off = options.no_parallel_copy if options else ""
    if not (options and off) or options.by_keras:
        return (parallel,)
    kept = f"# options.{off} = False  # leave this out: tf.data then copies on all its threads"
    return parallel, Remedy(f"Or leave {off} as tf.data has it", kept, options.at)


def sick() -> Verdict:
    """Batches of 64 images of 602 kB, which an option lets one thread copy, 20 ms of each step."""
    return _example("(224, 224, 3), dtype=tf.float32", work=20.0)


def healthy() -> Verdict:
    """Batches of 64 numbers."""
    return _example("(), dtype=tf.float32", work=0.1)


def _example(shape: str, work: float) -> Verdict:
    written = Dataset(
        id=1,
        kind="_BatchDataset",
        parameters={"batch_size": 64},
        element=f"TensorSpec(shape={shape.replace('(', '(None, ', 1).replace(', )', ',)')}, name=None)",
    )
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path="Root::Prefetch::BatchV2",
        kind="BatchV2",
        work_ms=work,
        wall_ms=work,
        dataset=written,
    )
    return check(
        InputPipeline.of(ahead, stage),
        Breakdown.of(input=10.0, device=10.0),
        Device(DeviceKind.GPU, 1, 1),
        Cores(4.0, busy=1.0),
        DatasetProperties((written,)),
        DataOptions({"experimental_optimization.parallel_batch": False}),
    )
