import math

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.data_options import DataOptions
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.terms.humanize import quantity

__doc__, CODE = page(__file__)

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
