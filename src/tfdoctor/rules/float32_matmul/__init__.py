from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.matmuls.unrecorded_matmuls import UnrecordedMatmuls
from tfdoctor.facts.operations.layer_times import layer_table
from tfdoctor.facts.run.framework import JAX
from tfdoctor.facts.run.matrix_units import AMX, SixteenBit
from tfdoctor.rules.float32_matmul.float32_work import Float32Work
from tfdoctor.rules.float32_matmul.reduced_precision import ReducedPrecision

__doc__, CODE = page(__file__)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """What 16-bit precision must save to be reported."""

    on_cpu: float = share_limit(
        0.15,
        "Smallest share of the compute time that 16-bit precision must save on a CPU, after known costs: three "
        "small networks of convolutions with -7, 3 and 6 % became 2, 7 to 14 and 0 to 3 % faster, a U-Net with 6 "
        "to 13 % 21 %, two networks of dense layers with 16 and 16 to 24 % became 14 to 20 and 19 % faster "
        "(programs of benchmarks/whole_run, training steps of both types taking turns in one process, medians of "
        "one to three runs, 2026-11-24). Below 15 % stand a transformer, a network of 1-D convolutions and a graph "
        "network that became slower, where 4 to 18 % were predicted before these costs were counted; they were not "
        "predicted again (benchmarks/accuracy/judge.py, 2026-11-22)",
    )
    on_amx: float = share_limit(
        0.25,
        "Smallest share of the compute time that 16-bit precision must save on a CPU with AMX, after known costs: "
        "of six scripts with a predicted gain of 7 to 23 % of the step, five became slower and one 4 % faster; all "
        "three with more than 35 % became faster (benchmarks/accuracy/judge.py, 2026-11-22)",
    )


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
    """Price every float32 matmul and convolution at the 16-bit rate."""
    sixteen_bit = hardware.sixteen_bit
    if sixteen_bit is None:
        why = hardware.missing or f"{hardware.name} has no 16-bit matrix unit"
        return NotApplicable(reason=why)
    if not any(row.precision for row in operations.matrix):
        return _without_precision(operations)
    matmuls = Float32Work.of(operations, hardware, sixteen_bit, program)
    if not matmuls.slow:
        return _without_gain(operations, matmuls)
    at = program.first_line if program else None
    finding = _finding(matmuls, operations, reduced, _remedy(sixteen_bit, framework, at))
    if hardware.kind != DeviceKind.CPU:
        return finding
    least = limits.on_amx if hardware.matrix_unit == AMX else limits.on_cpu
    return _if_large_enough(finding, operations, least)


def _if_large_enough(finding: Finding, operations: Operations, least: float) -> Verdict:
    """Report no gain on a CPU that is no larger than what is not counted, such as casts of activations."""
    changes = [(effect.scales, effect.of.value) for effect in finding.effects if effect.of]
    share = sum((1.0 - scales) * time for scales, time in changes) / operations.total_ms
    if share >= least:
        return finding
    label = "share of the compute time that 16-bit precision saves, after costs"
    return Healthy(
        summary=f"{finding.summary}, but casts around them cost about as much as 16-bit precision gains",
        evidence=(*finding.evidence, Measure.share(label, share, least)),
    )


def _without_gain(operations: Operations, matmuls: Float32Work) -> Verdict:
    """Say why there is nothing to gain: they run in other precisions, or what is in float32 is not slow."""
    unknown = UnrecordedMatmuls.measure(operations).why_not_judged()
    if unknown:
        return NotApplicable(reason=unknown)
    float32_ms = sum(row.ms for row in matmuls.others)
    if float32_ms:
        return Healthy(
            summary=f"Float32 matmuls and convolutions take {milliseconds(float32_ms)} per step; "
            "16-bit precision would not shorten them"
        )
    reduced = sum(_ms_in(operations, dtype) for dtype in SIXTEEN_BIT)
    kept, wide = _ms_in(operations, "float32"), _ms_in(operations, "float64")
    if wide and not reduced:
        summary = f"Matmuls and convolutions run in float64 ({milliseconds(wide)} per step)"
        return Healthy(summary=summary)
    summary = f"Matmuls and convolutions run in 16-bit precision ({milliseconds(reduced)} per step)"
    others = [f"{milliseconds(kept)} that the model keeps in float32"] if kept else []
    others += [f"{milliseconds(wide)} in float64"] if wide else []
    return Healthy(summary=", except ".join((summary, " and ".join(others))) if others else summary)


