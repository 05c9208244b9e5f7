"""Which operations of a step take longer, the longer its sequences are."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.sequence_padding import SequencePadding
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program, Shape

LOOPED = 0.5
"""Smallest number of calls per position of the sequence from which an operation belongs to a loop over time:
TensorFlow does not record all of the cheap ones."""

MATRIX = 2
"""Dimensions of what a layer makes of batch and time in one: (rows, features)."""

MOST_DIMENSIONS = 2
"""Dimensions of time that a tensor can have: attention's scores have two."""


@dataclass(frozen=True, slots=True)
class GrowingOperation:
    """An operation whose time grows with the length of sequences.

    ``dimensions`` of one of its tensors are as long: 2 for attention's scores. ``known`` says whether a recorded
    shape or a loop shows it; else nothing about its length was recorded, and it counts as one dimension.
    """

    row: OperationTime
    dimensions: int
    known: bool


@dataclass(frozen=True, slots=True)
class LengthWork:
    """The operations that grow with the length; ``started`` is the share of all calls that loops over time make."""

    growing: tuple[GrowingOperation, ...]
    started: float = 0.0  # 0 to 1

    @classmethod
    def measure(
        cls, padding: SequencePadding, operations: Operations, loops: LoopWork | None, program: Program | None
    ) -> Self:
        """Find the operations with a tensor or a loop as long as the longest sequences."""
        worst = padding.inputs[0]
        batch = (program.batch_size if program else None) or worst.batch_size
        lengths = Lengths.of(worst.steps, batch, operations, loops, program)
        found = [(row, lengths.dimensions(row)) for row in operations.rows]
        growing = tuple(
            GrowingOperation(row, 1 if dimensions is None else dimensions, dimensions is not None)
            for row, dimensions in found
            if dimensions != 0
        )
        if not any(entry.known for entry in growing):
            return cls(())
        calls = sum(row.calls for row in operations.rows)
        looped = sum(row.calls for row in operations.rows if row.name in lengths.looped)
        return cls(growing, looped / calls if calls else 0.0)

    @property
    def unknown_ms(self) -> float:
        """The time per step of the operations that grow for all that is known."""
        return sum(entry.row.ms for entry in self.growing if not entry.known)

    @property
    def known_ms(self) -> float:
        """The time per step of the operations that are seen to grow."""
        return sum(entry.row.ms for entry in self.growing if entry.known)


@dataclass(frozen=True, slots=True)
class Lengths:
    """What tells that a dimension is as long as the sequences: ``steps`` positions of ``batch`` examples."""

    steps: int
    batch: int | None
    layers: frozenset[str]  # those with a tensor that has time as a dimension of its own
    looped: frozenset[str]  # the operations of loops over time

    @classmethod
    def of(
        cls, steps: int, batch: int | None, operations: Operations, loops: LoopWork | None, program: Program | None
    ) -> Self:
        """Find the loops that iterate over the positions of a sequence, and the layers that work on them."""
        least = LOOPED * steps
        rows = [row for row in operations.rows if row.calls >= least]
        for loop in loops.loops if loops else ():
            rows += loop.rows if loop.iterations >= least else ()
        alone = cls(steps, batch, frozenset(), frozenset(row.name for row in rows))
        built = program.by_name.values() if program else ()
        layers = {one.layer for one in built if one.layer and alone.has_time(one)}
        return cls(steps, batch, frozenset(layers), alone.looped)

    def dimensions(self, row: OperationTime) -> int | None:
        """Return how many dimensions of one tensor are as long as the sequences; None is unknown."""
        tensors = _tensors(row.operation)
        found = max((self._of_tensor(shape) for _, shape in tensors if shape), default=0)
        if found or row.name in self.looped:
            return found or 1
        layer = row.layer or (row.operation.layer if row.operation else "")
        if not tensors or any(dtype == "variant" or shape is None for dtype, shape in tensors):
            return None  # a TensorList has an element for each position
        open_rows = any(shape and shape[0] is None for _, shape in tensors)
        if not open_rows:
            return 0
        if layer:
            return 1 if layer in self.layers else 0
        return None if any(len(shape) == MATRIX for _, shape in tensors if shape) else 0

    def has_time(self, operation: Operation) -> bool:
        """Say whether a tensor of an operation has time as a dimension of its own."""
        return any(self._of_tensor(shape) for _, shape in _tensors(operation) if shape)

    def _of_tensor(self, shape: Shape) -> int:
        """Count the dimensions that are as long as the sequences, or open and not the batch's."""
        flat = self.batch is not None and shape[0] == self.batch * self.steps
        first = shape[0] == self.steps and shape[1:2] in {(None,), (self.batch,)}  # time-major
        long = sum(size is None or size == self.steps for size in shape[1:])
        return min(MOST_DIMENSIONS, long + (flat or (first and shape[1] is not None)))


def _tensors(operation: Operation | None) -> tuple[tuple[str, Shape | None], ...]:
    return (*operation.inputs, *operation.outputs) if operation else ()
