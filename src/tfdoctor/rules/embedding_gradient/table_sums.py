"""Sums over all rows of an embedding table, such as an L2 penalty, where a step looks up only some rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow, reached
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import BROADCASTING, PASSING, UNARY, UPDATES
from tfdoctor.facts.run.program import Operation, Program, Shape
from tfdoctor.rules.embedding_gradient.embedding_tables import DENSIFIES
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

REGULARIZER = "regularizer"
"""The kind of origin of operations that Keras's regularizers made."""

SUMS = frozenset(("Sum", "Mean", "L2Loss", "EuclideanNorm", "Max", "Prod"))
LOOKUPS = frozenset(("GatherV2", "Gather", "ResourceGather"))
READ = "ReadVariableOp"
AGGREGATES = frozenset(("AddN",))
"""Operations that add the gradients of several uses of a variable."""


class _Use(Enum):
    """What becomes of the values of a table."""

    SUMMED = 1
    WRITTEN = 2  # into a variable, as by an optimizer
    NEEDED = 3


@dataclass(frozen=True, slots=True)
class TableSum:
    """A table of which only sums over all rows are used, besides the rows that were looked up.

    ``rows`` are the sums with their gradients; ``update`` is what follows in the optimizer, on all rows, where it
    would change only those in use if not for this gradient.
    """

    layer: str
    at: Location | None
    penalty: str  # the class of Keras's regularizer that sums: "L2"; "" is another
    entries: int
    lookups: int
    rows: tuple[OperationTime, ...]
    update: tuple[OperationTime, ...] = ()

    @property
    def ms(self) -> float:
        """The time of the operations, in ms per step."""
        return sum(row.ms for row in (*self.rows, *self.update))


@dataclass(frozen=True, slots=True)
class TableSums:
    """The tables that are summed over all rows in each step, those of most time first."""

    tables: tuple[TableSum, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Follow what reads each table that the step looks rows up in."""
        found = (
            _summed(LookedUpTable(handle, lookups, program, dataflow), operations)
            for handle, lookups in _lookups(dataflow).items()
        )
        known = [one for one in found if one is not None]
        return cls(tuple(sorted(known, key=lambda one: -one.ms)))


@dataclass(frozen=True, eq=False)
class LookedUpTable:
    """A variable with its lookups, in the graph."""

    handle: str
    lookups: tuple[Operation, ...]
    program: Program
    dataflow: Dataflow

    @property
    def shape(self) -> Shape | None:
        """The shape of the variable, as a read returns it."""
        return next((read.outputs[0][1] for read in self.reads if read.outputs), None)

    @property
    def number_of_lookups(self) -> int | None:
        """The rows looked up per step, repetitions included; None where a shape is open."""
        shapes = [self.program.shape(one.inputs[1][1]) for one in self.lookups]
        return None if None in shapes else sum(prod(shape) for shape in shapes if shape is not None)

    @property
    def reads(self) -> tuple[Operation, ...]:
        """The operations that read the whole variable."""
        users = self.dataflow.consumers.get(self.handle, ())
        return tuple(user for user in users if user.type == READ)

    def use(self, operation: Operation) -> _Use:
        """Return what becomes of an operation's result."""
        uses, waiting, passed = set[_Use](), [operation], {operation.name}
        for user in (user for one in waiting for user in self.forward(one)):
            if user.type in SUMS:
                uses.add(_Use.SUMMED)
            elif user.type in BROADCASTING | UNARY | PASSING:
                waiting += [user] if user.name not in passed else []
                passed.add(user.name)
            else:
                uses.add(_Use.WRITTEN if UPDATES.fullmatch(user.type) else _Use.NEEDED)
        if _Use.NEEDED in uses:
            return _Use.NEEDED
        return _Use.SUMMED if _Use.SUMMED in uses else _Use.WRITTEN

    def forward(self, operation: Operation) -> Iterator[Operation]:
        """Yield what uses all rows of a result in the forward pass."""
        yield from (user for user in self.dataflow.forward(operation) if user.type not in LOOKUPS)

    def summing(self) -> tuple[Operation, ...]:
        """Return the forward operations on all rows that lead to sums; () where something needs the rows."""
        uses = {read.name: self.use(read) for read in self.reads}
        if _Use.NEEDED in uses.values():
            return ()
        found: dict[str, Operation] = {}
        ahead = [read for read in self.reads if uses[read.name] is _Use.SUMMED]
        while ahead:
            one = ahead.pop()
            found[one.name] = one
            rest = () if one.type in SUMS else self.forward(one)
            ahead += [user for user in rest if user.name not in found]
        return tuple(found.values())

    def connected(self, first: Iterable[Operation]) -> Mapping[str, Operation]:
        """Return all operations that tensors of the table's shape connect with these, but no lookups."""
        known = self.program.by_name
        names = reached(
            (one.name for one in first),
            lambda name: (one.name for one in self._neighbors(known[name]) if one.type not in LOOKUPS),
        )
        return {name: known[name] for name in names}

    def _neighbors(self, one: Operation) -> Iterator[Operation]:
        if any(shape == self.shape for _, shape in one.outputs) and not self._is_other(one):
            yield from self.dataflow.consumers.get(one.name, ())
        for source, (_, given) in zip(one.sources, one.inputs, strict=False):
            maker = self.program.by_name.get(source)
            if given == self.shape and maker is not None:
                yield maker

    def _is_other(self, one: Operation) -> bool:
        """Say whether an operation reads another variable: a moment of the optimizer's."""
        return one.type == READ and one.sources != (self.handle,)

    def has_moments(self, operations: Iterable[Operation]) -> bool:
        """Say whether the update of the table reads other variables of its shape."""
        return any(self._is_other(one) for one in operations)


def _lookups(dataflow: Dataflow) -> dict[str, tuple[Operation, ...]]:
    """Return the lookups by the variable that they read."""
    found: dict[str, tuple[Operation, ...]] = {}
    for one in dataflow.program.by_name.values():
        if one.type in LOOKUPS and len(one.inputs) > 1 and not GRADIENT.search(one.name):
            read = dataflow.source(one, 0)
            handle = read.sources[0] if read and read.type == READ and read.sources else ""
            handle = one.sources[0] if one.type == "ResourceGather" and one.sources else handle
            if handle:
                found[handle] = (*found.get(handle, ()), one)
    return found


def _summed(table: LookedUpTable, operations: Operations) -> TableSum | None:
    shape, lookups = table.program.shape(table.shape), table.number_of_lookups
    summing = table.summing()
    if not shape or lookups is None or not summing:
        return None
    connected = table.connected(summing)
    own = {one.name for one in summing} | {
        name
        for name, one in connected.items()
        if (GRADIENT.search(name) or one.type in AGGREGATES) and one.type != DENSIFIES
    }
    update = set() if table.has_moments(connected.values()) else set(connected) - own
    layer = table.lookups[0].layer
    regularizer = next((one for one in summing if one.origin and one.origin.kind == REGULARIZER), None)
    made = table.program.layer_by_name.get(layer)
    line = next((one.at for one in summing if one.type != READ and one.at), None)
    return TableSum(
        layer or table.handle,
        made.at if regularizer and made and made.at else line,
        regularizer.origin.name if regularizer and regularizer.origin else "",
        shape[0],
        lookups,
        _rows(operations, own),
        _rows(operations, update),
    )


def _rows(operations: Operations, names: set[str]) -> tuple[OperationTime, ...]:
    return tuple(row for row in operations.rows if (row.operation.name if row.operation else row.name) in names)
