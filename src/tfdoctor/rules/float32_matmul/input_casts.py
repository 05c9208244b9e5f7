"""The casts of the model's inputs, which a mixed policy adds before the first layer."""

import math
from collections import defaultdict
from collections.abc import Iterable

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import BACKPROP
from tfdoctor.facts.run.program import Program

TO_BFLOAT16_MS = 0.17
"""Time per million values of a cast from float32 to bfloat16 on a CPU (benchmarks/precision.py, "Cast": 0.22, 0.16
and 0.17 with 0.5, 2 and 8 million values, on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-24). In traced
training steps inputs of 0.24 and 0.39 million values took 0.13 and 0.27."""

BOTH_WAYS_MS = 0.22
"""Like TO_BFLOAT16_MS, with a cast back, as of weights and their gradient: 0.27, 0.19 and 0.2, and in a second run
0.22 and 0.31 with 2 and 8 million values. With it two training steps of dense layers with 2.7 and 7.1 million
weights, which became 19 and 14 to 20 % shorter, are promised 14 to 17 and 13 %; without it 20 and 30 %."""

WITH_BOTH_GRADIENTS = 3
"""Matmuls of a dense layer in a training step: forward, by its weights and by its input."""


def values(row: OperationTime, program: Program | None) -> float:
    """Return the millions of values of an operation's first operand per step, 0 where its shape is unknown."""
    tensors = row.operation.inputs if row.operation else ()
    shapes = [shape for dtype, shape in tensors if dtype == "float32"]
    known = program.shape(shapes[0]) if program and shapes else None
    return math.prod(known) / 1e6 * row.calls if known else 0.0


def input_casts(rows: Iterable[OperationTime], program: Program | None) -> dict[str, float]:
    """Return the time in ms per step by name of the forward operations that read the model's inputs.

    They are those of trained layers that compute no gradient by their input.
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
            casts |= {row.name: TO_BFLOAT16_MS * values(row, program) for row in forward}
    return casts
