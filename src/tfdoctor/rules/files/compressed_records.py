from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

BATCHES = ("Batch", "PaddedBatch", "ParallelBatch")


class Limits(RuleLimits):
    share: float = share_limit(0.1)


def check(
    pipeline: InputPipeline, properties: DatasetProperties, breakdown: Breakdown, limits: Limits = Limits()
) -> Verdict:
    """Compare what a step takes in the long run to read the compressed records of its batch with the step."""
    compressed = [data for data in properties.chain if data.parameters.compression_type]
    if not compressed:
        return Healthy(summary="The pipeline reads no compressed records")
    kinds = ", ".join(sorted({data.parameters.compression_type for data in compressed}))
    places = {data.files.network for data in properties.chain if data.files}
    if places != {""}:
        where = f"remote ({', '.join(sorted(places))})" if places else "unknown"
        return NotApplicable(reason=f"the records are compressed ({kinds}), but their place is {where}")
    reader = heaviest((stage for stage in pipeline.stages if stage.calls and stage.wall_ms), READERS)
    if reader is None:
        return NotApplicable(reason="no compressed record was read in the traced steps")
    if not breakdown.waits_for_input:
        return Healthy(summary=f"Decompressing records does not slow training: {breakdown.little_wait}")
    batches = [data for data in properties.chain if kind_of(data) in BATCHES]
    records = float(prod(data.parameters.batch_size or 1 for data in batches))
    each = reader.wall_ms / reader.calls
    share = breakdown.share(each * records)
    kind, taken = compressed[0].parameters.compression_type, milliseconds(each * records)
    return judged(
        Measure("time per compressed record", ms(each)),
        Measure("records per step", count(records)),
        Measure("records read in a traced step", count(reader.calls)),
        Measure.share("share of a step's time needed to read its records", share, limits.share),
        healthy=f"Reading the {kind} records of a step takes {taken} on one thread",
        remedies=[Remedy("Store local records without compression", CODE["write"], compressed[0].at)],
        effects=[reader.scaled(0.0, Bound.AT_MOST)] if reader in pipeline.limiting else [],
    )
