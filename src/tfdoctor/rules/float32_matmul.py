"""Matmuls run in float32 where 16-bit precision is faster.

## What it checks

The time of matmuls and convolutions with float32 operands on a device whose matrix unit runs them faster in
bfloat16 or float16. The saving is computed for each operation from the ratio of the two rates.

On a CPU five costs are deducted: 0.1 ms of each matmul, which does not depend on the type; the casts of the
weights; the casts around unfused batch normalization; activations that are computed value by value (sigmoid,
tanh, gelu); and the gradients of strided depthwise convolutions, which TensorFlow computes many times slower in
bfloat16 on a CPU. The rest of the step is assumed to stay as it is, so a small gain (below 15 % of the compute
time) is not reported.

On a GPU the saving is an upper bound: 16-bit kernels may reach a larger share of their peak than those of TF32,
so where the FLOPs are known the least time is that at the highest rate measured, else 0.56 times the ratio of
the peaks. On an NVIDIA H100 a step of six convolutions took 8.8 ms in float32 (TF32) and 3.9 ms in bfloat16
(JAX 0.11.2, 2026-11-22).

On a GPU or TPU all other float32 operations except the optimizer's are assumed to need at least half their
time, because their tensors have half the bytes. Layers that a mixed policy keeps in float32 on purpose, such as
the last one, are not reported.

## Why it matters

The matrix unit of Volta and later GPUs, and of CPUs with `avx512_bf16` or `amx_bf16`, multiplies 16-bit numbers
several times as fast as float32, and every tensor needs half the memory traffic.

## How to fix

Set Keras' policy before building the model and keep the last layer in float32: `mixed_bfloat16` on CPUs, TPUs
and GPUs from Ampere on, `mixed_float16` on Volta and Turing (`fit` then scales the loss; a custom loop needs
`keras.optimizers.LossScaleOptimizer`). In JAX cast parameters and inputs to bfloat16 inside the loss function.
A layer of your own that makes
float32 tensors (`tf.random.normal`) fails under the policy until it makes them of its inputs' type, or has
`dtype="float32"`. Compare the accuracy: weights stay float32, the arithmetic does not.

## Holds for

NVIDIA GPUs of compute capability 7.0 and later (from 8.0 on most float32 matmuls already run as TF32, so the
gain is smaller), AMD Instinct from MI100 on, x86 CPUs with avx512_bf16 or amx_bf16 and oneDNN (TensorFlow 2.9
and later on Linux), and operations on TPUs that memory bandwidth limits. Older GPUs and CPUs have no such unit.

## Sources

- [Mixed precision, TensorFlow guide](https://www.tensorflow.org/guide/mixed_precision)
- [Keras mixed precision API](https://keras.io/api/mixed_precision/)
- [Train with mixed precision, NVIDIA](https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html)
- CPU rates: benchmarks/precision.py of this project, measured on the date given for each entry
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.matmuls.unrecorded_matmuls import UnrecordedMatmuls
from tfdoctor.facts.operations.kernel_kinds import of_operation
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.reduced_precision import ReducedPrecision
from tfdoctor.facts.run.framework import JAX, Framework
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.matrix_units import AMX, SixteenBit
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
    """What 16-bit precision must save to be reported."""

    on_cpu: float = limit(
        0.2,
        "Smallest share of the compute time that 16-bit precision must save on a CPU, after known costs: of ten "
        "scripts with a predicted gain of 4 to 18 % of the step, two became clearly faster, and a transformer, a "
        "network of 1-D convolutions and a graph network became slower; two networks of 2-D convolutions with 19 "
        "and 27 % became 19 and 35 % faster (benchmarks/accuracy/judge.py, 2026-11-22)",
        most=1.0,
    )
    on_amx: float = limit(
        0.25,
        "Smallest share of the compute time that 16-bit precision must save on a CPU with AMX, after known costs: "
        "of six scripts with a predicted gain of 7 to 23 % of the step, five became slower and one 4 % faster; all "
        "three with more than 35 % became faster (benchmarks/accuracy/judge.py, 2026-11-22)",
        most=1.0,
    )


LIMITS = Limits()

FIXED_MS = 0.1
"""Time of each call on a CPU that 16-bit precision does not change: starting threads, repacking operands
(benchmarks/precision.py, small matmuls: ``min(t, 0.1) + 0.6 (t - 0.1)`` is within a quarter of them)."""

CAST_MS = 0.003
"""Time of the casts of weights and of their gradients that a mixed policy adds to each matmul on a CPU
(benchmarks/precision.py: 5 to 11 us for a layer of three matmuls, whatever its size)."""

EINSUM_MS = 0.25
"""Like FIXED_MS, for an Einsum, which also transposes its operands (benchmarks/precision.py: 64 matmuls
of 64 x 24 x 64 take 0.39 ms in float32 and 0.36 in bfloat16; 256 of 128 x 64 x 128, 9.9 and 4.4)."""

ALONG_ONE_AXIS = 0.8
"""Time in bfloat16 relative to float32 on a CPU of a convolution along one axis, gradients included: 0.64 to 0.85
in four shapes (benchmarks/precision.py, on an Intel Xeon with AMX, TensorFlow 2.21, 2026-11-22)."""

FEW_CHANNELS, OF_FEW_CHANNELS = 16, 0.6
"""Like ALONG_ONE_AXIS, of a convolution of fewer input channels than the first, which a tile of the matrix unit
holds: 0.58 to 0.6 in three shapes of 1 and 8 channels; 0.26 and 0.31 with 16 and 32 channels."""

MEMORY_BOUND = 0.6
"""Share of the memory bandwidth from which bytes, not the MXU, limit an operation on a TPU."""

LEAST_OF_PEAKS = 0.56
"""The least time in bfloat16 relative to TF32 that was measured, as a share of what the peak rates say:
gradients of filters took 0.28, of inputs 0.44, and convolutions 0.54 of their TF32 time, where the rates say
0.5 (NVIDIA H100, 128 channels, JAX 0.11.2, cuDNN of CUDA 13, 2026-11-22)."""

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
    limits: Limits = LIMITS,
) -> Verdict:
    """Price every float32 matmul and convolution at the 16-bit rate."""
    sixteen_bit = hardware.sixteen_bit
    if sixteen_bit is None:
        why = hardware.missing or f"{hardware.name} has no 16-bit matrix unit"
        return NotApplicable(reason=why)
    if not any(row.precision for row in operations.matrix):
        return _without_precision(operations)
    matmuls = Float32.of(operations, hardware, sixteen_bit, _kept_layers(program))
    if not matmuls.slow:
        return _without_gain(operations, matmuls)
    remedy = _remedy(sixteen_bit, framework, _first_line(program))
    finding = _finding(matmuls, operations, reduced, remedy)
    on_cpu = hardware.kind == DeviceKind.CPU
    if not on_cpu:
        return finding
    least = limits.on_amx if hardware.matrix_unit == AMX else limits.on_cpu
    return _if_large_enough(finding, operations, least)


def _without_precision(operations: Operations) -> Verdict:
    """Say why no matmul of a known precision runs."""
    if operations.matrix:
        return NotApplicable(reason=UNKNOWN_PRECISION)
    if operations.why_unlisted:
        return NotApplicable(reason=operations.why_unlisted)
    return Healthy(summary="The step runs no matmul or convolution")


def _kept_layers(program: Program | None) -> set[str]:
    """Return the layers that a mixed policy keeps in float32, such as the last one."""
    if program is None or not (program.settings.policy or "").startswith("mixed"):
        return set()
    return {layer.name for layer in program.layers if layer.compute_dtype == "float32"}


@dataclass(frozen=True, slots=True)
class Float32:
    """The matmuls and convolutions that run in float32, except those that the model keeps so."""

    slow: tuple[OperationTime, ...]  # that 16-bit precision makes faster
    others: tuple[OperationTime, ...]  # that gain nothing
    hardware: Hardware
    sixteen_bit: SixteenBit

    @classmethod
    def of(
        cls, operations: Operations, hardware: Hardware, sixteen_bit: SixteenBit, kept: set[str]
    ) -> Self:
        """Separate what is faster in 16-bit precision from what is not."""
        rows = [
            row for row in operations.matrix if row.precision == "float32" and row.layer not in kept
        ]
        slow = tuple(row for row in rows if _is_faster(row, hardware))
        return cls(slow, tuple(row for row in rows if row not in slow), hardware, sixteen_bit)

    @property
    def gains(self) -> Iterator[Effect]:
        """What 16-bit precision makes of the slow ones."""
        on_cpu = self.hardware.kind == DeviceKind.CPU
        for row in self.slow:
            scales = self._scales_on_cpu(row) if on_cpu else self._scales(row)
            bound = self.sixteen_bit.bound
            yield Effect(Stage.DEVICE, scales, row.name, ms(row.ms), bound=bound)

    @property
    def costs(self) -> Iterator[Effect]:
        """What the casts of weights cost on a CPU for matmuls that gain nothing."""
        rows = self.others if self.hardware.kind == DeviceKind.CPU else ()
        for row in rows:
            if row.ms:
                scales = 1.0 + CAST_MS * row.calls / row.ms
                yield Effect(Stage.DEVICE, scales, row.name, ms(row.ms))

    def _scales_on_cpu(self, row: OperationTime) -> float:
        fixed, casts = _fixed_ms(row) / row.ms, CAST_MS * row.calls / row.ms
        return casts + fixed + max(self.sixteen_bit.scales, _least_on_cpu(row)) * (1.0 - fixed)

    def _scales(self, row: OperationTime) -> float:
        scales, scalar = self.sixteen_bit.scales, self.sixteen_bit.scalar_scales
        if scalar is None:
            return scales
        return scalar if self.avoids_unit(row) else min(scales, self._least(row))

    def _least(self, row: OperationTime) -> float:
        """Return the least time in 16-bit precision relative to that as TF32.

        The ratio of the peaks holds only where both types reach the same share of theirs.
        """
        peak = self.hardware.peak_flop_s
        if not peak or not row.flops:
            return LEAST_OF_PEAKS * self.sixteen_bit.scales
        return row.flops * row.calls / (peak * self.hardware.reached) / (row.ms * 1e-3)

    def avoids_unit(self, row: OperationTime) -> bool:
        """Say whether its kernels leave the unit unused although it multiplies float32 (as TF32)."""
        return self.sixteen_bit.scalar_scales is not None and of_operation(row.ran) is False


def _is_faster(row: OperationTime, hardware: Hardware) -> bool:
    """Say whether 16-bit precision shortens an operation on this kind of hardware."""
    if hardware.kind == DeviceKind.CPU:
        in_onednn = any(name.rpartition(":")[2].startswith("_Mkl") for name in row.ran)
        return in_onednn and row.ms > _fixed_ms(row)
    if hardware.kind == DeviceKind.TPU:
        peak = hardware.bandwidth_bytes_s
        if not peak or not row.nbytes:
            return False
        return row.nbytes * row.calls / (row.ms * 1e-3) > MEMORY_BOUND * peak
    return True


def _least_on_cpu(row: OperationTime) -> float:
    """Return the least time in 16-bit precision relative to float32 that a CPU's kernels reach for a shape."""
    kernel = row.kernel
    if not row.type.startswith("Conv") or not kernel or len(kernel) != CONV2D:
        return 0.0
    height, width, channels, _ = kernel
    if min(height, width) == 1 < max(height, width):
        return ALONG_ONE_AXIS
    return OF_FEW_CHANNELS if channels < FEW_CHANNELS else 0.0