SIXTEEN_BIT = ("bfloat16", "float16")


def _ms_in(operations: Operations, dtype: str) -> float:
    return sum(row.ms for row in operations.matrix if row.precision == dtype)


def _finding(matmuls: Float32Work, operations: Operations, reduced: ReducedPrecision, remedy: Remedy) -> Finding:
    total_ms = sum(row.ms for row in matmuls.slow)
    return Finding(
        summary=f"Float32 matmuls and convolutions take {milliseconds(total_ms)} per step; they run faster in "
        f"{matmuls.sixteen_bit.dtype} ({matmuls.hardware.matrix_unit})",
        evidence=(
            *operations.part(total_ms).measures("in float32 matmuls and convolutions"),
            *_ratios(matmuls),
            layer_table(matmuls.slow),
            *_others(reduced, operations),
        ),
        remedies=(remedy,),
        effects=(*matmuls.gains, *reduced.gains, *reduced.costs, *matmuls.costs),
    )


def _others(reduced: ReducedPrecision, operations: Operations) -> list[Measure]:
    """Return the time of operations that are no float32 matmuls, or of unknown precision."""
    lost = sum((effect.scales - 1.0) * effect.of.value for effect in reduced.costs if effect.of)
    times = {
        "time in other float32 operations, which move half the bytes in 16-bit precision": sum(
            effect.of.value for effect in reduced.gains if effect.of
        ),
        "time lost in operations that are slower in 16-bit precision on a CPU": lost,
        "time in matmuls and convolutions of unknown precision, not counted": sum(
            row.ms for row in operations.matrix if not row.precision
        ),
    }
    return [Measure(label, ms(time)) for label, time in times.items() if time]


def _without_precision(operations: Operations) -> Verdict:
    """Say why no matmul of a known precision runs."""
    if operations.matrix:
        return NotApplicable(reason=UNKNOWN_PRECISION)
    if operations.why_unlisted:
        return NotApplicable(reason=operations.why_unlisted)
    return Healthy(summary="The step runs no matmul or convolution")


def _ratios(matmuls: Float32Work) -> Iterator[Measure]:
    """Yield the ratios that the saving is computed from, with the time that each applies to."""
    sixteen_bit = matmuls.sixteen_bit
    if matmuls.hardware.kind == DeviceKind.GPU:
        now_ms = sum(row.ms for row in matmuls.slow)
        least_ms = sum(effect.scales * effect.of.value for effect in matmuls.gains if effect.of)
        label = f"least {sixteen_bit.dtype} time relative to float32, at the highest rate measured"
        yield Measure.share(label, least_ms / now_ms)
    scalar = [row for row in matmuls.slow if matmuls.avoids_unit(row)]
    if len(scalar) < len(matmuls.slow):
        label = f"{sixteen_bit.dtype} time relative to float32 ({sixteen_bit.source})"
        yield Measure.share(label, sixteen_bit.scales)
    if scalar:
        label = "time in kernels that do not use the Tensor Cores, not even as TF32"
        yield Measure(label, ms(sum(row.ms for row in scalar)))
        label = f"{sixteen_bit.dtype} time relative to kernels without Tensor Cores, by peak rates"
        yield Measure.share(label, sixteen_bit.scalar_scales or sixteen_bit.scales)


def _remedy(sixteen_bit: SixteenBit, framework: Framework, at: Location | None) -> Remedy:
    if framework.foreign and not framework.keras:
        cast = JAX_CAST if framework.name == JAX else CODE["torch-autocast"]
        action = f"Compute in {sixteen_bit.dtype}, and keep the weights and the loss in float32"
        return Remedy(action, cast.format(sixteen_bit.dtype))
    policy = f"mixed_{sixteen_bit.dtype}"
    code = (
        f'keras.mixed_precision.set_global_policy("{policy}")  # before the first layer is created\n'
        '...\noutputs = keras.layers.Dense(classes, dtype="float32")(x)  # the last layer stays float32'
    )
    return Remedy(f"Train in {policy}", code, at, "mixed-precision")


JAX_CAST = """\
def loss(params, batch):
    params, batch = jax.tree.map(
        lambda x: x.astype(jnp.{0}) if x.dtype == jnp.float32 else x, (params, batch)
    )
    ...  # as before; compute the loss itself from outputs.astype(jnp.float32)"""
"""jax.default_matmul_precision changes how float32 is multiplied, not the types: the bytes stay the same."""
