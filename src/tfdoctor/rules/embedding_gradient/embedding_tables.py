"""Embedding tables with expensive lookups or updates: one-hot matmuls, and updates of the whole table."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import MATMULS, UPDATES
from tfdoctor.facts.run.program import Program
from tfdoctor.terms.verdict import Location

ONE_HOT = "OneHot"
# The operation by which the gradient of some of a table's rows becomes a gradient of all of them.
DENSIFIES = "UnsortedSegmentSum"


@dataclass(frozen=True, slots=True)
class WholeTable:
    """A table of which a step processes every row.

    ``rows`` are what need not be: a product with one-hot rows that a lookup would replace; a sum with its
    gradients; an update of rows that were not looked up. ``update`` is what follows a sum in the optimizer, on all
    rows, where it would change only those in use if not for this gradient.
    """

    use: str
    name: str
    at: Location | None
    entries: int  # rows of the table
    lookups: int | None  # per step, repetitions included; None when a dimension is open
    rows: tuple[OperationTime, ...]
    update: tuple[OperationTime, ...] = ()
    width: int | None = None  # of an entry, in values

    @property
    def ms(self) -> float:
        """The time of the operations, in ms per step."""
        return sum(row.ms for row in (*self.rows, *self.update))

    @property
    def used(self) -> float:
        """The share of the rows that is looked up, at most."""
        return min(1.0, (self.lookups or 0) / self.entries)


@dataclass(frozen=True, slots=True)
class EmbeddingTables:
    """Tables in products and in updates; ``scattered`` counts those of which only the rows in use were updated.

    ``unseen`` says why the use of the step's one-hot rows is unknown; "" where it is known.
    """

    one_hot: tuple[WholeTable, ...]
    dense: tuple[WholeTable, ...]
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


def _one_hot(operations: Operations, program: Program, dataflow: Dataflow) -> Iterator[WholeTable]:
    """Yield the products with their gradients, and the one-hot operation where nothing else uses its rows."""
    for matmul in program.by_name.values():
        if matmul.type not in MATMULS or matmul.name.startswith("gradient"):
            continue
        factors = (dataflow.source(matmul, 0), dataflow.source(matmul, 1))
        one_hot = next((one for one in factors if one is not None and one.type == ONE_HOT), None)
        entries = (one_hot.outputs[0][1] or (None,))[-1] if one_hot and one_hot.outputs else None
        if one_hot is None or not entries:
            continue
        users = [user.name for user in dataflow.users(one_hot)]
        only_use = all(user == matmul.name or dataflow.is_gradient_of(user, matmul) for user in users)
        rows = [
            row
            for row in operations.rows
            if _name(row) == matmul.name
            or (only_use and _name(row) == one_hot.name)
            or dataflow.is_gradient_of(row.name, matmul)
        ]
        indices = one_hot.inputs[0][1] if one_hot.inputs else None
        # open for a flat list, even when the batch's size is known
        shape = None if indices == (None,) else program.shape(indices)
        table = matmul.inputs[1 - factors.index(one_hot)][1] if len(matmul.inputs) > 1 else None
        widths = [size for size in table or () if size != entries]
        width = widths[0] if table and len(table) == len(widths) + 1 == 2 else None  # noqa: PLR2004 - rank 2
        if rows:
            name, lookups = matmul.layer or "unknown", None if shape is None else prod(shape)
            yield WholeTable("one-hot matmul", name, rows[0].at, entries, lookups, tuple(rows), width=width)


def _name(row: OperationTime) -> str:
    return row.operation.name if row.operation else row.name


def _dense(operations: Operations) -> Iterator[WholeTable]:
    """Yield the tables whose optimizer updates every row; rows may be gathered from a result as well."""
    groups: dict[tuple[int, ...], list[OperationTime]] = defaultdict(list)
    for row in operations.rows:
        made = row.operation.outputs[0][1] if row.operation and row.operation.outputs else None
        if row.type == DENSIFIES and made and None not in made:
            groups[tuple(size or 0 for size in made)].append(row)
    for table, sums in groups.items():
        first = sums[0]
        summed = first.operation.inputs[0][1] if first.operation and first.operation.inputs else None
        on_table = [
            row
            for row in operations.rows
            if row.operation and any(shape == table for _, shape in (*row.operation.inputs, *row.operation.outputs))
        ]
        written = any(UPDATES.fullmatch(row.type) for row in on_table)
        if summed and summed[0] is not None and written:
            rows = tuple(row for row in on_table if row in sums or row.layer == first.layer)
            name = first.layer or first.name
            yield WholeTable("update of all rows", name, first.at, table[0], summed[0], rows)