CONV2D = 4
"""Dimensions of the weights of a convolution of images: height, width, input and output channels."""


def _fixed_ms(row: OperationTime) -> float:
    return (EINSUM_MS if row.type == "Einsum" else FIXED_MS) * row.calls


def _without_gain(operations: Operations, matmuls: Float32) -> Verdict:
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


def _finding(
    matmuls: Float32, operations: Operations, reduced: ReducedPrecision, remedy: Remedy
) -> Finding:
    sixteen_bit = matmuls.sixteen_bit
    total_ms = sum(row.ms for row in matmuls.slow)
    share = ratio(total_ms / operations.total_ms)
    return Finding(
        summary=f"Float32 matmuls and convolutions take {milliseconds(total_ms)} per step; they run faster in "
        f"{sixteen_bit.dtype} ({matmuls.hardware.matrix_unit})",
        evidence=(
            Measure("time in float32 matmuls and convolutions per step", ms(total_ms)),
            Measure("share of the compute time in float32 matmuls and convolutions", share),
            *_ratios(matmuls),
            _table(matmuls, operations),
            *_elsewhere(reduced),
            *_not_counted(operations),
        ),
        remedies=(remedy,),
        effects=(*matmuls.gains, *reduced.gains, *reduced.costs, *matmuls.costs),
    )


