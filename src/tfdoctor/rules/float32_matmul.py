"""Matmuls and convolutions run in float32 on hardware that is faster in 16 bit.

## What it checks

The time of matmuls and convolutions whose operands are float32, on a device whose matrix unit runs them
faster in bfloat16 or float16. The saving is computed for each operation from the ratio of the two rates. On
a CPU five things are counted against it: a tenth of a millisecond of each product that does not depend on
the type, the casts of the weights, those around unfused batch normalization, activations that are computed
value by value (sigmoid, tanh, gelu), and the gradients of strided depthwise convolutions, which TensorFlow
computes many times slower in bfloat16 there; everything else of the step is taken to stay as it is, so a
small gain (below 15 % of the compute time) is not reported. On a GPU or TPU all other float32 operations
but the optimizer's are taken to need half their time at least, because their tensors have half the bytes.
Layers that a mixed policy leaves in float32 on purpose, such as the last one, are not reported.

## Why it matters

The matrix unit of Volta and later GPUs, and CPUs with `avx512_bf16` or `amx_bf16`, multiply 16-bit
numbers several times as fast as float32, and every tensor takes half the memory traffic.

## How to fix

Set Keras' policy before the model is built and keep the last layer in float32:
`mixed_bfloat16` on CPUs, TPUs and GPUs from Ampere on, `mixed_float16` on Volta and Turing (`fit`
then scales the loss by itself; a custom loop needs `keras.optimizers.LossScaleOptimizer`). Compare the
accuracy: weights stay float32, the arithmetic does not.

## Holds for

NVIDIA GPUs of compute capability 7.0 and later (from 8.0 on float32 matmuls mostly run as TF32 already,
so the gain is smaller), AMD Instinct from MI100 on, x86 CPUs with avx512_bf16 or amx_bf16 and oneDNN
(TensorFlow 2.9 and later on Linux), TPUs where an operation is bound by memory. Older GPUs and CPUs have
no such unit.

## Sources

- [Mixed precision, TensorFlow guide](https://www.tensorflow.org/guide/mixed_precision)
- [Keras mixed precision API](https://keras.io/api/mixed_precision/)
- [Train with mixed precision, NVIDIA](https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html)
- CPU rates: benchmarks/precision.py of this project, measured on the date that the entry names
"""

from dataclasses import dataclass, replace

from tfdoctor.facts.operations.kernel_kinds import of_operation
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.operations.reduced_precision import ReducedPrecision
from tfdoctor.facts.operations.unrecorded_matmuls import UnrecordedMatmuls
from tfdoctor.facts.run.hardware import Hardware, Narrowing
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.humanize import milliseconds
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.PRECISION
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    on_cpu: float = limit(
        0.15,
        "of the compute time that 16 bit must gain on a CPU, its known costs counted: of ten scripts that "
        "promised 4 to 16 % of the step, two were plainly faster by the clock (eight with "
        "benchmarks/accuracy/judge.py; a transformer and a network of 1-D convolutions took longer)",
        most=1.0,
    )


LIMITS = Limits()

FIXED_MS = 0.1
"""Of each call on a CPU, that 16 bit does not change: the threads' start, repacking of the operands
(benchmarks/precision.py, small products: the model ``min(t, 0.1) + 0.6 (t - 0.1)`` is within a quarter of them)."""

CAST_MS = 0.003
"""Of each product on a CPU, for the casts of its weights, and of their gradients, that a mixed policy
adds (benchmarks/precision.py: 5 to 11 us a layer of three products, whatever its size)."""

EINSUM_MS = 0.25
"""The same of an Einsum, which also turns its operands (benchmarks/precision.py: 64 products
of 64 x 24 x 64 take 0.39 ms in float32 and 0.36 in bfloat16; 256 of 128 x 64 x 128, 9.9 and 4.4)."""

MEMORY_BOUND = 0.6
"""Share of the memory bandwidth from which an operation on a TPU is bound by bytes, not by the MXU."""


