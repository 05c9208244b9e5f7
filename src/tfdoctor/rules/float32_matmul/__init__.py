from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.operations.matmuls import of_unknown_precision
from tfdoctor.facts.operations.operation_time import layer_table
from tfdoctor.facts.run.framework import JAX
from tfdoctor.facts.run.hardware import AMX, SixteenBit
from tfdoctor.rules.float32_matmul.float32_work import Float32Work, avoids_unit
from tfdoctor.rules.float32_matmul.reduced_precision import ReducedPrecision

__doc__, CODE = page(__file__)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    on_cpu: float = share_limit(0.15)
    on_amx: float = share_limit(0.25)


UNKNOWN_PRECISION = (
    "the precision of the matmuls is unknown: record a step that runs in a graph, not eagerly, with "
    "`tfdoctor profile`"
)


def check(
    operations: Operations,
    hardware: Hardware,
    program: Program | None,
    reduced: ReducedPrecision,
    framework: Framework,
    limits: Limits = Limits(),
) -> Verdict:
    """Price every float32 matmul and convolution at the 16-bit rate.

    A gain on a CPU has to be larger than what is not counted, such as casts of activations.
    """
    unit = hardware.sixteen_bit
    if unit is None:
        return NotApplicable(reason=hardware.missing or f"{hardware.name} has no 16-bit matrix unit")
    if not any(row.precision for row in operations.matrix):
        unknown = UNKNOWN_PRECISION if operations.matrix else operations.why_unlisted
        return nothing("The step runs no matmul or convolution", unknown)
    matmuls = Float32Work.of(operations, hardware, unit, program)
    if not matmuls.slow:
        healthy = _without_gain(operations, sum(row.ms for row in matmuls.others))
        return nothing(healthy, of_unknown_precision(operations))
    effects = (*matmuls.gains, *reduced.gains, *reduced.costs, *matmuls.costs)
    slow_ms = sum(row.ms for row in matmuls.slow)
    summary = f"Float32 matmuls and convolutions take {milliseconds(slow_ms)} per step"
    finding = Finding(
        summary=f"{summary}; they run faster in {unit.dtype} ({hardware.matrix_unit})",
        evidence=(
            *operations.part(slow_ms).measures("in float32 matmuls and convolutions"),
            *_ratios(matmuls, hardware, unit),
            layer_table(matmuls.slow),
            *_others(reduced, operations),
        ),
        remedies=(_remedy(unit.dtype, framework, program.first_line if program else None),),
        effects=effects,
    )
    least = limits.on_amx if hardware.matrix_unit == AMX else limits.on_cpu
    share = sum((1.0 - effect.scales) * _ms(effect) for effect in effects) / operations.total_ms
    if hardware.kind != DeviceKind.CPU or share >= least:
        return finding
    label = "share of the compute time that 16-bit precision saves, after costs"
    return Healthy(
        summary=f"{finding.summary}, but casts around them cost about as much as 16-bit precision gains",
        evidence=(*finding.evidence, Measure.share(label, share, least)),
    )


def _ms(effect: Effect) -> float:
    return effect.of.value if effect.of else 0.0


def _without_gain(operations: Operations, float32_ms: float) -> str:
    """Say that they run in other precisions, or that what is in float32 is not slow."""
    if float32_ms:
        taken = f"Float32 matmuls and convolutions take {milliseconds(float32_ms)} per step"
        return f"{taken}; 16-bit precision would not shorten them"
    times = dict.fromkeys(("bfloat16", "float16", "float32", "float64"), 0.0)
    for row in operations.matrix:
        times[row.precision] = times.get(row.precision, 0.0) + row.ms
    reduced, kept, wide = times["bfloat16"] + times["float16"], times["float32"], times["float64"]
    if wide and not reduced:
        return f"Matmuls and convolutions run in float64 ({milliseconds(wide)} per step)"
    others = [f"{milliseconds(kept)} that the model keeps in float32"] if kept else []
    others += [f"{milliseconds(wide)} in float64"] if wide else []
    summary = f"Matmuls and convolutions run in 16-bit precision ({milliseconds(reduced)} per step)"
    return f"{summary}, except {' and '.join(others)}" if others else summary


def _others(reduced: ReducedPrecision, operations: Operations) -> list[Measure]:
    """Return the time of operations that are no float32 matmuls, or of unknown precision."""
    times = {
        "time in other float32 operations, which move half the bytes in 16-bit precision": sum(
            map(_ms, reduced.gains)
        ),
        "time lost in operations that are slower in 16-bit precision on a CPU": sum(
            (effect.scales - 1.0) * _ms(effect) for effect in reduced.costs
        ),
        "time in matmuls and convolutions of unknown precision, not counted": sum(
            row.ms for row in operations.matrix if not row.precision
        ),
    }
    return [Measure(label, ms(time)) for label, time in times.items() if time]


def _ratios(matmuls: Float32Work, hardware: Hardware, unit: SixteenBit) -> Iterator[Measure]:
    """Yield the ratios that the saving is computed from, with the time that each applies to."""
    if hardware.kind == DeviceKind.GPU:
        least_ms = sum(effect.scales * _ms(effect) for effect in matmuls.gains)
        label = f"least {unit.dtype} time relative to float32, at the highest rate measured"
        yield Measure.share(label, least_ms / sum(row.ms for row in matmuls.slow))
    scalar = [row for row in matmuls.slow if avoids_unit(row, unit)]
    if len(scalar) < len(matmuls.slow):
        yield Measure.share(f"{unit.dtype} time relative to float32 ({unit.source})", unit.scales)
    if scalar:
        label = "time in kernels that do not use the Tensor Cores, not even as TF32"
        yield Measure(label, ms(sum(row.ms for row in scalar)))
        label = f"{unit.dtype} time relative to kernels without Tensor Cores, by peak rates"
        yield Measure.share(label, unit.scalar_scales or unit.scales)


def _remedy(dtype: str, framework: Framework, at: Location | None) -> Remedy:
    if framework.foreign and not framework.keras:
        action = f"Compute in {dtype}, and keep the weights and the loss in float32"
        return Remedy(action, CODE["jax-cast" if framework.name == JAX else "torch-autocast"].format(dtype))
    return Remedy(f"Train in mixed_{dtype}", CODE["policy"].format(dtype), at, "mixed-precision")