def _if_large_enough(finding: Finding, operations: Operations, least: float) -> Verdict:
    """Report no gain on a CPU that is no larger than what is not counted, such as casts of activations."""
    gained_ms = sum(
        (1.0 - effect.scales) * effect.of.value for effect in finding.effects if effect.of
    )
    share = gained_ms / operations.total_ms
    if share >= least:
        return finding
    label = "share of the compute time that 16-bit precision saves, after costs"
    return Healthy(
        summary=f"{finding.summary}, but casts around them cost about as much as 16-bit precision gains",
        evidence=(*finding.evidence, Measure(label, ratio(share), ratio(least))),
    )


def _ratios(matmuls: Float32) -> Iterator[Measure]:
    """Yield the ratios that the saving is computed from, with the time that each applies to."""
    sixteen_bit = matmuls.sixteen_bit
    if matmuls.hardware.kind == DeviceKind.GPU:
        now_ms = sum(row.ms for row in matmuls.slow)
        least_ms = sum(effect.scales * effect.of.value for effect in matmuls.gains if effect.of)
        label = f"least {sixteen_bit.dtype} time relative to float32, at the highest rate measured"
        yield Measure(label, ratio(least_ms / now_ms))
    scalar = [row for row in matmuls.slow if matmuls.avoids_unit(row)]
    if len(scalar) < len(matmuls.slow):
        label = f"{sixteen_bit.dtype} time relative to float32 ({sixteen_bit.source})"
        yield Measure(label, ratio(sixteen_bit.scales))
    if scalar:
        label = "time in kernels that do not use the Tensor Cores, not even as TF32"
        yield Measure(label, ms(sum(row.ms for row in scalar)))
        label = f"{sixteen_bit.dtype} time relative to kernels without Tensor Cores, by peak rates"
        yield Measure(label, ratio(sixteen_bit.scalar_scales or sixteen_bit.scales))