def check(
    operations: Operations,
    hardware: Hardware,
    program: Program | None,
    beside: ReducedPrecision,
    limits: Limits = LIMITS,
) -> Verdict:
    """Price every float32 matmul and convolution at the 16-bit rate."""
    narrowing = hardware.narrowing
    if narrowing is None:
        return NotApplicable(
            reason=hardware.missing or f"{hardware.name} has no 16-bit matrix unit"
        )
    if not operations.matrix and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not operations.matrix:
        return Healthy(summary="The step runs no matmul or convolution")
    kinds = {row.name: row.precision for row in operations.matrix}
    if not any(kinds.values()):
        return NotApplicable(
            reason="nothing says in which precision the matmuls run: record graph operations (not "
            "an eager step) with `tfdoctor profile`"
        )
    kept = _kept(program)
    wide = [row for row in operations.matrix if kinds[row.name] == "float32"]
    wide = [row for row in wide if row.layer not in kept]
    slow = [row for row in wide if _gains(row, hardware)]
    if not slow:
        reason = UnrecordedMatmuls.measure(operations).why_not_judged()
        said = _narrow_already(operations, wide)
        return NotApplicable(reason=reason) if reason else Healthy(summary=said)
    finding = _finding(slow, operations, hardware, narrowing, program)
    others = (*beside.gains, *beside.costs, *_weights(wide, slow, hardware))
    evidence = (*finding.evidence, *_others(beside), *_left_open(operations))
    found = replace(finding, evidence=evidence, effects=(*finding.effects, *others))
    return _worth_a_try(found, operations, limits) if hardware.kind == DeviceKind.CPU else found


def _worth_a_try(found: Finding, operations: Operations, limits: Limits) -> Verdict:
    """Find nothing in a gain that is no larger than what is not counted: casts of activations, say."""
    gained = sum((1.0 - one.scales) * one.of.value for one in found.effects if one.of)
    share = gained / operations.total_ms
    measure = Measure("of the compute time to gain, all in all", ratio(share), ratio(limits.on_cpu))
    if share >= limits.on_cpu:
        return found
    said = f"{found.summary.rstrip('.')}; what they gain is about what the casts around them cost"
    return Healthy(summary=said, evidence=(*found.evidence, measure))


def _kept(program: Program | None) -> set[str]:
    """Return the layers that a mixed policy was told to leave in float32, such as the last one."""
    if program is None or not str(program.settings.get("policy", "")).startswith("mixed"):
        return set()
    return {layer.name for layer in program.layers if layer.compute_dtype == "float32"}


def _gains(row: OperationTime, hardware: Hardware) -> bool:
    if hardware.kind == DeviceKind.CPU:
        return any(name.rpartition(":")[2].startswith("_Mkl") for name in row.ran) and (
            row.ms > _fixed_ms(row)
        )
    if hardware.kind == DeviceKind.TPU:
        peak, seconds = hardware.bandwidth_bytes_s, row.ms * 1e-3
        return bool(peak and row.nbytes) and (
            row.nbytes or 0
        ) * row.calls / seconds > MEMORY_BOUND * (peak or 1)
    return True


def _fixed_ms(row: OperationTime) -> float:
    return (EINSUM_MS if row.type == "Einsum" else FIXED_MS) * row.calls


def _narrow_already(operations: Operations, wide: list[OperationTime]) -> str:
    narrow = sum(row.ms for row in operations.matrix if row.precision not in {"float32", ""})
    kept = sum(row.ms for row in operations.matrix if row.precision == "float32")
    left = sum(row.ms for row in wide)
    if not left:
        but = f", but for {milliseconds(kept)} that the model keeps in float32" if kept else ""
        return f"The matmuls and convolutions ({milliseconds(narrow)} per step) run in 16 bit{but}"
    return f"{milliseconds(left)} of float32 matmuls and convolutions per step would gain nothing from 16 bit"


def _left_open(operations: Operations) -> list[Measure]:
    total = sum(row.ms for row in operations.matrix if not row.precision)
    return (
        [Measure("matmuls and convolutions of unknown precision, not counted", ms(total))]
        if total
        else []
    )


def _finding(
    slow: list[OperationTime],
    operations: Operations,
    hardware: Hardware,
    narrowing: Narrowing,
    program: Program | None,
) -> Finding:
    total = sum(row.ms for row in slow)
    return Finding(
        summary=f"{milliseconds(total)} of each step are float32 matmuls and convolutions; "
        f"{hardware.matrix_unit} runs them faster in {narrowing.dtype}",
        evidence=(
            Measure("float32 matmuls and convolutions per step", ms(total)),
            Measure("share of the compute time", ratio(total / operations.total_ms)),
            *_ratios(slow, narrowing),
            _table(slow, operations),
        ),
        remedies=(_remedy(narrowing, _first_line(program)),),
        effects=tuple(
            Effect(
                Stage.DEVICE,
                _scales(row, hardware, narrowing),
                row.name,
                ms(row.ms),
                bound=narrowing.bound,
            )
            for row in slow
        ),
    )


