"""Tensors that broadcasting expands and that are summed at once: a matmul makes the sums without them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow, reached
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import SHAPES
from tfdoctor.facts.run.program import Operation, Program, Shape
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

LINEAR = frozenset(("Sub", "AddV2", "Add"))
"""Operations whose square is a sum of two squares and a product: (a - b)² = a² - 2ab + b²."""

PRODUCTS = frozenset(("Mul", "SquaredDifference"))
"""Operations whose sum is a matmul, or two sums of squares and a matmul."""

SUMS = frozenset(("Sum", "Mean"))
NORMS = frozenset(("EuclideanNorm", "L2Loss"))

SQUARE = 2.0
"""The exponent of a square."""


@dataclass(frozen=True, slots=True)
class ExpandedProduct(OperationRows):
    """An operation of which both operands broadcast, and all operations on tensors of its size that it leads to."""

    row: OperationTime
    shape: tuple[int, ...]
    times: float  # the size of its result over that of its larger operand, or of the sums if these are larger
    rows: tuple[OperationTime, ...]  # forward and backward
    weighted: bool = False  # differences are summed with weights, and not squared

    @property
    def at(self) -> Location | None:
        """The line that expands it."""
        return self.row.operation.at if self.row.operation else self.row.at

    @property
    def is_distance(self) -> bool:
        """Whether differences are squared, and not products summed."""
        return self.row.type != "Mul" and not self.weighted


@dataclass(frozen=True, slots=True)
class ExpandedProducts:
    """The expanded tensors of the forward pass of which only sums are used, those of most time first."""

    rows: tuple[ExpandedProduct, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Follow each operation that expands both operands to what uses its result.

        Sums of products over any axes are a matmul or less: it is enough that every use is such a sum.
        """
        found = [_expanded(row, operations, program, dataflow) for row in operations.rows]
        # TensorFlow may run one operation as two: both lead to the same tensors
        known = {one.rows: one for one in reversed(found) if one is not None}
        return cls(tuple(sorted(known.values(), key=lambda one: -one.ms)))


def _expanded(
    row: OperationTime, operations: Operations, program: Program, dataflow: Dataflow
) -> ExpandedProduct | None:
    made = row.operation
    if made is None or made.type not in LINEAR | PRODUCTS or GRADIENT.search(made.name):
        return None
    sizes = _sizes(made, program)
    if sizes is None or not _only_summed(made, dataflow, squared=made.type in PRODUCTS):
        return None
    shape, largest = sizes
    names = _of_its_size(made, dataflow)
    for one in (program.by_name[name] for name in names):
        if one.type in SUMS | NORMS and not GRADIENT.search(one.name) and one.outputs:
            size = prod(_filled(one.outputs[0][1], program.batch_size) or (0,))
            largest = max(largest, size)  # a sum in the forward pass may be larger than the operands
    return ExpandedProduct(
        row,
        shape,
        prod(shape) / largest,
        tuple(one for one in operations.rows if one.operation and one.operation.name in names),
        any(_weights(user, made, dataflow) for user in dataflow.consumers.get(made.name, ())),
    )


def _sizes(made: Operation, program: Program) -> tuple[tuple[int, ...], int] | None:
    """Return the shape of a result and the size of the larger operand; None where either is as large, or open.

    Open dimensions are the batch's: only such are compared with each other.
    """
    tensors = [shape for _, shape in (*made.outputs[:1], *made.inputs)]
    full = [_filled(shape, program.batch_size) for shape in tensors]
    shape, *operands = full
    if shape is None or len(operands) != len(made.inputs) or None in operands:
        return None
    largest = max((prod(one) for one in operands if one is not None), default=0)
    return (shape, largest) if 0 < largest < prod(shape) else None


def _filled(shape: Shape | None, batch: int | None) -> tuple[int, ...] | None:
    sizes = [batch if size is None else size for size in shape or ()]
    known = tuple(size for size in sizes if size is not None)
    return known if shape is not None and len(known) == len(sizes) else None


def _only_summed(made: Operation, dataflow: Dataflow, *, squared: bool) -> bool:
    """Say whether every use of a result sums it, after a square where it is no product yet."""
    users = dataflow.forward(made)
    return bool(users) and all(_sums(user, made, dataflow, squared=squared) for user in users)


def _sums(user: Operation, made: Operation, dataflow: Dataflow, *, squared: bool) -> bool:
    if user.type in SUMS or (user.type in NORMS and not squared):
        return True
    if user.type == "Identity":
        return _only_summed(user, dataflow, squared=squared)
    once = _squares(user, made, dataflow) or _weights(user, made, dataflow)
    return not squared and once and _only_summed(user, dataflow, squared=True)


def _weights(user: Operation, made: Operation, dataflow: Dataflow) -> bool:
    """Say whether an operation multiplies a difference by a smaller tensor: sums of that are two products."""
    if user.type != "Mul" or not user.outputs or user.outputs[0] != made.outputs[0]:
        return False
    others = [
        shape
        for source, (_, shape) in zip(user.sources, user.inputs, strict=False)
        if not _same(source, made, dataflow)
    ]
    return len(others) == 1 and others[0] is not None and others[0] != made.outputs[0][1]


def _squares(user: Operation, made: Operation, dataflow: Dataflow) -> bool:
    if user.type == "Square":
        return True
    if user.type == "Mul":
        return all(_same(source, made, dataflow) for source in user.sources)
    exponent = dataflow.program.by_name.get(user.sources[1]) if user.type == "Pow" else None
    return exponent is not None and exponent.attrs.scalar == SQUARE


def _same(source: str, made: Operation, dataflow: Dataflow) -> bool:
    """Say whether an operand is a result, or passes it on."""
    operand = dataflow.program.by_name.get(source)
    passes = operand is not None and operand.type == "Identity" and operand.sources == (made.name,)
    return source == made.name or passes


def _of_its_size(made: Operation, dataflow: Dataflow) -> frozenset[str]:
    """Return the operations that tensors of a result's shape connect with it, backward ones included."""
    shape, known = made.outputs[0][1], dataflow.program.by_name
    return reached((made.name,), lambda name: (one.name for one in _neighbors(known[name], shape, dataflow)))


def _neighbors(one: Operation, shape: Shape | None, dataflow: Dataflow) -> Iterator[Operation]:
    """Yield what takes a tensor of this shape from an operation, what gives it such a tensor, and its gradients.

    The gradient of a product takes the operands, and not the product: no edge leads there.
    """
    for gradient in dataflow.gradients.get(one.name, ()):
        if _has((*gradient.inputs, *gradient.outputs), shape):
            yield gradient
    if _has(one.outputs, shape):
        yield from (user for user in dataflow.consumers.get(one.name, ()) if user.type not in SHAPES)
    for source, (_, given) in zip(one.sources, one.inputs, strict=False):
        maker = dataflow.program.by_name.get(source)
        if given == shape and maker is not None:
            yield maker


def _has(tensors: Iterable[tuple[str, Shape | None]], shape: Shape | None) -> bool:
    return any(given == shape for _, given in tensors)
