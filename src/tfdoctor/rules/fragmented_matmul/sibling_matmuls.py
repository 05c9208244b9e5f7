"""Matmuls that multiply the same tensor by weights of one shape, which a single matmul could do."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import MATMULS
from tfdoctor.facts.run.program import Operation, Shape


@dataclass(frozen=True, slots=True)
class Siblings(OperationRows):
    """Matmuls of one tensor with weights of one shape, and their gradients."""

    source: str
    weights: Shape
    matmuls: int  # forward
    rows: tuple[OperationTime, ...]  # and their gradients

    @property
    def each_ms(self) -> float:
        """The mean time of a call, in ms."""
        return self.ms / self.calls


@dataclass(frozen=True, slots=True)
class SiblingMatmuls:
    """The groups of two or more, the most expensive first."""

    groups: tuple[Siblings, ...]

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow) -> Self:
        """Group the forward matmuls by the operation that makes their first factor, and the shape of the weights.

        Which of several results of one shape is taken is not recorded: an unrolled recurrent layer multiplies one
        time step after another of ``unstack``, which are different tensors.
        """
        groups: dict[tuple[str, Shape | None], list[Operation]] = defaultdict(list)
        for operation in dataflow.program.by_name.values():
            if operation.type in MATMULS and not operation.name.startswith("gradient"):
                source = dataflow.source(operation, 0)
                distinct = source is not None and len(set(source.outputs)) == len(source.outputs)
                if source is not None and distinct and len(operation.inputs) > 1:
                    groups[source.name, operation.inputs[1][1]].append(operation)
        found = []
        for (source_name, weights), members in groups.items():
            # A matmul may run under the name of its bias or activation.
            names = {one.name for one in members}
            ran = [row for row in operations.rows if row.operation is not None and row.operation.name in names]
            if weights and len(members) > 1 and len(ran) > 1:
                back = (
                    row
                    for row in operations.matrix
                    if any(dataflow.is_gradient_of(row.name, member) for member in members)
                )
                found.append(Siblings(source_name, weights, len(ran), (*ran, *back)))
        return cls(tuple(sorted(found, key=lambda group: -group.ms)))
