from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (only_on(DeviceKind.GPU, "the training does not run on a GPU"),)


class Limits(RuleLimits):
    share: float = share_limit(0.05)
    reached: float = share_limit(0.3)


UNKNOWN_RATE = "the FLOPs of the float16 matmuls are unknown: record a step in a graph with `tfdoctor profile`"


def check(
    operations: Operations, hardware: Hardware, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Compare the rate of float16 matmuls with the peak in float32."""
    if not hardware.without_unit:
        why = hardware.missing or f"{hardware.name} has a matrix unit for 16 bits"
        return NotApplicable(reason=why)
    rows, peak = [row for row in operations.matrix if row.precision == "float16"], hardware.float32_flop_s
    if not rows:
        untyped = operations.matrix and not any(row.precision for row in operations.matrix)
        unknown = "the trace does not contain the types of the matmuls" if untyped else ""
        return nothing("No matmul or convolution computes in float16", unknown, operations.why_unlisted)
    known = [row for row in rows if row.flops and row.ms]
    if not peak or not known:
        unknown = UNKNOWN_RATE if peak else f"the rate of {hardware.name} in float32 is unknown"
        return NotApplicable(reason=unknown)
    slow = [row for row in known if row.flop_s < limits.reached * peak]
    part, reached = operations.part(sum(row.ms for row in slow or known)), flop_s(slow or known) or 0.0
    more = (
        Measure("FLOP rate of these in float16", flop_rate(reached)),
        Measure("peak FLOP rate of the GPU in float32", flop_rate(peak)),
        Measure("share of that peak", ratio(reached / peak), ratio(limits.reached)),
    )
    summary, work = f"Float16 matmuls and convolutions take {part}", "in these matmuls and convolutions"
    # what is left at least: the time in float32 at the peak rates, with twice the bytes
    bandwidth = hardware.bandwidth_bytes_s and hardware.bandwidth_bytes_s / 2
    return spared(
        part,
        limits.share,
        work,
        [(row, min(1.0, row.least_ms(bandwidth, peak) / row.ms)) for row in slow],
        healthy=f"{summary}, as fast as float32 might",
        wrong=bool(slow) and part.share >= limits.share,
        finding=f"{summary}, on a GPU without Tensor Cores",
        remedies=[Remedy("Train in float32", CODE["policy"], program.first_line if program else None)],
        more=more,
        shown=[layer_table(slow, types=False, most=10)],
    )