def _elsewhere(reduced: ReducedPrecision) -> list[Measure]:
    halved = sum(effect.of.value for effect in reduced.gains if effect.of)
    lost = sum((effect.scales - 1.0) * effect.of.value for effect in reduced.costs if effect.of)
    measures = {
        "time in other float32 operations, which move half the bytes in 16-bit precision": halved,
        "time lost in operations that are slower in 16-bit precision on a CPU": lost,
    }
    return [Measure(label, ms(value)) for label, value in measures.items() if value]


def _not_counted(operations: Operations) -> list[Measure]:
    total_ms = sum(row.ms for row in operations.matrix if not row.precision)
    label = "time in matmuls and convolutions of unknown precision, not counted"
    return [Measure(label, ms(total_ms))] if total_ms else []


def _table(matmuls: Float32, operations: Operations) -> Table:
    layers = operations.by_layer(matmuls.slow).items()
    rows = tuple(
        (name, group[0].at or "unknown", ", ".join(sorted({row.type for row in group})),
         count(len(group)), ms(sum(row.ms for row in group)))
        for name, group in sorted(layers, key=lambda item: -sum(row.ms for row in item[1]))
    )  # fmt: skip
    return Table(
        ("layer", "your line", "operation types", "number of operations", "time per step"), rows
    )


def _first_line(program: Program | None) -> Location | None:
    """Return the line of the first layer: the policy has to be set before it."""
    layers = program.layers if program else ()
    return next((layer.at for layer in layers if layer.at), None)


def _remedy(sixteen_bit: SixteenBit, framework: Framework, at: Location | None) -> Remedy:
    if framework.foreign and not framework.keras:
        cast = JAX_CAST if framework.name == JAX else TORCH_AUTOCAST
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

TORCH_AUTOCAST = """\
with torch.autocast("xla", dtype=torch.{0}):
    loss = loss_fn(model(inputs), labels)"""


def sick() -> Verdict:
    """A float32 convolution takes 80 ms on a CPU with avx512_bf16."""
    return check(
        Operations((_conv("float32"),)), _hardware(), None, ReducedPrecision(), Framework()
    )


def healthy() -> Verdict:
    """The convolution runs in bfloat16."""
    return check(
        Operations((_conv("bfloat16"),)), _hardware(), None, ReducedPrecision(), Framework()
    )


def _hardware() -> Hardware:
    sixteen_bit = SixteenBit("bfloat16", 0.6, Bound.EXPECTED, "an example")
    return Hardware(DeviceKind.CPU, "example", "AVX512-BF16", sixteen_bit)


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
