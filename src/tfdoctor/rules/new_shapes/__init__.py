from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.training_inputs import SequencePadding, bucketing
from tfdoctor.rules.new_shapes.searches import Searches

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
BY_HAND = "which shapes may be padded to one size is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    steps: float = limit(2.0)
    late: float = limit(1.0)


def check(
    searches: Searches,
    breakdown: Breakdown,
    operations: Operations | None,
    padding: SequencePadding | None,
    program: Program | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report searches that go on in the second half of the traced steps."""
    if not searches.steps and operations and operations.why_unlisted:
        return NotApplicable(reason=operations.why_unlisted)
    if not searches.steps:
        return Healthy(summary="No convolution searched for an algorithm in the traced steps")
    summary = f"Convolutions searched for an algorithm in {searches.steps} of {searches.of} steps"
    evidence = (
        Measure("steps in which a convolution searched", count(searches.steps), count(limits.steps)),
        Measure("traced steps", count(searches.of)),
        Measure("time of kernels that were only tried, per step", ms(searches.lost_ms)),
        Measure("step time", ms(breakdown.step_ms)),
        Table.of(
            searches.operations,
            ("operation", lambda row: row[0]),
            ("time in kernels that were tried", lambda row: ms(row[1])),
            ("time of the fastest alone", lambda row: ms(row[2])),
            most=10,
        ),
    )
    if searches.steps < limits.steps or searches.late < limits.late:
        return Healthy(summary=f"{summary} and not again", evidence=evidence)
    times = {row.name: row.ms for row in operations.rows} if operations else {}
    few_shapes = CODE["images"]
    if padding is not None:
        rows = program.batch_size if program else None
        few_shapes = CODE["buckets"].format(bucketing(padding.buckets, rows, fixed=True))
    return Finding(
        summary=f"{summary}; the kernels that were only tried take {milliseconds(searches.lost_ms)} per step",
        evidence=evidence,
        remedies=(
            Remedy("Let batches have a few shapes", few_shapes),
            Remedy("Or switch the search off, where shapes must be arbitrary", CODE["off"]),
        ),
        effects=tuple(
            Effect(Stage.DEVICE, needed / total, name, ms(times[name]), bound=Bound.AT_MOST)
            for name, total, needed in searches.operations
            if times.get(name, 0.0) >= total / 2  # else the typical step does not search
        ),
    )
