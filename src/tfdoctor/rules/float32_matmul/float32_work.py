"""What 16-bit precision makes of the matmuls and convolutions that run in float32."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.operations.kernel_kinds import of_operation
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import BACKPROP, Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.matrix_units import AMX, SixteenBit
from tfdoctor.facts.run.program import Program
from tfdoctor.rules.float32_matmul.input_casts import BOTH_WAYS_MS, input_casts
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Effect

FIXED_MS = 0.1
"""Time of each call on a CPU that 16-bit precision does not change: starting threads, repacking operands
(benchmarks/precision.py, small matmuls: ``min(t, 0.1) + 0.6 (t - 0.1)`` is within a quarter of them)."""

CAST_MS = 0.003
"""Time of the casts of weights and of their gradients that a mixed policy adds to each matmul on a CPU
(benchmarks/precision.py: 5 to 11 us for a small layer of three matmuls)."""

WEIGHTS_MS = 0.33
"""Time per million weights that a mixed policy adds to each convolution on a CPU, for their casts and for arranging
them anew (benchmarks/precision.py, "layer conv": with 0.6 to 2.4 million weights the three convolutions of a layer
take 0.6 of their time in float32 and 0.7 to 1.5 ms per million, on an AMD EPYC with avx512_bf16, TensorFlow 2.21,
2026-11-23)."""

FIXED_OF_TYPE = {"Conv2D": 0.2, "Conv2DBackpropFilter": 0.35, "Einsum": 0.25}
"""Like FIXED_MS, where it is more. Of convolutions with 12 input channels or more the median of ``(bfloat16 - 0.6
float32) / 0.4`` was, in two runs, 0.18 and 0.39 ms in forward passes, 0.09 and 0.06 in gradients by the input, 0.36
and 0.53 in those by the weights; the lower ones count (benchmarks/precision.py, "part of conv", least of 20 to 30
turns, on an AMD EPYC with avx512_bf16 that others used, TensorFlow 2.21, 2026-11-24). An Einsum also transposes its
operands ("small attention": 64 matmuls of 64 x 24 x 64 take 0.39 ms in float32 and 0.36 in bfloat16; 256 of
128 x 64 x 128, 9.9 and 4.4)."""

ALONG_ONE_AXIS = 0.8
"""Time in bfloat16 relative to float32 on a CPU of a convolution along one axis, gradients included: 0.64 to 0.85
in four shapes (benchmarks/precision.py, on an Intel Xeon with AMX, TensorFlow 2.21, 2026-11-22)."""

FEW_CHANNELS, OF_FEW_CHANNELS = 16, 0.6
"""Like ALONG_ONE_AXIS, of a convolution of fewer input channels than the first, which a tile of the matrix unit
holds: 0.58 to 0.6 in three shapes of 1 and 8 channels; 0.26 and 0.31 with 16 and 32 channels."""

WITHOUT_AMX, OF_COLORS = 0.8, 1.0
"""Like OF_FEW_CHANNELS, on a CPU without AMX, and there of a first layer, whose input needs no gradient: 0.75 to
0.84 in four shapes of 8 channels, and 0.79 to 1.4 in eleven of 1 and 3, 1.1 in the median (benchmarks/precision.py,
"conv" and "first conv", on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24)."""

COLORS = 3
"""Channels of an image, which a first layer gets."""

MEMORY_BOUND = 0.6
"""Share of the memory bandwidth from which bytes, not the MXU, limit an operation on a TPU."""

LEAST_OF_PEAKS = 0.56
"""The least time in bfloat16 relative to TF32 that was measured, as a share of what the peak rates say:
gradients of filters took 0.28, of inputs 0.44, and convolutions 0.54 of their TF32 time, where the rates say
0.5 (NVIDIA H100, 128 channels, JAX 0.11.2, cuDNN of CUDA 13, 2026-11-22)."""

CONV2D = 4
"""Dimensions of the weights of a convolution of images: height, width, input and output channels."""


@dataclass(frozen=True, slots=True)
class Float32Work:
    """The matmuls and convolutions that run in float32, except those that the model keeps so."""

    slow: tuple[OperationTime, ...]  # that 16-bit precision makes faster
    others: tuple[OperationTime, ...]  # that gain nothing
    hardware: Hardware
    sixteen_bit: SixteenBit
    casts: Mapping[str, float] = field(default_factory=dict)  # ms, of the model's inputs

    @classmethod
    def of(
        cls, operations: Operations, hardware: Hardware, sixteen_bit: SixteenBit, program: Program | None
    ) -> Self:
        """Separate what is faster in 16-bit precision from what is not; a mixed policy keeps layers in float32."""
        kept = set[str]()
        if program and (program.settings.policy or "").startswith("mixed"):
            kept = {layer.name for layer in program.layers if layer.compute_dtype == "float32"}
        rows = [row for row in operations.matrix if row.precision == "float32" and row.layer not in kept]
        slow = tuple(row for row in rows if _is_faster(row, hardware))
        others = tuple(row for row in rows if row not in slow)
        return cls(slow, others, hardware, sixteen_bit, input_casts(rows, program))

    @property
    def gains(self) -> Iterator[Effect]:
        """What 16-bit precision makes of the slow ones."""
        on_cpu = self.hardware.kind == DeviceKind.CPU
        for row in self.slow:
            scales = self._scales_on_cpu(row) if on_cpu else self._scales(row)
            bound = self.sixteen_bit.bound
            yield row.scaled(scales, bound)

    @property
    def costs(self) -> Iterator[Effect]:
        """What casts cost on a CPU for matmuls that gain nothing."""
        rows = self.others if self.hardware.kind == DeviceKind.CPU else ()
        for row in rows:
            if row.ms:
                scales = 1.0 + (CAST_MS * row.calls + self.casts.get(row.name, 0.0)) / row.ms
                yield row.scaled(scales)

    def _scales_on_cpu(self, row: OperationTime) -> float:
        fixed = _fixed_ms(row) / row.ms
        added = (_added_ms(row) + self.casts.get(row.name, 0.0)) / row.ms
        scales = self.sixteen_bit.scales
        if row.type == "MatMul" and self.sixteen_bit.matmul_scales is not None:
            scales = self.sixteen_bit.matmul_scales
        scales = max(scales, _least_on_cpu(row, self.hardware.matrix_unit))
        return added + fixed + scales * (1.0 - fixed)

    def _scales(self, row: OperationTime) -> float:
        scales, scalar = self.sixteen_bit.scales, self.sixteen_bit.scalar_scales
        if scalar is None:
            return scales
        if self.avoids_unit(row):
            return scalar
        # The ratio of the peaks holds only where both types reach the same share of theirs.
        peak = self.hardware.peak_flop_s
        if not peak or not row.flops:
            return min(scales, LEAST_OF_PEAKS * scales)
        return min(scales, row.flops * row.calls / (peak * self.hardware.reached) / (row.ms * 1e-3))

    def avoids_unit(self, row: OperationTime) -> bool:
        """Say whether its kernels leave the unit unused although it multiplies float32 (as TF32)."""
        return self.sixteen_bit.scalar_scales is not None and of_operation(row.ran) is False


def _is_faster(row: OperationTime, hardware: Hardware) -> bool:
    """Say whether 16-bit precision shortens an operation on this kind of hardware."""
    if hardware.kind == DeviceKind.CPU:
        in_onednn = any(name.rpartition(":")[2].startswith("_Mkl") for name in row.ran)
        least = _least_on_cpu(row, hardware.matrix_unit)
        return in_onednn and row.ms > _fixed_ms(row) and least < 1.0
    if hardware.kind == DeviceKind.TPU:
        peak = hardware.bandwidth_bytes_s
        if not peak or not row.nbytes:
            return False
        return row.nbytes * row.calls / (row.ms * 1e-3) > MEMORY_BOUND * peak
    return True


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


def _added_ms(row: OperationTime) -> float:
    """Return the time of what is done with the weights in both types."""
    weights = math.prod(row.kernel or (0,)) / 1e6
    of_weights = 0.0
    if row.type.startswith("Conv"):
        of_weights = WEIGHTS_MS * weights
    elif row.type == "MatMul" and not BACKPROP.search(row.name):
        of_weights = BOTH_WAYS_MS * weights
    return (CAST_MS + of_weights) * row.calls


def _fixed_ms(row: OperationTime) -> float:
    return FIXED_OF_TYPE.get(row.type, FIXED_MS) * row.calls
