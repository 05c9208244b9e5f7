"""What 16-bit precision makes of the matmuls and convolutions that run in float32."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.operations.kernel_kinds import of_operation
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import BACKPROP, Operations
from tfdoctor.facts.run.hardware import AMX, Hardware, SixteenBit
from tfdoctor.facts.run.program import Program
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Effect

# Time of each call on a CPU that 16-bit precision does not change: starting threads, repacking operands
# (benchmarks/precision.py, small matmuls: ``min(t, 0.1) + 0.6 (t - 0.1)`` is within a quarter of them).
FIXED_MS = 0.1
# Time of the casts of weights and of their gradients that a mixed policy adds to each matmul on a CPU
# (benchmarks/precision.py: 5 to 11 us for a small layer of three matmuls).
CAST_MS = 0.003

# Time per million weights that a mixed policy adds to each convolution on a CPU, for their casts and for arranging
# them anew (benchmarks/precision.py, "layer conv": with 0.6 to 2.4 million weights the three convolutions of a
# layer take 0.6 of their time in float32 and 0.7 to 1.5 ms per million, on an AMD EPYC with avx512_bf16, TensorFlow
# 2.21, 2026-11-23).
WEIGHTS_MS = 0.33

# Like FIXED_MS, where it is more. Of convolutions with 12 input channels or more the median of ``(bfloat16 - 0.6
# float32) / 0.4`` was, in two runs, 0.18 and 0.39 ms in forward passes, 0.09 and 0.06 in gradients by the input,
# 0.36 and 0.53 in those by the weights; the lower ones count (benchmarks/precision.py, "part of conv", least of 20
# to 30 turns, on an AMD EPYC with avx512_bf16 that others used, TensorFlow 2.21, 2026-11-24). An Einsum also
# transposes its operands ("small attention": 64 matmuls of 64 x 24 x 64 take 0.39 ms in float32 and 0.36 in
# bfloat16; 256 of 128 x 64 x 128, 9.9 and 4.4).
FIXED_OF_TYPE = {"Conv2D": 0.2, "Conv2DBackpropFilter": 0.35, "Einsum": 0.25}

# Time in bfloat16 relative to float32 on a CPU of a convolution along one axis, gradients included: 0.64 to 0.85 in
# four shapes (benchmarks/precision.py, on an Intel Xeon with AMX, TensorFlow 2.21, 2026-11-22).
ALONG_ONE_AXIS = 0.8
# Like ALONG_ONE_AXIS, of a convolution of fewer input channels than the first, which a tile of the matrix unit
# holds: 0.58 to 0.6 in three shapes of 1 and 8 channels; 0.26 and 0.31 with 16 and 32 channels.
FEW_CHANNELS, OF_FEW_CHANNELS = 16, 0.6
# Like OF_FEW_CHANNELS, on a CPU without AMX, and there of a first layer, whose input needs no gradient: 0.75 to
# 0.84 in four shapes of 8 channels, and 0.79 to 1.4 in eleven of 1 and 3, 1.1 in the median
# (benchmarks/precision.py, "conv" and "first conv", on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24).
WITHOUT_AMX, OF_COLORS = 0.8, 1.0
COLORS = 3  # Channels of an image, which a first layer gets
MEMORY_BOUND = 0.6  # Share of the memory bandwidth from which bytes, not the MXU, limit an operation on a TPU
# The least time in bfloat16 relative to TF32 that was measured, as a share of what the peak rates say: gradients of
# filters took 0.28, of inputs 0.44, and convolutions 0.54 of their TF32 time, where the rates say 0.5 (NVIDIA H100,
# 128 channels, JAX 0.11.2, cuDNN of CUDA 13, 2026-11-22).
LEAST_OF_PEAKS = 0.56
CONV2D = 4  # Dimensions of the weights of a convolution of images: height, width, input and output channels
# Time per million values of a cast from float32 to bfloat16 on a CPU (benchmarks/precision.py, "Cast": 0.22, 0.16
# and 0.17 with 0.5, 2 and 8 million values, on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24). In
# traced training steps inputs of 0.24 and 0.39 million values took 0.13 and 0.27.
TO_BFLOAT16_MS = 0.17
# Like TO_BFLOAT16_MS, with a cast back, as of weights and their gradient: 0.27, 0.19 and 0.2, and in a second run
# 0.22 and 0.31 with 2 and 8 million values. With it two training steps of dense layers with 2.7 and 7.1 million
# weights, which became 19 and 14 to 20 % shorter, are promised 14 to 17 and 13 %; without it 20 and 30 %.
BOTH_WAYS_MS = 0.22
WITH_BOTH_GRADIENTS = 3  # Matmuls of a dense layer in a training step: forward, by its weights and by its input


@dataclass(frozen=True, slots=True)
class Float32Work:
    """The matmuls and convolutions that run in float32, except those that the model keeps so."""

    slow: tuple[OperationTime, ...]  # that 16-bit precision makes faster
    others: tuple[OperationTime, ...]  # that gain nothing
    gains: tuple[Effect, ...]  # of the slow ones
    costs: tuple[Effect, ...]  # on a CPU: casts for matmuls that gain nothing

    @classmethod
    def of(cls, operations: Operations, hardware: Hardware, unit: SixteenBit, program: Program | None) -> Self:
        """Separate what is faster in 16-bit precision from what is not; a mixed policy keeps layers in float32."""
        kept = set[str]()
        if program and (program.settings.policy or "").startswith("mixed"):
            kept = {layer.name for layer in program.layers if layer.compute_dtype == "float32"}
        rows = [row for row in operations.matrix if row.precision == "float32" and row.layer not in kept]
        slow = tuple(row for row in rows if _is_faster(row, hardware))
        others = tuple(row for row in rows if row not in slow)
        if hardware.kind != DeviceKind.CPU:
            return cls(
                slow, others, tuple(row.scaled(_scales(row, hardware, unit), unit.bound) for row in slow), ()
            )
        casts = _input_casts(rows, program)
        gains = (
            row.scaled(_scales_on_cpu(row, hardware, unit, casts.get(row.name, 0.0)), unit.bound) for row in slow
        )
        costs = (
            row.scaled(1.0 + (CAST_MS * row.calls + casts.get(row.name, 0.0)) / row.ms) for row in others if row.ms
        )
        return cls(slow, others, tuple(gains), tuple(costs))


def _is_faster(row: OperationTime, hardware: Hardware) -> bool:
    """Say whether 16-bit precision shortens an operation on this kind of hardware."""
    if hardware.kind == DeviceKind.CPU:
        in_onednn = any(name.rpartition(":")[2].startswith("_Mkl") for name in row.ran)
        return in_onednn and row.ms > _fixed_ms(row) and _least_on_cpu(row, hardware.matrix_unit) < 1.0
    if hardware.kind == DeviceKind.TPU:
        peak = hardware.bandwidth_bytes_s
        if not peak or not row.nbytes:
            return False
        return row.nbytes * row.calls / (row.ms * 1e-3) > MEMORY_BOUND * peak
    return True


def _scales_on_cpu(row: OperationTime, hardware: Hardware, unit: SixteenBit, cast_ms: float) -> float:
    weights, of_weights = prod(row.kernel or (0,)) / 1e6, 0.0  # what is done with the weights in both types
    if row.type.startswith("Conv"):
        of_weights = WEIGHTS_MS * weights
    elif row.type == "MatMul" and not BACKPROP.search(row.name):
        of_weights = BOTH_WAYS_MS * weights
    added = ((CAST_MS + of_weights) * row.calls + cast_ms) / row.ms
    of_matmul = unit.matmul_scales if row.type == "MatMul" else None
    scales = max(unit.scales if of_matmul is None else of_matmul, _least_on_cpu(row, hardware.matrix_unit))
    fixed = _fixed_ms(row) / row.ms
    return added + fixed + scales * (1.0 - fixed)


def _fixed_ms(row: OperationTime) -> float:
    return FIXED_OF_TYPE.get(row.type, FIXED_MS) * row.calls


def _least_on_cpu(row: OperationTime, unit: str) -> float:
    """Return the least time in 16-bit precision relative to float32 that a CPU's kernels reach for a shape."""
    kernel = row.kernel
    if not row.type.startswith("Conv") or not kernel or len(kernel) != CONV2D:
        return 0.0
    height, width, channels, _ = kernel
    if min(height, width) == 1 < max(height, width):
        return ALONG_ONE_AXIS
    if channels >= FEW_CHANNELS:
        return 0.0
    if unit == AMX:
        return OF_FEW_CHANNELS
    return OF_COLORS if channels <= COLORS else WITHOUT_AMX


