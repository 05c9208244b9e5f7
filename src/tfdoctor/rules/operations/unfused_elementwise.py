from tfdoctor.facts.run.operation_types import FUSIBLE
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=Healthy(summary="XLA fuses the elementwise operations on a TPU")),)


class Limits(RuleLimits):
    share: float = share_limit(0.1)
    operations: float = limit(10.0)


def check(
    operations: Operations, optimizer: OptimizerWork, hardware: Hardware, program: Program | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Remove the time of each elementwise operation that no other rule counts: fusing saves that much at most."""
    norms = {layer.name for layer in program.layers if "BatchNorm" in layer.kind} if program else set()
    others = optimizer.others(operations)
    rows = [row for row in others if row.type in FUSIBLE and row.layer not in norms]
    part, calls = operations.part(sum(row.ms for row in rows)), sum(row.calls for row in rows)
    if hardware.kind == DeviceKind.CPU:
        return NotApplicable(reason=f"elementwise operations take {part}; {ON_CPU}")
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    by_type: dict[str, list[OperationTime]] = defaultdict(list)
    for row in rows:
        by_type[row.type].append(row)
    groups = ((kind, sum(row.ms for row in some), sum(row.calls for row in some)) for kind, some in by_type.items())
    table = Table.of(
        sorted(groups, key=lambda group: (-group[1], group[0])),
        ("operation", lambda group: group[0]),
        ("calls", lambda group: count(group[2])),
        ("time per step", lambda group: ms(group[1])),
    )
    at = next((row.at for row in rows if row.at), None)
    action = "Compile the step so that XLA fuses elementwise operations"
    return spared(
        part,
        limits.share,
        "in elementwise operations",
        [(row, 0.0) for row in rows],
        healthy=f"Elementwise operations take {part}",
        finding=f"{counted(round(calls), 'elementwise operation')} outside XLA take {part}",
        wrong=part.share >= limits.share and calls >= limits.operations,
        remedies=[Remedy(action, CODE["fuse"], at, "jit-compile")],
        more=[Measure("elementwise operations per step", count(calls), count(limits.operations))],
        shown=[table],
    )


ON_CPU = "on a CPU, XLA may be slower even though it fuses them: try jit_compile=True and measure"
