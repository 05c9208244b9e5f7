"""Many small matmuls share the same input tensor.

## What it checks

Forward matmuls that multiply the same tensor by weights of one shape, such as a separate projection for each
head, expert or class, and their gradients. The graph's edges show which tensor a matmul takes.

## Why it matters

Each matmul has fixed costs: a kernel to launch, threads to start, operands to pack. A narrow matmul fills
neither the tiles of the matrix unit nor the cores. Biases, gradients and optimizer updates also run once per
matmul.

## How to fix

Run one matmul with the weights side by side and split its result: one `Dense(heads * width)` and a reshape
instead of a list of `Dense(width)`. The mathematics is the same. The saving is an upper bound: the time of one
call remains, and the wider matmul does more work.

## Holds for

All hardware. Matmuls that depend on each other, such as stacked layers or the steps of a recurrent layer, take
different tensors and are not counted; query, key and value alone are only three. Where many small matmuls run
in a graph that was not recorded, such as the body of a loop, the rule does not check them.

## Sources

- [Keras, EinsumDense layer](https://keras.io/api/layers/core_layers/einsum_dense/)
- [NVIDIA, Matrix Multiplication Background User's Guide](https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.matmuls.unrecorded_matmuls import UnrecordedMatmuls
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.rules.fragmented_matmul.sibling_matmuls import SiblingMatmuls, Siblings
from tfdoctor.terms.humanize import counted, milliseconds
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Table, Verdict

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
BY_HAND = "the layers have to be written as one, whose result is split"


@dataclass(frozen=True, slots=True)
class Limits:
    """How many matmuls, and how small, are worth one larger matmul."""

    products: float = limit(
        4.0,
        "Smallest number of matmuls of one tensor with weights of one shape that is reported: query, key and "
        "value are three by design",
    )
    each_ms: float = limit(
        0.2,
        "Longest call of a small matmul, in ms: twice its fixed cost on a CPU (benchmarks/precision.py); a "
        "longer call is mostly arithmetic, which one larger matmul does not save",
    )
    unseen: float = share_limit(
        0.05,
        "Largest share of the compute time in small matmuls with unknown inputs for which the step can be "
        "called healthy",
    )


def check(siblings: SiblingMatmuls, operations: Operations, limits: Limits = Limits()) -> Verdict:
    """Keep the time of one call of each group of small matmuls."""
    groups = [group for group in siblings.groups if len(group.matmuls) >= limits.products]
    small = [group for group in groups if group.each_ms <= limits.each_ms]
    if small:
        return _finding(small, operations, limits)
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if groups:
        longest = milliseconds(max(group.each_ms for group in groups))
        return Healthy(summary=f"The matmuls that share a tensor are large enough: up to {longest} per call")
    unrecorded = UnrecordedMatmuls.measure(operations)
    repeated = unrecorded.repeated(limits.products, limits.each_ms, limits.unseen)
    if repeated:
        return NotApplicable(reason=f"{repeated}: {LOOP}")
    return Healthy(summary="No tensor is multiplied by many weights of the same shape")


def _finding(small: list[Siblings], operations: Operations, limits: Limits) -> Finding:
    total_ms = sum(group.ms for group in small)
    number = sum(len(group.rows) for group in small)
    at = next((group.at for group in small if group.at), None)
    table = Table.of(
        small,
        ("tensor", lambda group: group.source),
        ("your line", lambda group: group.at),
        ("matmuls", lambda group: count(len(group.matmuls))),
        ("weights", lambda group: " x ".join(str(size or "?") for size in group.weights)),
        ("time per step with gradients", lambda group: ms(group.ms)),
    )
    return Finding(
        summary=f"{counted(number, 'small matmul')} take {milliseconds(total_ms)} per step; "
        f"{counted(len(small), 'larger matmul')} (gradients included) could replace them",
        evidence=(
            *operations.part(total_ms).measures("in small matmuls of shared tensors"),
            Measure("time per call of a small matmul", ms(total_ms / number), ms(limits.each_ms)),
            table,
        ),
        remedies=(Remedy("Run one larger matmul and split its result", ONE_MATMUL, at),),
        effects=tuple(  # the time of one call remains, forward and backward
            row.scaled(1.0 / len(group.matmuls), Bound.AT_MOST) for group in small for row in group.rows
        ),
    )


LOOP = (
    "whether they share an input is unknown. The loop over time of a recurrent layer also takes host time: "
    "try `unroll=True` (for short sequences) or jit_compile=True and measure"
)

ONE_MATMUL = """\
# instead of [Dense(width)(x) for _ in range(heads)]:
y = keras.layers.Dense(heads * width)(x)
y = tf.reshape(y, (-1, length, heads, width))"""


def example(number: int = 8) -> Verdict:
    """Each of eight heads runs its own small matmul."""
    at, names = Location("train.py", 20), [f"model/head_{n}/MatMul" for n in range(number)]
    matmuls, gradients = (
        tuple(OperationTime(name=name, type="MatMul", ms=0.05, at=at) for name in some)
        for some in (names, [f"gradient_tape/{name}/MatMul_1" for name in names])
    )
    group = Siblings("model/input", (128, 16), matmuls, gradients)
    return check(SiblingMatmuls((group,)), Operations((*matmuls, *gradients)))


sick = example


def healthy() -> Verdict:
    """One matmul computes all heads."""
    return example(1)
