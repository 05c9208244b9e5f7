"""The operations that a step has once more for each replica, and those that combine the gradients."""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.step_parts import is_small
from tfdoctor.facts.run.program import Program

# The scope of a replica beyond the first (TensorFlow, distribute/mirrored_run.py).
COPY = re.compile(r"(?:^|/)replica_[1-9]\d*/")
# The scope in which the variables of such a replica are updated (distribute/mirrored_strategy.py).
UPDATE = re.compile(r"(?:^|/)update_[1-9]\d*(?:_\d+)?/")
COLLECTIVE = "Collective"  # How the types of operations begin that replicas exchange tensors by
# Largest number of values in an operation that a batch of several replicas hardly slows; as in small-batch.
VALUES = 10_000
EACH_MS = 0.02  # Longest call of such an operation where its tensors are unknown; as in small-batch


@dataclass(frozen=True, slots=True)
class CopiedWork:
    """What the replicas beyond the first compute, and the packing around the exchange.

    ``fixed`` takes hardly longer for one replica with the whole batch, ``growing`` does: one replica takes over
    the work of these. ``updates`` change the variables of a replica, whatever its batch.
    """

    fixed: tuple[OperationTime, ...] = ()
    growing: tuple[OperationTime, ...] = ()
    updates: tuple[OperationTime, ...] = ()
    packing: tuple[OperationTime, ...] = ()

    @classmethod
    def measure(cls, operations: Operations, program: Program) -> Self:
        """Sort the operations by the scopes that TensorFlow gives to replicas."""
        copies = [row for row in operations.rows if COPY.search(row.name)]
        if not copies:
            raise Unavailable("the trace names no operation of a second replica")
        fixed = tuple(row for row in copies if is_small(row, VALUES, EACH_MS))
        known = {one.name: one for one in program.training}
        exchange = {one.name for one in known.values() if one.type.startswith(COLLECTIVE)}
        around = {source for name in exchange for source in known[name].sources}  # what makes its operands
        around |= {one.name for one in known.values() if exchange.intersection(one.sources)}  # what takes it apart
        return cls(
            fixed,
            tuple(row for row in copies if row not in fixed),
            tuple(row for row in operations.rows if UPDATE.search(row.name)),
            tuple(row for row in operations.rows if row.name in around - exchange),
        )

    @property
    def spared(self) -> tuple[OperationTime, ...]:
        """The operations that a single replica does without."""
        return (*self.fixed, *self.updates, *self.packing)

    @property
    def fixed_share(self) -> float:
        """The share of the copies' time that does not grow with the batch, 0 to 1."""
        fixed, growing = (sum(row.ms for row in rows) for rows in (self.fixed, self.growing))
        return fixed / (fixed + growing) if fixed + growing else 0.0
