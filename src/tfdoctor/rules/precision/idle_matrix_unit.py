from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


class Limits(RuleLimits):
    low: float = share_limit(0.30)
    low_on_unit: float = share_limit(0.50)
    small: float = share_limit(0.10)


def check(unit: MatrixUnit, limits: Limits = Limits()) -> Verdict:
    """Judge the unit's use by FLOPs, by samples, or by kernels where FLOPs are unknown."""
    little = unit.matrix_ms < limits.small * unit.busy_ms
    known_ms = (unit.on_unit_ms or 0.0) + (unit.off_unit_ms or 0.0)
    of_busy = f"share of the GPU's busy time in which {unit.unit}s worked"
    if unit.utilization is not None:
        use, low, little = unit.utilization, limits.low, False
        summary = f"The {unit.unit} reaches {percent(use)} of its peak while the device is busy"
        measures = [Measure.share(f"share of the {unit.unit} peak reached while the device is busy", use, low)]
        if unit.active is not None:
            measures.append(Measure.share(f"{of_busy}, on padding too (GPM)", unit.active))
    elif not unit.matrix_ms:
        return Healthy(summary="The step runs no matmul or convolution, so the matrix unit has no work")
    elif unit.active is not None:
        use, low = unit.active, limits.low
        summary = f"{unit.unit}s work {percent(use)} of the GPU's busy time"
        measures = [Measure.share(f"{of_busy} (GPM)", use, low)]
    elif known_ms:
        use, low = (unit.on_unit_ms or 0.0) / known_ms, limits.low_on_unit
        summary = f"{percent(use)} of the matmul and convolution time runs in {unit.unit} kernels"
        label = f"share of the matmul and convolution time in {unit.unit} kernels"
        unknown = Measure("time in matmul and convolution kernels of unknown kind", ms(unit.unknown_ms))
        measures = [Measure.share(label, use, low), unknown]
    else:
        return NotApplicable(reason="neither FLOPs nor kernel names show whether the matrix unit was used")
    measures += [
        Measure("compute time per step", ms(unit.busy_ms)),
        Measure("time in matmuls and convolutions per step", ms(unit.matrix_ms)),
        Measure("time in other operations, which the unit cannot run", ms(unit.busy_ms - unit.matrix_ms)),
        *(Measure(f"time in kernels that multiply {name}", ms(time)) for name, time in unit.precisions),
    ]
    if unit.beside_ms:
        measures.append(Measure("time in conversions and transforms for matmuls", ms(unit.beside_ms)))
    if unit.matrix_rate and unit.peak_flop_s:
        label = "FLOP rate of the matmuls and convolutions"
        measures.append(Measure(label, flop_rate(unit.matrix_rate), flop_rate(unit.peak_flop_s)))
    action = "Fix the findings on precision, alignment and fusion, then try larger batches"
    return judged(
        *measures,
        healthy=summary,
        wrong=use < low and not little,
        remedies=[Remedy(action, "batch_size = 4 * batch_size  # and adjust the learning rate")],
        severity=Severity.NOTE,
    )
