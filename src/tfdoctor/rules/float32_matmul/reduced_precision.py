"""How 16-bit changes operations other than matmuls: it speeds up an accelerator, and may slow down a CPU."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import HALVES, Operations
from tfdoctor.facts.operations.step_parts import CAST_PASSES, BatchNorms, OptimizerWork
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.rules.float32_matmul.float32_work import BOTH_WAYS_MS, millions
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Effect, Stage

# Time of an accelerator's memory-bound operation in 16-bit relative to float32. Variables, which the optimizer
# updates, stay float32; operations that a layer casts back to float32 gain less.
HALF_THE_BYTES = 0.5

STRIDED_GRADIENT = "DepthwiseConv2dNativeBackpropInput"

# Time in bfloat16 relative to float32 on a CPU, with stride 2: the median of seven shapes, which took 9 to 27 times
# as long (benchmarks/precision.py, without 0.25 ms for the call itself, on an AMD EPYC with avx512_bf16, TensorFlow
# 2.21, 2026-11-21; with stride 1 bfloat16 is faster).
STRIDED_SCALES = 12.0

# Time in bfloat16 relative to float32 on a CPU: each value is widened, computed and rounded again
# (benchmarks/precision.py, on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-21; BiasAddGrad took 1.6 to
# 2.6 times as long with 0.5 to 8 million values, 2026-11-24). Operations that only move bytes get faster there,
# which is not counted.
SLOWER = {
    "BiasAddGrad": 2.0, "Elu": 2.3, "Erf": 2.0, "Erfc": 3.6, "Exp": 1.7, "Log": 1.6, "Relu6": 1.9, "Sigmoid": 3.2,
    "SigmoidGrad": 1.8, "Softplus": 1.6, "Tanh": 2.0, "TanhGrad": 1.8,
}  # fmt: skip

# Like SLOWER, while the values fit into the processor's caches: with 0.5 and 2 million values these took 1.4 to
# 1.8, 1.3 to 1.6, and 1.5 to 1.9 times as long, with 8 million values 0.8 to 1.2 times (benchmarks/precision.py, on
# an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24).
SLOWER_IN_CACHES = {"RealDiv": 1.5, "Relu": 1.4, "ReluGrad": 1.5}
# Time of a call of these in float32 up to which its values fit: 0.4 to 0.7 ms with 2 million values, and 1.7 to 3.2
# with 8 million (as above). The graph of a Keras step has no batch size, so the number of values is unknown.
IN_CACHES_MS = 1.0
# The start of the names of layers whose mean Keras computes in float32 (``keras.ops.mean``): their input is cast,
# and so is the gradient by it.
POOLED = "GlobalAveragePooling"


@dataclass(frozen=True, slots=True)
class ReducedPrecision:
    """The effects of 16-bit on other operations than matmuls: ``gains`` on accelerators, ``costs`` on CPUs."""

    gains: tuple[Effect, ...] = ()
    costs: tuple[Effect, ...] = ()

    @classmethod
    def measure(
        cls, operations: Operations, hardware: Hardware, norms: BatchNorms | None, program: Program | None
    ) -> Self:
        """Collect the effects on the operations of the step.

        Where matmuls already run in 16-bit, the others are in float32 on purpose, as Keras' normalization is.
        """
        rest = OptimizerWork.measure(operations).others(operations)
        if hardware.kind == DeviceKind.CPU:
            return cls(costs=tuple(_costs(rest, norms, program)))
        if any(row.precision in HALVES for row in operations.matrix):
            return cls()
        wide = (row for row in rest if row.precision == "float32" and not row.is_matrix)
        return cls(gains=tuple(row.scaled(HALF_THE_BYTES, Bound.AT_MOST) for row in wide))


def _costs(rows: Sequence[OperationTime], norms: BatchNorms | None, program: Program | None) -> Iterator[Effect]:
    """Yield what a CPU takes longer for: casts, strided gradients, and what is computed value by value.

    Operations of an unknown type count as float32, and depthwise convolutions of unknown strides as strided.
    """
    for norm in norms.unfused if norms else ():
        cost = norms.passes_ms(norm, CAST_PASSES) if norms else None
        if cost and norm.ms:
            yield Effect(Stage.DEVICE, 1.0 + cost / norm.ms, norm.subject, ms(norm.ms))
    wide = [row for row in rows if row.precision in ("float32", "")]
    for row in wide:
        strides = row.operation.attrs.strides if row.operation else ()
        if row.type == STRIDED_GRADIENT and (not strides or max(strides) > 1):
            yield row.scaled(STRIDED_SCALES)
    for row in wide:
        in_caches = row.ms <= IN_CACHES_MS * row.calls
        scales = SLOWER.get(row.type) or (SLOWER_IN_CACHES.get(row.type) if in_caches else None)
        if scales:
            yield row.scaled(scales)
    pooled = {layer.name for layer in (program.layers if program else ()) if layer.kind.startswith(POOLED)}
    for row in rows:  # the mean of global pooling, forward and backward
        if row.type == "Mean" and row.layer in pooled and row.ms:
            yield row.scaled(1.0 + BOTH_WAYS_MS * millions(row, program) / row.ms)
