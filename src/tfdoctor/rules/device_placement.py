from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.gpu.detours import Detour, Detours

__doc__, CODE = page(__file__)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
PRECONDITIONS = (figures_per_step,)
BY_HAND = "whether the operation may move into the pipeline is not in the file"

PYTHON = frozenset(["PyFunc", "PyFuncStateless", "EagerPyFunc"])
"""Types of operations that call Python."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which waits are reported."""

    share: float = share_limit(
        0.02, "Smallest share of the step in which the GPU waits for operations on the host; steps vary by as much"
    )


def check(detours: Detours, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the copies and the waits."""
    if not detours.rows:
        return Healthy(summary="No operation on the host lies between two copies of a step")
    total = sum(row.ms for row in detours.rows)
    share = total / breakdown.step_ms if breakdown.step_ms else 0.0
    number = counted(len(detours.rows), "operation")
    summary = f"The GPU waits {milliseconds(total)} per step for {number} on the host"
    evidence = (
        Measure.share("share of the step in these waits, with their copies", share, limits.share),
        Measure("copies to the host and back", ms(sum(row.copies_ms for row in detours.rows))),
        Measure("wait between the copies", ms(sum(row.waiting_ms for row in detours.rows))),
        _table(detours.rows),
    )
    if share < limits.share:
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=f"{summary} ({percent(share)})",
        evidence=evidence,
        remedies=(_remedy(detours.rows[0]),),
        effects=tuple(effect for row in detours.rows for effect in _effects(row)),
    )


def _table(rows: tuple[Detour, ...]) -> Table:
    return Table.of(
        rows,
        ("operation", lambda row: row.name),
        ("type", lambda row: row.type),
        ("your line", lambda row: row.at),
        ("calls per step", lambda row: count(row.calls)),
        ("time of the copies", lambda row: ms(row.copies_ms)),
        ("wait between them", lambda row: ms(row.waiting_ms)),
        most=10,
    )


def _effects(row: Detour) -> tuple[Effect, ...]:
    times = {Stage.TRANSFER: row.copies_ms, Stage.HOST: row.waiting_ms}
    return Effect.of_stages(times, row.name, bound=Bound.AT_MOST)


def _remedy(row: Detour) -> Remedy:
    if row.type in PYTHON:
        return Remedy("Move the Python function into the pipeline, or out of the step", PIPELINE, row.at)
    if "String" in row.type:
        return Remedy("Move the operation on strings into the pipeline", PIPELINE, row.at)
    return Remedy("Run the operation on the GPU, or in the pipeline", PLACED, row.at)


PIPELINE = """\
dataset = dataset.map(function, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)"""

PLACED = f"""\
tf.debugging.set_log_device_placement(True)  # which operations run on /CPU:0
{PIPELINE}"""
