"""Embedding tables with expensive lookups or updates: one-hot matmuls, and updates of the whole table."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import MATMULS, UPDATES
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.terms.verdict import Location

ONE_HOT = "OneHot"
DENSIFIES = "UnsortedSegmentSum"
"""The operation by which the gradient of some of a table's rows becomes a gradient of all of them."""

LOOKUP_PASSES = 5
"""Passes over the looked-up vectors: gathering reads and writes them, scattering their gradients reads them,
and reads and writes the table's rows."""


@dataclass(frozen=True, slots=True)
class OneHotTable(OperationRows):
    """A table multiplied by one-hot rows, forward and backward."""

    layer: str
    at: Location | None
    entries: int  # rows of the table
    lookups: int | None  # per step; None when a dimension is open
    width: int | None  # of an entry, in values
    rows: tuple[OperationTime, ...]  # that a lookup would replace

    @property
    def rate(self) -> float | None:
        """Bytes per second at which the one-hot rows were written; None is unknown."""
        one_hot = [row for row in self.rows if row.type == ONE_HOT and row.nbytes and row.ms]
        time = sum(row.ms for row in one_hot) * 1e-3
        return sum((row.nbytes or 0) * row.calls for row in one_hot) / time if time else None

    @property
    def lookup_bytes(self) -> int | None:
        """The bytes that looking up and scattering float32 entries moves."""
        if self.lookups is None or self.width is None:
            return None
        return LOOKUP_PASSES * self.lookups * self.width * 4


@dataclass(frozen=True, slots=True)
class DenseUpdate(OperationRows):
    """A table of which the optimizer updates every row, although the step looked up only some."""

    name: str
    at: Location | None
    entries: int
    lookups: int
    rows: tuple[OperationTime, ...]  # the gradient's and the optimizer's, on the whole table


@dataclass(frozen=True, slots=True)
class EmbeddingTables:
    """Both kinds of tables; ``scattered`` counts those of which only the rows in use were updated.

    ``unseen`` says why the use of the step's one-hot rows is unknown; "" where it is known.
    """

    one_hot: tuple[OneHotTable, ...]
    dense: tuple[DenseUpdate, ...]
    scattered: int
    unseen: str = ""

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow | Unavailable) -> Self:
        """Find the tables in the graph, and their time in the trace.

        Finding matmuls of one-hot rows needs the graph's edges: without them ``one_hot`` is empty.
        """
        dense = tuple(_dense(operations))
        scattered = sum("Scatter" in row.type for row in operations.rows)
        if isinstance(dataflow, Unavailable):
            uses_one_hot = any(row.type == ONE_HOT for row in operations.rows)
            return cls((), dense, scattered, str(dataflow) if uses_one_hot else "")
        return cls(tuple(_one_hot(operations, program, dataflow)), dense, scattered)


def _one_hot(operations: Operations, program: Program, dataflow: Dataflow) -> Iterator[OneHotTable]:
    for matmul in program.by_name.values():
        if matmul.type not in MATMULS or matmul.name.startswith("gradient"):
            continue
        factors = (dataflow.source(matmul, 0), dataflow.source(matmul, 1))
        one_hot = next((one for one in factors if one is not None and one.type == ONE_HOT), None)
        entries = one_hot.outputs[0][1] if one_hot and one_hot.outputs else None
        rows = _concerned(operations, matmul, one_hot, dataflow) if one_hot else ()
        if one_hot and entries and entries[-1] and rows:
            indices = one_hot.inputs[0][1] if one_hot.inputs else None
            # open for a flat list, even when the batch's size is known
            shape = None if indices == (None,) else program.shape(indices)
            yield OneHotTable(
                matmul.layer,
                rows[0].at,
                entries[-1],
                None if shape is None else prod(shape),
                _width(matmul, factors.index(one_hot), entries[-1]),
                rows,
            )


def _concerned(
    operations: Operations, matmul: Operation, one_hot: Operation, dataflow: Dataflow
) -> tuple[OperationTime, ...]:
    """Return the matmul, its gradients, and the one-hot operation where nothing else uses its rows."""
    users = [user.name for user in dataflow.users(one_hot)]
    only_use = all(user == matmul.name or dataflow.is_gradient_of(user, matmul) for user in users)
    names = {matmul.name, one_hot.name} if only_use else {matmul.name}
    return tuple(
        row
        for row in operations.rows
        if (row.operation.name if row.operation else row.name) in names or dataflow.is_gradient_of(row.name, matmul)
    )


def _width(matmul: Operation, position: int, entries: int) -> int | None:
    """Return the other dimension of the table; None when the shape is not that of a table."""
    table = matmul.inputs[1 - position][1] if len(matmul.inputs) > 1 else None
    sizes = [size for size in table or () if size != entries]
    return sizes[0] if table and len(table) == len(sizes) + 1 == 2 else None  # noqa: PLR2004 - rank 2


def _dense(operations: Operations) -> Iterator[DenseUpdate]:
    groups: dict[tuple[int, ...], list[OperationTime]] = defaultdict(list)
    for row in operations.rows:
        if row.type == DENSIFIES and (table := _table(row)):
            groups[table].append(row)
    for table, sums in groups.items():
        first = sums[0]
        summed = first.operation.inputs[0][1] if first.operation and first.operation.inputs else None
        if not summed or summed[0] is None or not _is_written(operations, table):
            continue
        rows = [row for row in operations.rows if row in sums or (row.layer == first.layer and _is_on(row, table))]
        yield DenseUpdate(first.layer or first.name, first.at, table[0], summed[0], tuple(rows))


def _is_written(operations: Operations, table: tuple[int, ...]) -> bool:
    """Say whether the step writes a variable of this shape: rows may be gathered from a result as well."""
    return any(_is_on(row, table) for row in operations.rows if UPDATES.fullmatch(row.type))


def _is_on(row: OperationTime, table: tuple[int, ...]) -> bool:
    """Say whether an operation works on the whole table."""
    tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
    return any(shape == table for _, shape in tensors)


def _table(row: OperationTime) -> tuple[int, ...] | None:
    """Return the shape of the whole table that a gradient is spread over."""
    shape = row.operation.outputs[0][1] if row.operation and row.operation.outputs else None
    if not shape or None in shape:
        return None
    return tuple(size or 0 for size in shape)
