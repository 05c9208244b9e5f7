"""Matmuls that multiply the same tensor by weights of one shape, which a single matmul could do."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import MATMULS
from tfdoctor.facts.run.program import Operation, Shape
from tfdoctor.terms.verdict import Location

Key = tuple[str, Shape | None]
"""The name of the operation that makes the tensor, and the shape of the weights."""


@dataclass(frozen=True, slots=True)
class Siblings:
    """Matmuls of one tensor with weights of one shape, and their gradients."""

    source: str
    weights: Shape
    matmuls: tuple[OperationTime, ...]  # forward
    gradients: tuple[OperationTime, ...]

    @property
    def rows(self) -> tuple[OperationTime, ...]:
        """The matmuls and their gradients."""
        return self.matmuls + self.gradients

    @property
    def ms(self) -> float:
        """The time of matmuls and gradients, in ms per step."""
        return sum(row.ms for row in self.rows)

    @property
    def each_ms(self) -> float:
        """The mean time of a call, in ms."""
        return self.ms / sum(row.calls for row in self.rows)

    @property
    def at(self) -> Location | None:
        """The first known user line of the matmuls."""
        return next((row.at for row in self.rows if row.at), None)


@dataclass(frozen=True, slots=True)
class SiblingMatmuls:
    """The groups of two or more, the most expensive first."""

    groups: tuple[Siblings, ...]

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Group the forward matmuls by the operation that makes their first factor.

        Which of several results of one shape is taken is not recorded: an unrolled recurrent layer multiplies one
        time step after another of ``unstack``, which are different tensors.
        """
        groups: dict[Key, list[Operation]] = defaultdict(list)
        for operation in dataflow.program.by_name.values():
            if operation.type in MATMULS and not operation.name.startswith("gradient"):
                source = dataflow.source(operation, 0)
                distinct = source is not None and len(set(source.outputs)) == len(source.outputs)
                if source is not None and distinct and len(operation.inputs) > 1:
                    groups[source.name, operation.inputs[1][1]].append(operation)
        siblings = [
            _siblings(source, weights, members, operations, dataflow)
            for (source, weights), members in groups.items()
            if weights and len(members) > 1
        ]
        ran = [group for group in siblings if len(group.matmuls) > 1]
        return cls(tuple(sorted(ran, key=lambda group: -group.ms)))


def _siblings(
    source: str, weights: Shape, members: list[Operation], operations: Operations, dataflow: Dataflow
) -> Siblings:
    """Join the matmuls to the operations that ran; a matmul may run under the name of its bias or activation."""
    names = {operation.name for operation in members}
    matmuls = tuple(row for row in operations.rows if row.operation is not None and row.operation.name in names)
    gradients = tuple(
        row
        for row in operations.rows
        if row.is_matrix and any(dataflow.is_gradient_of(row.name, member) for member in members)
    )
    return Siblings(source, weights, matmuls, gradients)
