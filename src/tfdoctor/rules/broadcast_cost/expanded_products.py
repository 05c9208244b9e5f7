"""Tensors that broadcasting expands and that are summed at once: a matmul makes the sums without them."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import SHAPES
from tfdoctor.facts.run.program import Operation, Program, Shape, Tensor
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

# Operations whose square is a sum of two squares and a product: (a - b)² = a² - 2ab + b².
LINEAR = frozenset(("Sub", "AddV2", "Add"))
# Operations whose sum is a matmul, or two sums of squares and a matmul.
PRODUCTS = frozenset(("Mul", "SquaredDifference"))

SUMS = frozenset(("Sum", "Mean"))
NORMS = frozenset(("EuclideanNorm", "L2Loss"))

SQUARE = 2.0  # The exponent of a square


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
    """Return an operation whose result is larger than both operands, and only summed; None of any other.

    Open dimensions are the batch's: only such are compared with each other.
    """
    made = row.operation
    if made is None or made.type not in LINEAR | PRODUCTS or GRADIENT.search(made.name):
        return None
    shape, *operands = [_filled(shape, program.batch_size) for _, shape in (*made.outputs[:1], *made.inputs)]
    sizes = [prod(one) for one in operands if one is not None]
    if shape is None or not len(sizes) == len(operands) == len(made.inputs):
        return None
    largest = max(sizes, default=0)
    if not 0 < largest < prod(shape) or not _only_summed(made, dataflow, squared=made.type in PRODUCTS):
        return None
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


def _filled(shape: Shape | None, batch: int | None) -> tuple[int, ...] | None:
    sizes = [batch if size is None else size for size in shape or ()]
    known = tuple(size for size in sizes if size is not None)
    return known if shape is not None and len(known) == len(sizes) else None


def _only_summed(made: Operation, dataflow: Dataflow, *, squared: bool) -> bool:
    """Say whether every use of a result's values in the forward pass sums it, squared if it is no product yet."""
    users = [
        user
        for user in dataflow.consumers.get(made.name, ())
        if user.type not in SHAPES and not GRADIENT.search(user.name)
    ]
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
    pairs = zip(user.sources, user.inputs, strict=False)
    others = [shape for source, (_, shape) in pairs if not _same(source, made, dataflow)]
    return len(others) == 1 and others[0] is not None and others[0] != made.outputs[0][1]


def _squares(user: Operation, made: Operation, dataflow: Dataflow) -> bool:
    if user.type == "Mul":
        return all(_same(source, made, dataflow) for source in user.sources)
    exponent = dataflow.program.by_name.get(user.sources[1]) if user.type == "Pow" else None
    return user.type == "Square" or (exponent is not None and exponent.attrs.scalar == SQUARE)


def _same(source: str, made: Operation, dataflow: Dataflow) -> bool:
    """Say whether an operand is a result, or passes it on."""
    operand = dataflow.program.by_name.get(source)
    passes = operand is not None and operand.type == "Identity" and operand.sources == (made.name,)
    return source == made.name or passes


def _of_its_size(made: Operation, dataflow: Dataflow) -> set[str]:
    """Return the operations that tensors of a result's shape connect with it, backward ones included.

    Those that take a tensor of this shape, those that give one, and gradients: that of a product takes the
    operands, and not the product, so that no edge leads there.
    """
    shape, reached, ahead = made.outputs[0][1], {made.name}, [made]
    while ahead:
        one = ahead.pop()
        gradients = dataflow.gradients.get(one.name, ())
        near = [other for other in gradients if _has((*other.inputs, *other.outputs), shape)]
        if _has(one.outputs, shape):
            near += [user for user in dataflow.consumers.get(one.name, ()) if user.type not in SHAPES]
        for source, (_, given) in zip(one.sources, one.inputs, strict=False):
            maker = dataflow.program.by_name.get(source)
            near += [maker] if given == shape and maker is not None else []
        ahead += [other for other in near if other.name not in reached]
        reached |= {other.name for other in near}
    return reached


def _has(tensors: Iterable[Tensor], shape: Shape | None) -> bool:
    return any(given == shape for _, given in tensors)
