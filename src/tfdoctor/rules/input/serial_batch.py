from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

# What a ``.batch()`` runs as if nothing is fused with it and one thread produces it.
BATCH = re.compile(r"Batch(?:V\d)?")
SPLIT = 1 << 20  # Bytes of a batch from which on TensorFlow copies it on all threads (``CopyBatch`` in its source)


class Limits(RuleLimits):
    share: float = share_limit(0.02)
    example_bytes: float = limit(32768.0, least=1.0)


def check(  # noqa: PLR0913, PLR0917 - what the copy costs, what spreads it, and on how many cores
    pipeline: InputPipeline, breakdown: Breakdown, device: Device, cores: Cores | None,
    properties: DatasetProperties | None, options: DataOptions | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Look for a batch of large examples in the segment that limits the pipeline."""
    stage, least = heaviest(pipeline.limiting, BATCH), limits.share * breakdown.step_ms
    if stage is None or stage.work_ms < least or not breakdown.waits_for_input:
        work = milliseconds(sum(one.work_ms for one in pipeline.stages if BATCH.fullmatch(one.kind)))
        return Healthy(summary=f"Batching takes {work} per step and does not limit the pipeline")
    if stage.concurrency > ONE_THREAD:
        return Healthy(summary="Batches are copied on several threads already")
    time = f"a batch takes {milliseconds(stage.work_ms)} per step"
    number = (stage.dataset.parameters.batch_size if stage.dataset else None) or 0
    bytes_of_all = properties.element_bytes(stage.dataset) if properties and stage.dataset else None
    if bytes_of_all is None or not number:
        return NotApplicable(
            reason=f"{time}, but the size of its examples is unknown (their shapes are not fixed, they hold "
            "text, or they were not recorded): either the copy or the calls for each example take the time"
        )
    size = bytes_of_all / number
    if size < limits.example_bytes:
        examples = f"examples of {quantity(nbytes(size))}"
        return Healthy(summary=f"{time.capitalize()} for {examples}; most of this time is not the copy")
    whole, off = nbytes(size * number), options.no_parallel_copy if options else ""
    if whole.value >= SPLIT and not off:
        by_all = f"tf.data copies batches of {quantity(whole)} on all of its threads"
        return Healthy(summary=by_all) if options else NotApplicable(reason=f"{by_all} {UNLESS}")
    code = f"dataset = dataset.batch({number}, num_parallel_calls=tf.data.AUTOTUNE)"
    remedies = [Remedy("Produce several batches at once", code, stage.at, "parallel-batch")]
    if options and off and not options.by_keras:
        removed = f"# options.{off} = False  # remove this: tf.data then copies on all of its threads"
        remedies.append(Remedy(f"Or remove the option {off}", removed, options.at))
    return Finding(
        summary=f"One thread copies the examples into batches of {quantity(whole)}",
        evidence=(
            Measure("batching time per step", ms(stage.work_ms)),
            Measure("bytes per example", nbytes(size), nbytes(limits.example_bytes)),
            Measure("bytes per batch", whole),
        ),
        remedies=tuple(remedies),
        effects=(stage.scaled(left_on_all_cores(device, cores), Bound.AT_MOST, spreads=True),),
    )


UNLESS = (
    "unless an option forbids it, but the pipeline's options were not recorded; record again with "
    "`tfdoctor profile`"
)
