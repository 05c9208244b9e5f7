"""Products of which few rows are selected before anything else uses them, in the graphs that the run built."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Self

from tfdoctor.facts.operations.broadcasts import ELEMENTWISE, UNARY
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.dependence import CONSTANT, SHAPES
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import MATMULS
from tfdoctor.facts.run.program import Operation, Shape
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

SLICES = frozenset(("StridedSlice", "Slice"))

GATHERS = frozenset(("GatherV2",))
"""Those whose shapes tell how many rows they take. GatherNd takes as many as its indices have, which is open."""

ROW_BY_ROW = (
    ELEMENTWISE
    | UNARY
    | {"BiasAdd", "Cast", "Erfc", "Identity", "LogSoftmax", "Reshape", "Softmax", "StopGradient"}
)
"""Operations whose result in a row, along the last axis, depends on that row of their operands alone."""

GIVEN = SHAPES | CONSTANT | {"ReadVariableOp"}
"""Operations without a gradient of their own."""


@dataclass(frozen=True, slots=True)
class SelectedProduct:
    """Products, and what is computed of their rows one by one, up to the selection of a part of these.

    ``rows`` are the operations that ran, those of gradients included; ``matrices`` the bytes of the other operand
    of a product, by the name of the operation that reads or makes it: as much of it is left with fewer rows.
    """

    product: OperationTime  # the longest
    rows: tuple[OperationTime, ...]
    kept: float  # the share of the rows that is selected, 0 to 1
    of: Shape  # of what is selected from
    to: Shape  # of what is selected
    at: Location | None = None  # the line that selects
    matrices: tuple[tuple[str, int], ...] = ()

    @property
    def ms(self) -> float:
        """The time of the operations, in ms per step."""
        return sum(row.ms for row in self.rows)

    def left(self, row: OperationTime, rate: float | None) -> float:
        """Return the share of an operation's time that fewer rows leave, 0 to 1.

        ``rate`` is how many bytes of an operand the memory delivers per second; None is unknown.
        """
        size = dict(self.matrices).get(row.name)
        if not size or not rate or not row.ms:
            return self.kept
        return min(1.0, max(self.kept, size * row.calls / rate * 1e3 / row.ms))


@dataclass(frozen=True, slots=True)
class SelectedProducts:
    """The products of which few rows are used; those of most time first."""

    products: tuple[SelectedProduct, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Go back from each selection of rows through what is used by it alone."""
        search = RowSearch(dataflow, operations)
        found = (search.before(one) for one in dataflow.program.by_name.values())
        return cls(tuple(sorted(filter(None, found), key=lambda one: -one.ms)))


