"""The matrix unit does little while the device is busy.

## What it checks

On a TPU, and on a GPU whose operations' FLOPs are known: the FLOPs that the step achieves while the
device is busy, over the unit's peak. Else on a GPU: the share of matmul and convolution time spent in
kernels that are known by name to use Tensor Cores (on AMD's GPUs: matrix cores), against those that
multiply without; kernels with unknown names, and conversions beside products, count for neither side.

## Why it matters

The matrix unit is most of what the device was bought for. The rule says why it idles, by time: other
operations, float32 arithmetic, padding, or products too small or too short of data to fill it.

## How to fix

Follow the findings that name the cause: float32-matmul, unaligned-dimension, unfused-batch-norm,
depthwise-convolution; then larger batches. This rule claims no saving of its own, so that none is
counted twice.

## Holds for

TPUs (peak from the trace), NVIDIA GPUs from Volta on and AMD's Instinct from MI100 on. NVML's
"utilization" is the share of time in which any kernel runs; it is never taken for the use of the matrix unit.

## Sources

- [Roofline: an insightful visual performance model](https://doi.org/10.1145/1498765.1498785)
- [Tensor Cores, NVIDIA](https://www.nvidia.com/en-us/data-center/tensor-cores/)
- [Cloud TPU performance guide](https://cloud.google.com/tpu/docs/performance-guide)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.matrix_unit import MatrixUnit
from tfdoctor.humanize import percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import flop_rate, ms, ratio
from tfdoctor.verdict import (
    Evidence,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Verdict,
)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    low: float = limit(
        0.30,
        "of the unit's peak while the device is busy: well-tuned training reaches 40 to 60 %, and "
        "gpuprof warns below 30 %",
        most=1.0,
    )
    low_on_unit: float = limit(
        0.50,
        "of the matmul and convolution time whose kernels are known: below it most avoids the unit",
        most=1.0,
    )
    small: float = limit(
        0.10,
        "of the compute time: where matmuls and convolutions take less, they are not where the time goes",
        most=1.0,
    )


LIMITS = Limits()


def check(unit: MatrixUnit, limits: Limits = LIMITS) -> Verdict:
    """Judge the unit's use by FLOPs, or by kernels where FLOPs are unknown."""
    if unit.utilization is not None:
        return _by_flops(unit, unit.utilization, limits)
    if not unit.matrix_ms:
        return Healthy(
            summary="The step runs no matmul or convolution, so the matrix unit has no work"
        )
    known = (unit.on_unit_ms or 0.0) + (unit.off_unit_ms or 0.0)
    if not known:
        return NotApplicable(
            reason="neither FLOPs nor kernel names tell whether the matrix unit was used"
        )
    return _by_kernels(unit, (unit.on_unit_ms or 0.0) / known, limits)


def _by_flops(unit: MatrixUnit, use: float, limits: Limits) -> Verdict:
    evidence = (
        Measure(f"{unit.unit} use while busy", ratio(use), ratio(limits.low)),
        *_causes(unit),
    )
    if use >= limits.low:
        return Healthy(
            summary=f"The {unit.unit} does {percent(use)} of its peak while the device is busy",
            evidence=evidence,
        )
    return _low(
        f"The {unit.unit} does {percent(use)} of its peak while the device is busy", evidence
    )


def _by_kernels(unit: MatrixUnit, share: float, limits: Limits) -> Verdict:
    words = f"{percent(share)} of the matmul and convolution time runs in {unit.unit} kernels"
    evidence = (
        Measure(
            f"matmul and convolution time in {unit.unit} kernels",
            ratio(share),
            ratio(limits.low_on_unit),
        ),
        Measure("matmul and convolution time in kernels of unknown kind", ms(unit.unknown_ms)),
        *_causes(unit),
    )
    if share >= limits.low_on_unit or unit.matrix_ms < limits.small * unit.busy_ms:
        return Healthy(summary=words, evidence=evidence)
    return _low(words, evidence)


def _causes(unit: MatrixUnit) -> list[Evidence]:
    found: list[Evidence] = [
        Measure("compute per step", ms(unit.busy_ms)),
        Measure("of it in matmuls and convolutions", ms(unit.matrix_ms)),
        Measure(
            "of it in other operations, which the unit cannot run",
            ms(unit.busy_ms - unit.matrix_ms),
        ),
    ]
    found += [
        Measure(f"in kernels that multiply {name}", ms(time)) for name, time in unit.precisions
    ]
    if unit.beside_ms:
        found.append(Measure("in conversions and transforms beside them", ms(unit.beside_ms)))
    if unit.unused_ms:
        found.append(
            Measure(f"in operations that the {unit.unit} could run as they are", ms(unit.unused_ms))
        )
    if unit.matrix_rate and unit.peak_flop_s:
        found.append(
            Measure(
                "rate of the matmuls and convolutions",
                flop_rate(unit.matrix_rate),
                flop_rate(unit.peak_flop_s),
            )
        )
    return found


def _low(summary: str, evidence: tuple[Evidence, ...]) -> Finding:
    return Finding(
        summary=summary,
        evidence=evidence,
        remedies=(
            Remedy(
                "Mend precision, alignment and unfused operations where they are found, then try larger batches",
                "dataset = dataset.batch(4 * batch_size, drop_remainder=True)  # and adapt the learning rate",
            ),
        ),
        severity=Severity.NOTE,
    )


def sick() -> Verdict:
    """A TPU at 9 % of its peak."""
    return check(MatrixUnit(unit="MXU", busy_ms=50.0, matrix_ms=30.0, utilization=0.09))


def healthy() -> Verdict:
    """A TPU at 52 %."""
    return check(MatrixUnit(unit="MXU", busy_ms=50.0, matrix_ms=45.0, utilization=0.52))