def _scales(row: OperationTime, hardware: Hardware, unit: SixteenBit) -> float:
    if unit.scalar_scales is None or avoids_unit(row, unit):
        return unit.scales if unit.scalar_scales is None else unit.scalar_scales
    # The ratio of the peaks holds only where both types reach the same share of theirs.
    peak = hardware.peak_flop_s
    if not peak or not row.flops:
        return min(unit.scales, LEAST_OF_PEAKS * unit.scales)
    return min(unit.scales, row.flops * row.calls / (peak * hardware.reached) / (row.ms * 1e-3))


def avoids_unit(row: OperationTime, unit: SixteenBit) -> bool:
    """Say whether its kernels leave the unit unused although it multiplies float32 (as TF32)."""
    return unit.scalar_scales is not None and of_operation(row.ran) is False


def millions(row: OperationTime, program: Program | None) -> float:
    """Return the millions of values of an operation's first operand per step, 0 where its shape is unknown."""
    tensors = row.operation.inputs if row.operation else ()
    shapes = [shape for dtype, shape in tensors if dtype == "float32"]
    known = program.shape(shapes[0]) if program and shapes else None
    return prod(known) / 1e6 * row.calls if known else 0.0


def _input_casts(rows: Iterable[OperationTime], program: Program | None) -> dict[str, float]:
    """Return the ms per step of the casts of the model's inputs, which a mixed policy adds before the first layer.

    By the name of the forward operations that read them: those of trained layers without a gradient by their input.
    """
    layers = defaultdict(list)
    for row in rows:
        layers[row.layer].append(row)
    layers.pop("", None)
    casts: dict[str, float] = {}
    for group in layers.values():
        forward = [row for row in group if not BACKPROP.search(f"{row.name} {row.type}")]
        by_input = any("BackpropInput" in row.type for row in group)
        if len(forward) < len(group) < WITH_BOTH_GRADIENTS and not by_input:
            casts |= {row.name: TO_BFLOAT16_MS * millions(row, program) for row in forward}
    return casts