@dataclass(frozen=True, eq=False)
class RowSearch:
    """Finds what only the selected rows of its results are used of."""

    flow: Dataflow
    operations: Operations

    def before(self, selection: Operation) -> SelectedProduct | None:
        """Return the products before a selection; None where it selects no rows, or others use the rest."""
        kept = self._kept(selection)
        if kept is None or GRADIENT.search(selection.name):
            return None
        inside = self._inside(selection)
        rows = self._ran(inside) if any(_multiplies(one) for one in inside) else []
        products = [row for row in rows if row.operation and _multiplies(row.operation)]
        if not products:
            return None
        return SelectedProduct(
            max(products, key=lambda row: row.ms),
            (*rows, *self._ran(self._gradients(inside))),
            kept,
            selection.inputs[0][1] or (),
            selection.outputs[0][1] or (),
            self.flow.program.line_of(selection),
            tuple(self._matrices(inside)),
        )

    def _kept(self, selection: Operation) -> float | None:
        """Return the share of rows that are selected; None where this is open, or columns are."""
        if selection.type not in SLICES | GATHERS or not (selection.inputs and selection.outputs):
            return None
        of, to = selection.inputs[0][1], selection.outputs[0][1]
        if not of or not to or of[-1] is None or of[-1] != to[-1] or len(to) > len(of):
            return None
        open_rows = [None in shape[1:] or len(shape) == 1 for shape in (of, to)]
        # An open first size is that of the batch, before as after, unless a mask says how many rows.
        if any(open_rows) or (of[0] is None) != (to[0] is None) or self._by_mask(selection):
            return None
        return prod(size or 1 for size in to) / prod(size or 1 for size in of)

    def _by_mask(self, selection: Operation) -> bool:
        index = self.flow.source(selection, 1)
        return index is not None and index.type == "Where"

    def _inside(self, selection: Operation) -> list[Operation]:
        """Return the operations before a selection whose results are used for it alone, the last first."""
        inside, names, ahead = [], {selection.name}, [*selection.sources[:1]]
        rows = (selection.inputs[0][1] or ())[:-1]
        while ahead:
            one = self.flow.program.by_name.get(ahead.pop(0))
            if one is None or one.name in names or not self._by_rows(one, rows):
                continue
            if all(user.name in names for user in self._forward(one)):
                names.add(one.name)
                inside.append(one)
                ahead += one.sources[:1] if _multiplies(one) else one.sources
        return inside

    def _forward(self, one: Operation) -> Iterator[Operation]:
        """Yield what uses an operation's values, without gradients."""
        for user in self.flow.consumers.get(one.name, ()):
            if user.type not in SHAPES and not GRADIENT.search(user.name):
                yield user

    def _by_rows(self, one: Operation, rows: Shape) -> bool:
        """Say whether an operation computes each of these rows by itself."""
        shape = one.outputs[0][1] if one.outputs else None
        if shape is None or not (one.type in ROW_BY_ROW or _multiplies(one)):
            return False
        flat = len(shape) == 2 and shape[0] in {None, _size(rows)}  # noqa: PLR2004 - a matrix
        if one.type == "Reshape" and not self._keeps_columns(one, shape):
            return False
        return shape[:-1] == rows or flat

    def _keeps_columns(self, reshape: Operation, shape: Shape) -> bool:
        """Say whether the last axis stays; where it is open, by the matrix that is multiplied next."""
        before = reshape.inputs[0][1]
        after = shape[-1]
        if after is None:
            users = [*self._forward(reshape)]
            factors = [one.inputs[1][1] or (None,) for one in users if one.type == "MatMul"]
            after = factors[0][0] if len(factors) == len(users) == 1 else None
        return bool(before) and after is not None and before is not None and before[-1] == after

    def _gradients(self, inside: list[Operation]) -> Iterator[Operation]:
        """Yield the operations of the gradients, which have the scope of an operation or that around it."""
        names = {one.name for one in inside}
        scopes = set(names)
        for one in inside:
            scope = one.name.rpartition("/")[0]
            if scope and self._children.get(scope, set()) <= names:
                scopes.add(scope)
        for scope in sorted(scopes):
            yield from self.flow.gradients.get(scope, ())

    @cached_property
    def _children(self) -> dict[str, set[str]]:
        """The names of what is computed directly in a scope of the forward pass, by the scope's name."""
        children: dict[str, set[str]] = {}
        for one in self.flow.program.by_name.values():
            if not GRADIENT.search(one.name) and one.type not in GIVEN:
                children.setdefault(one.name.rpartition("/")[0], set()).add(one.name)
        return children

    def _ran(self, made: Iterable[Operation]) -> list[OperationTime]:
        names = {one.name for one in made}
        return [
            row
            for row in self.operations.rows
            if row.operation and not row.operation.compiled and row.operation.name in names
        ]

    def _matrices(self, inside: list[Operation]) -> Iterator[tuple[str, int]]:
        """Yield the names of the products with the bytes of their matrices, and of the gradients of these."""
        for one in filter(_multiplies, inside):
            matrix = one.inputs[1]
            size = self.flow.program.nbytes(matrix)
            if size is None:
                continue
            yield one.name, size
            for gradient in (*self._of(one.name), *self._of(one.name.rpartition("/")[0])):
                if any(_alike(matrix[1], tensor[1]) for tensor in (*gradient.inputs, *gradient.outputs)):
                    yield gradient.name, size

    def _of(self, scope: str) -> tuple[Operation, ...]:
        return tuple(self.flow.gradients.get(scope, ())) if scope else ()


def _multiplies(one: Operation) -> bool:
    """Say whether an operation is a product whose rows are those of its first operand."""
    if one.type not in MATMULS or len(one.inputs) < 2 or not one.outputs:  # noqa: PLR2004
        return False
    if one.type != "Einsum":
        return not (one.attrs.transpose_a or one.attrs.adj_x)
    first, _, rest = one.attrs.equation.replace(" ", "").partition(",")
    result = rest.partition("->")[2]
    return bool(result) and set(result[:-1]) <= set(first)


def _size(shape: Shape) -> int | None:
    return None if None in shape else prod(size or 0 for size in shape)


def _alike(one: Shape | None, other: Shape | None) -> bool:
    """Say whether two matrices have the same sizes, one of them perhaps transposed."""
    return one is not None and other is not None and sorted(map(str, one)) == sorted(map(str, other))
