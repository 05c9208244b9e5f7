"""Conversions between NCHW and NHWC, and the step's time in them."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import CONVOLUTIONS, DEPTHWISE
from tfdoctor.facts.run.program import Operation, Shape

IMAGES = (
    CONVOLUTIONS
    | DEPTHWISE
    | {"MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "FusedBatchNormV3", "ResizeBilinear"}
    | {"ResizeNearestNeighbor", "DepthToSpace", "SpaceToDepth"}
)
"""Operations that have a data format: a transposition for them is a layout, not attention's heads."""

REACH = 4
"""How many operations may lie between a conversion and its image operation: a bias, an activation, a
normalization's multiplication and addition."""

IMAGE_RANKS = (4, 5)

CONVERTING_KERNEL = re.compile(r"nchwToNhwc|nhwcToNchw|batched_transpose_|SwapDimension")
"""Kernels of cuDNN, MIOpen and TensorFlow that convert a tensor's layout, also within other operations."""

FORMATTING = "data formatting"
"""XLA's category of copies, transposes and reshapes that move a TPU's data."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A transposition between the two formats in the forward pass, with its gradient's."""

    operation: Operation
    to_last: bool  # from NCHW to NHWC
    rows: tuple[OperationTime, ...]

    @property
    def ms(self) -> float:
        """The time of the conversion forward and backward, in ms per step."""
        return sum(row.ms for row in self.rows)


@dataclass(frozen=True, slots=True)
class Layouts:
    """The user's own conversions in the graph's order; ``unknown`` says why they are unknown.

    ``inside`` has the operations with converting kernels, or on a TPU those that only format data, each with
    the ms per step of converting.
    """

    conversions: tuple[Conversion, ...]
    inside: tuple[tuple[OperationTime, float], ...] = ()
    unknown: str = ""

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow | Unavailable) -> Self:
        """Find the conversions in the graph, and the kernels by their names."""
        inside = tuple(_inside(operations.rows))
        if isinstance(dataflow, Unavailable):
            return cls((), inside, str(dataflow))
        return cls(tuple(_conversions(operations, dataflow)), inside)

    @property
    def superfluous(self) -> tuple[Conversion, ...]:
        """All conversions but the first, where the format changes back: a single format needs one at most."""
        kinds = {conversion.to_last for conversion in self.conversions}
        return self.conversions[1:] if len(kinds) == len((True, False)) else ()


def _inside(rows: Iterable[OperationTime]) -> Iterator[tuple[OperationTime, float]]:
    for row in rows:
        kernels = zip(row.ran, row.ran_ms, strict=False)
        time = sum(ms for name, ms in kernels if CONVERTING_KERNEL.search(name))
        if row.category == FORMATTING:
            time = row.ms
        if time:
            yield row, min(time, row.ms)


def _conversions(operations: Operations, dataflow: Dataflow) -> Iterator[Conversion]:
    for operation in dataflow.program.by_name.values():
        if operation.type != "Transpose" or operation.name.startswith("gradient"):
            continue
        to_last = _direction(operation)
        if to_last is None or not _for_images(operation, dataflow):
            continue
        rows = tuple(
            row
            for row in operations.rows
            if row.name == operation.name or dataflow.is_gradient_of(row.name, operation)
        )
        if rows:
            yield Conversion(operation, to_last, rows)


def _direction(operation: Operation) -> bool | None:
    """Say whether it moves the channels last (True) or first (False); None where neither or ambiguous."""
    if not operation.inputs or not operation.outputs:
        return None
    before, after = operation.inputs[0][1], operation.outputs[0][1]
    if before is None or after is None or len(before) not in IMAGE_RANKS:
        return None
    to_last = after == _turned(before, 1, len(before) - 1)
    to_first = after == _turned(before, len(before) - 1, 1)
    return to_last if to_last != to_first else None


def _turned(shape: Shape, taken: int, put: int) -> Shape:
    rest = [size for at, size in enumerate(shape) if at != taken]
    return (*rest[:put], shape[taken], *rest[put:])


def _for_images(operation: Operation, dataflow: Dataflow) -> bool:
    """Say whether an image operation follows or precedes it within reach."""
    by_name = dataflow.program.by_name
    return _near(operation, lambda user: dataflow.consumers.get(user.name, ())) or _near(
        operation, lambda user: [by_name[name] for name in user.sources if name in by_name]
    )


def _near(operation: Operation, neighbors: Callable[[Operation], Iterable[Operation]]) -> bool:
    """Say whether an image operation of the forward pass lies within reach in one direction."""
    frontier = [operation]
    for _ in range(REACH):
        frontier = [
            neighbor
            for operation in frontier
            for neighbor in neighbors(operation)
            if neighbor.type != "Transpose" and not neighbor.name.startswith("gradient")
        ]
        if any(neighbor.type in IMAGES for neighbor in frontier):
            return True
    return False
