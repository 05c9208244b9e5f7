"""Tensors that the forward pass repeats in memory for operations that broadcast by themselves."""

from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import BROADCASTING, REPEATS, UNARY
from tfdoctor.facts.run.program import Operation, Program


@dataclass(frozen=True, slots=True)
class Broadcast(OperationRows):
    """A repetition with its gradient, and the ``chain`` of operations that recompute each repeated value.

    ``rows`` is empty where an operation needs the repeated tensor itself.
    """

    row: OperationTime
    times: float  # the size of its result over that of its input
    rows: tuple[OperationTime, ...]
    chain: tuple[OperationTime, ...] = ()  # forward and backward

    @property
    def chain_ms(self) -> float:
        """The time that the chain would save before the repetition, in ms per step."""
        return sum(row.ms for row in self.chain) * (1.0 - 1.0 / self.times)


@dataclass(frozen=True, slots=True)
class Broadcasts:
    """The forward pass' needless repetitions, and those that precede operations that could precede them."""

    rows: tuple[Broadcast, ...]

    @classmethod
    def measure(cls, operations: Operations, program: Program, dataflow: Dataflow) -> Self:
        """Follow each repetition to the operations that use it."""
        rows, found = operations.rows, []
        for row in (row for row in rows if row.type in REPEATS):
            forward = row.operation
            times = _times(forward, program) if forward else None
            if not forward or not times or forward.name.startswith("gradient"):
                continue
            names = [forward.name]  # and the unary operations that follow it, forward and backward
            for name in names:
                users = dataflow.consumers.get(name, ())
                names += [user.name for user in users if user.type in UNARY and user.name not in names]
            others = [
                user
                for name in names
                for user in dataflow.consumers.get(name, ())
                if user.name not in names and not user.name.startswith("gradient")
            ]
            needless = bool(others) and all(user.type in BROADCASTING for user in others)
            own = [one for one in rows if dataflow.is_gradient_of(one.name, forward) or one is row]
            chain = [one for one in rows if one.operation and one.operation.name in names[1:]]
            if needless or chain:
                found.append(Broadcast(row, times, tuple(own if needless else ()), tuple(chain)))
        return cls(tuple(found))


def _times(operation: Operation, program: Program) -> float | None:
    """Return how many times as large the result is; None when a shape is not known, or ranks differ."""
    if not operation.inputs or not operation.outputs:
        return None
    before, after = program.shape(operation.inputs[0][1]), program.shape(operation.outputs[0][1])
    if before is None or after is None or not prod(before):
        return None
    # Only dimensions of size 1 can be left to broadcasting: 2 repeated to 4 cannot.
    padded = (1,) * (len(after) - len(before)) + before
    broadcasts = all(old in (1, new) for old, new in zip(padded, after, strict=True))
    return prod(after) / prod(before) if broadcasts else None
