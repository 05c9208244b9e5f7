"""Which operations of a step take longer, the longer its sequences are."""

from typing import NamedTuple

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.training_inputs import SequencePadding
from tfdoctor.facts.operations.loop_work import LoopWork

# Smallest number of calls per position of the sequence from which an operation belongs to a loop over time:
# TensorFlow does not record all of the cheap ones.
LOOPED = 0.5
MATRIX = 2  # Dimensions of what a layer makes of batch and time in one: (rows, features)
MOST_DIMENSIONS = 2  # Dimensions of time that a tensor can have: attention's scores have two


class GrowingOperation(NamedTuple):
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
        """Find the operations with a tensor or a loop as long as the longest sequences.

        A layer works on them if one of its tensors has time as a dimension of its own.
        """
        worst, rows = padding.inputs[0], operations.rows
        batch = (program.batch_size if program else None) or worst.batch_size
        least = LOOPED * worst.steps
        inside = [row for loop in (loops.loops if loops else ()) if loop.iterations >= least for row in loop.rows]
        looped = {row.name for row in (*inside, *(row for row in rows if row.calls >= least))}
        built = program.by_name.values() if program else ()
        layers = {one.layer for one in built if _dimensions(one, worst.steps, batch)}
        growing = []
        for row in rows:
            own = _dimensions(row.operation, worst.steps, batch)
            found = own or 1 if own or row.name in looped else _of_layer(row, layers)
            if found != 0:
                growing.append(GrowingOperation(row, 1 if found is None else found, found is not None))
        if not any(entry.known for entry in growing):
            return cls(())
        calls = sum(row.calls for row in rows)
        started = sum(row.calls for row in rows if row.name in looped)
        return cls(tuple(growing), started / calls if calls else 0.0)


def _of_layer(row: OperationTime, layers: set[str]) -> int | None:
    """Return the dimensions of an operation whose shapes show none, by its layer; None is unknown."""
    tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
    layer = row.layer or (row.operation.layer if row.operation else "")
    if not tensors or any(dtype == "variant" or shape is None for dtype, shape in tensors):
        return None  # a TensorList has an element for each position
    if not any(shape and shape[0] is None for _, shape in tensors):
        return 0
    if layer:
        return 1 if layer in layers else 0
    return None if any(len(shape) == MATRIX for _, shape in tensors if shape) else 0


def _dimensions(operation: Operation | None, steps: int, batch: int | None) -> int:
    """Count the dimensions of one tensor that are as long as the sequences, or open and not the batch's."""

    def of_tensor(shape: Shape) -> int:
        flat = batch is not None and shape[0] == batch * steps
        first = shape[0] == steps and shape[1:2] in {(None,), (batch,)}  # time-major
        long = sum(size is None or size == steps for size in shape[1:])
        return min(MOST_DIMENSIONS, long + (flat or (first and shape[1] is not None)))

    tensors = (*operation.inputs, *operation.outputs) if operation else ()
    return max((of_tensor(shape) for _, shape in tensors if shape), default=0)
