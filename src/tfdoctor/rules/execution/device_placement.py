from tfdoctor.facts.gpu.host_syncs import Detours
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (figures_per_step,)

PYTHON = frozenset(["PyFunc", "PyFuncStateless", "EagerPyFunc"])  # Types of operations that call Python


class Limits(RuleLimits):
    share: float = share_limit(0.02)


def check(detours: Detours, breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """Add up the copies and the waits."""
    rows = detours.rows
    if not rows:
        return Healthy(summary="No operation on the host lies between two copies of a step")
    total = sum(row.ms for row in rows)
    share = breakdown.share(total)
    summary = f"The GPU waits {milliseconds(total)} per step for {counted(len(rows), 'operation')} on the host"
    table = Table.of(
        rows,
        ("operation", lambda row: row.name),
        ("type", lambda row: row.type),
        ("your line", lambda row: row.at),
        ("calls per step", lambda row: count(row.calls)),
        ("time of the copies", lambda row: ms(row.copies_ms)),
        ("wait between them", lambda row: ms(row.waiting_ms)),
        most=10,
    )
    action, code = "Run the operation on the GPU, or in the pipeline", CODE["placed"]
    if rows[0].type in PYTHON:
        action, code = "Move the Python function into the pipeline, or out of the step", CODE["pipeline"]
    elif "String" in rows[0].type:
        action, code = "Move the operation on strings into the pipeline", CODE["pipeline"]
    times = [({Stage.TRANSFER: row.copies_ms, Stage.HOST: row.waiting_ms}, row.name) for row in rows]
    return judged(
        Measure.share("share of the step in these waits, with their copies", share, limits.share),
        Measure("copies to the host and back", ms(sum(row.copies_ms for row in rows))),
        Measure("wait between the copies", ms(sum(row.waiting_ms for row in rows))),
        table,
        healthy=summary,
        finding=f"{summary} ({percent(share)})",
        remedies=[Remedy(action, code, rows[0].at)],
        effects=[effect for parts, name in times for effect in Effect.of_stages(parts, name)],
    )
