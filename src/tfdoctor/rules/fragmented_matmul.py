"""Many small matrix products multiply the same tensor, one after the other.

## What it checks

Matmuls of the forward pass that take the same tensor and weights of one shape (a projection of its own for
each head, for each expert or class), told by the graph's edges, and their gradients.

## Why it matters

Each product has fixed costs: a kernel to launch, threads to start, operands to pack; and a narrow one fills
neither the matrix unit's tiles nor the cores. Their bias, their gradients and the optimizer's updates come
once for each, too.

## How to fix

Make one product with the weights side by side, and divide its result: one `Dense(heads * width)` and a
reshape in place of a list of `Dense(width)`. The mathematics is the same. The saving is a ceiling: one of
the calls' time remains; the wider product has more to do in it.

## Holds for

All hardware. Products that depend on each other, such as the layers of a stack or the steps of a recurrent
layer, take different tensors and are not counted; nor are query, key and value alone, which are three.
Where many small products run in a graph that was not recorded, such as the body of a loop, it says so and
judges nothing.

## Sources

- [Keras, EinsumDense layer](https://keras.io/api/layers/core_layers/einsum_dense/)
- [NVIDIA, Matrix Multiplication Background User's Guide](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.operations.sibling_matmuls import SiblingMatmuls, Siblings
from tfdoctor.facts.operations.unrecorded_matmuls import UnrecordedMatmuls
from tfdoctor.humanize import counted, milliseconds
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

    products: float = limit(
        4.0,
        "products of one tensor with weights of one shape: query, key and value are three by design",
    )
    each_ms: float = limit(
        0.2,
        "ms of a call: twice the fixed cost of a small product on a CPU (benchmarks/precision.py); "
        "a longer one is mostly arithmetic, which stays",
    )
    unseen: float = limit(
        0.05,
        "of the compute time, in small products of which the record does not tell what they multiply: from "
        "it on none is said to share a tensor or not",
        most=1.0,
    )


LIMITS = Limits()


def check(siblings: SiblingMatmuls, operations: Operations, limits: Limits = LIMITS) -> Verdict:
    """Leave one call of each group of small products."""
    many = [group for group in siblings.groups if len(group.matmuls) >= limits.products]
    small = [group for group in many if group.each_ms <= limits.each_ms]
    if not small and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if many and not small:
        each = max(group.each_ms for group in many)
        return Healthy(
            summary=f"The products that share a tensor are large enough: up to {milliseconds(each)} each"
        )
    products = UnrecordedMatmuls.measure(operations)
    if not small and (said := products.repeated(limits.products, limits.each_ms, limits.unseen)):
        return NotApplicable(reason=f"{said}: {LOOP}")
    if not small:
        return Healthy(summary="No tensor is multiplied by many weights of one shape")
    total = sum(group.ms for group in small)
    number = sum(len(group.rows) for group in small)
    return Finding(
        summary=f"{counted(number, 'small matrix product')} that "
        f"{counted(len(small), 'product')} with their gradients could do take {milliseconds(total)} per step",
        evidence=(
            Measure("small products of shared tensors per step", ms(total)),
            Measure("share of the compute time", ratio(total / operations.total_ms)),
            Measure("time of a call", ms(total / number), ms(limits.each_ms)),
            _table(small),
        ),
        remedies=(
            Remedy(
                "Make one product and divide its result",
                ONE_PRODUCT,
                next((group.at for group in small if group.at), None),
            ),
        ),
        effects=tuple(effect for group in small for effect in _effects(group)),
    )


def _effects(group: Siblings) -> tuple[Effect, ...]:
    """Let one call's time of each kind remain."""
    left = 1.0 / len(group.matmuls)
    return tuple(
        Effect(Stage.DEVICE, left, row.name, ms(row.ms), bound=Bound.AT_MOST) for row in group.rows
    )


def _table(groups: list[Siblings]) -> Table:
    rows = tuple(
        (group.source, group.at or "unknown", count(len(group.matmuls)),
         " x ".join("?" if size is None else str(size) for size in group.weights), ms(group.ms))
        for group in groups
    )  # fmt: skip
    return Table(("tensor", "your line", "products", "weights", "per step, with gradients"), rows)


LOOP = (
    "which of them one product could do is not known. A recurrent layer's loop over time costs the host too: "
    "`unroll=True` (short sequences) or jit_compile=True may shorten it, which only a trial tells"
)

ONE_PRODUCT = """\
# instead of [Dense(width)(x) for _ in range(heads)]:
y = keras.layers.Dense(heads * width)(x)
y = tf.reshape(y, (-1, length, heads, width))"""


def sick() -> Verdict:
    """Eight heads, each with a product of its own."""
    return _examine([_row(f"model/head_{n}/MatMul") for n in range(8)])


def healthy() -> Verdict:
    """One product for all heads."""
    return _examine([_row("model/heads/MatMul")])


def _examine(products: list[OperationTime]) -> Verdict:
    gradients = [_row(f"gradient_tape/{row.name}/MatMul_1") for row in products]
    group = Siblings("model/input", (128, 16), tuple(products), tuple(gradients))
    return check(SiblingMatmuls((group,)), Operations((*products, *gradients)))


def _row(name: str) -> OperationTime:
    return OperationTime(name=name, type="MatMul", ms=0.05, at=Location("train.py", 20))