def _ratios(slow: list[OperationTime], narrowing: Narrowing) -> list[Measure]:
    """Tell the ratios of the times that the saving is computed from, with the time that each is of."""
    scalar = [row for row in slow if _avoids_unit(row, narrowing)]
    found = []
    if len(scalar) < len(slow):
        label = f"their time in {narrowing.dtype} over that in float32 ({narrowing.source})"
        found.append(Measure(label, ratio(narrowing.scales)))
    if scalar:
        what = "in kernels that do not use the Tensor Cores, not even as TF32"
        total = sum(row.ms for row in scalar)
        found.append(Measure(f"of them {what}", ms(total)))
        label = f"time of these in {narrowing.dtype} over that now, by the units' peak rates"
        found.append(Measure(label, ratio(narrowing.scalar_scales or narrowing.scales)))
    return found


def _avoids_unit(row: OperationTime, narrowing: Narrowing) -> bool:
    """Say whether its kernels leave the unit unused though it multiplies float32 (as TF32)."""
    return narrowing.scalar_scales is not None and of_operation(row.ran) is False


def _scales(row: OperationTime, hardware: Hardware, narrowing: Narrowing) -> float:
    """Return the time in 16 bit over the time now: less where float32 avoids the unit that could run it."""
    if hardware.kind == DeviceKind.CPU:
        fixed, casts = _fixed_ms(row) / row.ms, CAST_MS * row.calls / row.ms
        return casts + fixed + narrowing.scales * (1.0 - fixed)
    avoids = _avoids_unit(row, narrowing)
    return (narrowing.scalar_scales if avoids else None) or narrowing.scales


def _weights(
    wide: list[OperationTime], slow: list[OperationTime], hardware: Hardware
) -> tuple[Effect, ...]:
    """Return what the casts of the weights cost on a CPU beside products that gain nothing."""
    if hardware.kind != DeviceKind.CPU:
        return ()
    return tuple(
        Effect(Stage.DEVICE, 1.0 + CAST_MS * row.calls / row.ms, row.name, ms(row.ms))
        for row in wide
        if row not in slow and row.ms
    )


def _others(beside: ReducedPrecision) -> list[Measure]:
    halved = sum(effect.of.value for effect in beside.gains if effect.of)
    lost = sum((effect.scales - 1.0) * effect.of.value for effect in beside.costs if effect.of)
    measures = {
        "other float32 operations, which move half the bytes in 16 bit": halved,
        "what other operations take longer in 16 bit on a CPU": lost,
    }
    return [Measure(label, ms(value)) for label, value in measures.items() if value]


def _table(slow: list[OperationTime], operations: Operations) -> Table:
    groups = sorted(operations.by_layer(slow).items(), key=lambda item: -sum(r.ms for r in item[1]))
    rows = tuple(
        (name, group[0].at or "unknown", ", ".join(sorted({r.type for r in group})),
         count(len(group)), ms(sum(row.ms for row in group)))
        for name, group in groups
    )  # fmt: skip
    return Table(("layer", "your line", "operations", "number", "per step"), rows)


def _first_line(program: Program | None) -> Location | None:
    """Return the line of the first layer: the policy has to be set above it."""
    places = [layer.at for layer in program.layers if layer.at] if program else []
    return places[0] if places else None


def _remedy(narrowing: Narrowing, at: Location | None) -> Remedy:
    policy = f"mixed_{narrowing.dtype}"
    code = (
        f'keras.mixed_precision.set_global_policy("{policy}")  # before the first layer is made\n'
        '...\noutputs = keras.layers.Dense(classes, dtype="float32")(x)  # the last layer stays float32'
    )
    return Remedy(f"Train in {policy}", code, at, "mixed-precision")


def sick() -> Verdict:
    """A convolution of 80 ms in float32 on a CPU with avx512_bf16."""
    return check(Operations((_conv("float32"),)), _hardware(), None, ReducedPrecision())


def healthy() -> Verdict:
    """The same convolution in bfloat16."""
    return check(Operations((_conv("bfloat16"),)), _hardware(), None, ReducedPrecision())


def _hardware() -> Hardware:
    narrowing = Narrowing("bfloat16", 0.6, Bound.EXPECTED, "an example")
    return Hardware(DeviceKind.CPU, "example", "AVX512-BF16", narrowing)


def _conv(dtype: str) -> OperationTime:
    tensors = ((dtype, (32, 64, 64, 48)), (dtype, (3, 3, 48, 48)))
    return OperationTime(
        name="model/conv2d/convolution",
        type="Conv2D",
        ms=80.0,
        ran=("model/conv2d/convolution:_MklNativeConv2D",),
        layer="conv2d",
        at=Location("train.py", 9),
        operation=Operation(name="model/conv2d/convolution", type="Conv2D", inputs=tensors),
    )
