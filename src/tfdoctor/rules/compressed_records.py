from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.run.passes import kind_of

__doc__, CODE = page(__file__)

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
    remedy = Remedy("Store local records without compression", CODE["write"], dataset.at)
    effects = (reader.scaled(0.0, Bound.AT_MOST),) if reader in pipeline.limiting else ()
    return Finding(summary=summary, evidence=evidence, remedies=(remedy,), effects=effects)
