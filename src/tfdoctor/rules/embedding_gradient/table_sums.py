"""Sums over all rows of an embedding table, such as an L2 penalty, where a step looks up only some rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import BROADCASTING, PASSING, SHAPES, UNARY, UPDATES
from tfdoctor.facts.run.program import Operation, Shape
from tfdoctor.rules.embedding_gradient.embedding_tables import DENSIFIES, WholeTable
from tfdoctor.trace.names import GRADIENT

REGULARIZER = "regularizer"  # The kind of origin of operations that Keras's regularizers made

SUMS = frozenset(("Sum", "Mean", "L2Loss", "EuclideanNorm", "Max", "Prod"))
LOOKUPS = frozenset(("GatherV2", "Gather", "ResourceGather"))
READ = "ReadVariableOp"
AGGREGATES = frozenset(("AddN",))  # Operations that add the gradients of several uses of a variable


@dataclass(frozen=True, slots=True)
class TableSums:
    """The tables of which only sums over all rows are used, besides the rows that were looked up.

    In each step; those of most time first.
    """

    tables: tuple[WholeTable, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Follow what reads each table that the step looks rows up in."""
        lookups: dict[str, list[Operation]] = {}
        for one in dataflow.program.by_name.values():
            if one.type in LOOKUPS and len(one.inputs) > 1 and not GRADIENT.search(one.name):
                read = dataflow.source(one, 0)
                reader = one if one.type == "ResourceGather" else read if read and read.type == READ else None
                if reader and reader.sources:
                    lookups.setdefault(reader.sources[0], []).append(one)
        found = (_summed(handle, gathers, operations, dataflow) for handle, gathers in lookups.items())
        return cls(tuple(sorted(filter(None, found), key=lambda one: -one.ms)))


def _summed(handle: str, gathers: list[Operation], operations: Operations, dataflow: Dataflow) -> WholeTable | None:
    """Return the sums over the variable of a handle; None where something needs all rows, or a shape is open."""
    program = dataflow.program
    reads = [user for user in dataflow.consumers.get(handle, ()) if user.type == READ]
    tensor = next((read.outputs[0][1] for read in reads if read.outputs), None)
    shape, lookups = program.shape(tensor), [program.shape(one.inputs[1][1]) for one in gathers]
    summing = _summing(reads, dataflow)
    if not shape or None in lookups or not summing:
        return None
    connected = _connected(summing, handle, tensor, dataflow)
    own = {one.name for one in summing} | {
        one.name
        for one in connected
        if (GRADIENT.search(one.name) or one.type in AGGREGATES) and one.type != DENSIFIES
    }
    moments = any(_reads_other(one, handle) for one in connected)  # the update needs all rows anyway
    update = set() if moments else {one.name for one in connected} - own
    layer = gathers[0].layer
    made = program.layer_by_name.get(layer)
    penalty = next((one.origin.name for one in summing if one.origin and one.origin.kind == REGULARIZER), None)
    line = next((one.at for one in summing if one.type != READ and one.at), None)
    return WholeTable(
        f"{penalty} penalty" if penalty else "sum of all rows",
        layer or handle,
        made.at if penalty is not None and made and made.at else line,
        shape[0],
        sum(prod(one or ()) for one in lookups),
        _rows(operations, own),
        _rows(operations, update),
    )


def _summing(reads: list[Operation], dataflow: Dataflow) -> list[Operation]:
    """Return the forward operations on all rows that lead to sums; [] where something needs the rows."""
    found: dict[str, Operation] = {}
    for read in reversed(reads):
        own, ahead = dict[str, Operation](), [read]
        while ahead:
            one = ahead.pop()
            own[one.name] = one
            users = () if one.type in SUMS else dataflow.consumers.get(one.name, ())
            forward = [
                user for user in users if user.type not in LOOKUPS | SHAPES and not GRADIENT.search(user.name)
            ]
            passing = SUMS | BROADCASTING | UNARY | PASSING
            if any(user.type not in passing and not UPDATES.fullmatch(user.type) for user in forward):
                return []
            ahead += [user for user in forward if user.name not in own]
        if any(one.type in SUMS for one in own.values()):
            found |= {name: one for name, one in own.items() if name not in found}
    return list(found.values())


def _connected(first: Iterable[Operation], handle: str, shape: Shape | None, dataflow: Dataflow) -> list[Operation]:
    """Return all operations that tensors of the table's shape connect with these, but no lookups."""
    ahead = list(first)
    reached = {one.name: one for one in ahead}
    while ahead:
        one = ahead.pop()
        makes = any(given == shape for _, given in one.outputs) and not _reads_other(one, handle)
        near = list(dataflow.consumers.get(one.name, ())) if makes else []
        for source, (_, given) in zip(one.sources, one.inputs, strict=False):
            maker = dataflow.program.by_name.get(source)
            near += [maker] if given == shape and maker is not None else []
        new = {other.name: other for other in near if other.name not in reached and other.type not in LOOKUPS}
        reached |= new
        ahead += new.values()
    return list(reached.values())


def _reads_other(one: Operation, handle: str) -> bool:
    """Say whether an operation reads another variable: a moment of the optimizer's."""
    return one.type == READ and one.sources != (handle,)


def _rows(operations: Operations, names: set[str]) -> tuple[OperationTime, ...]:
    return tuple(row for row in operations.rows if (row.operation.name if row.operation else row.name) in names)
