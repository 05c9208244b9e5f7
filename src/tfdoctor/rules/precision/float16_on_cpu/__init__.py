from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (only_on(DeviceKind.CPU, "the training does not run on a CPU"),)


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(
    operations: Operations, hardware: Hardware, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Take the time of all float16 operations as the ceiling of what another type saves."""
    if not any(row.precision for row in operations.matrix):
        unknown = "the trace does not contain the types of the matmuls" if operations.matrix else ""
        return nothing("The step runs no matmul or convolution", unknown, operations.why_unnamed)
    rows = [row for row in operations.matrix if row.precision == "float16"]
    part = operations.part(sum(row.ms for row in rows))
    summary = f"Float16 matmuls and convolutions take {part}"
    policy = "mixed_bfloat16" if hardware.sixteen_bit else "float32"
    code = f'keras.mixed_precision.set_global_policy("{policy}")  # before the first layer is created'
    at = program.first_line if program else None
    built = ((row, row.operation) for row in operations.rows if row.ms)
    # what reads or writes float16, or checks for overflow, as scaling the loss for float16 does
    halves = [
        (row, 0.0)
        for row, one in built
        if row.type == "IsFinite" or (one and any(dtype == "float16" for dtype, _ in (*one.inputs, *one.outputs)))
    ]
    return spared(
        part,
        limits.share,
        "in float16 matmuls and convolutions",
        halves,
        healthy=summary,
        finding=f"{summary}, on a CPU",
        remedies=[Remedy(f"Train in {policy}", code, at, "precision-policy")],
        shown=[layer_table(rows, types=False, most=10)],
    )
