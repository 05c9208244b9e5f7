"""The optimizer's operations, and how many variables they update."""

import re
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import FUSED_UPDATES, UPDATES

# The name scopes of Keras' optimizers, numbered from the second on ("adam_1").
OPTIMIZERS = frozenset(
    ["adam", "adamw", "adamax", "adagrad", "adadelta", "rmsprop", "nadam", "ftrl", "lion", "lamb", "sgd", "muon",
     "adafactor", "optimizer", "loss_scale_optimizer"]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OptimizerWork(OperationRows):
    """The optimizer's operations; ``updates`` are those of variables, moments among them."""

    rows: tuple[OperationTime, ...]
    updates: float  # per step

    @classmethod
    def measure(cls, operations: Operations) -> Self:
        """Find the operations by the optimizer's name scope, fused updates by their type."""
        rows = []
        for row in operations.rows:
            scopes = {re.sub(r"_\d+$", "", part).lower() for part in row.name.split("/")[:-1]}
            if scopes & OPTIMIZERS or FUSED_UPDATES.fullmatch(row.type):
                rows.append(row)
        return cls(tuple(rows), sum(row.calls for row in rows if UPDATES.fullmatch(row.type)))

    def others(self, operations: Operations) -> tuple[OperationTime, ...]:
        """Return the operations of the same step that are not the optimizer's.

        Rows are known by identity: to compare each of thousands with all of these takes half a minute.
        """
        own = frozenset(map(id, self.rows))
        return tuple(row for row in operations.rows if id(row) not in own)


def is_small(row: OperationTime, values: float, each_ms: float) -> bool:
    """Say whether an operation works on at most ``values``, or where unknown takes at most ``each_ms`` a call."""
    tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
    shapes = [shape for _, shape in tensors if shape is not None and None not in shape]
    largest = max((prod(size or 0 for size in shape) for shape in shapes), default=None)
    return row.ms <= each_ms * row.calls if largest is None else largest <= values
