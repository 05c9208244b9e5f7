"""Conversions between NCHW and NHWC, and the step's time in them."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.dataflow import Dataflow
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
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
class Conversion(OperationRows):
    """A transposition between the two formats in the forward pass, with its gradient's."""

    operation: Operation
    to_last: bool  # from NCHW to NHWC
    rows: tuple[OperationTime, ...]
    after_image: bool = False  # follows an operation on images, so the data does not dictate it


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
        inside = []
        for row in operations.rows:
            kernels = zip(row.ran, row.ran_ms, strict=False)
            time = sum(ms for name, ms in kernels if CONVERTING_KERNEL.search(name))
            if row.category == FORMATTING:
                time = row.ms
            if time:
                inside.append((row, min(time, row.ms)))
        if isinstance(dataflow, Unavailable):
            return cls((), tuple(inside), str(dataflow))
        return cls(tuple(_conversions(operations, dataflow)), tuple(inside))

    @property
    def superfluous(self) -> tuple[Conversion, ...]:
        """All conversions where the format changes back, without the one that a single format needs.

        That is the first one, of the model's input. None is needed where an operation on images precedes
        the first: the model was in one format before it.
        """
        kinds = {conversion.to_last for conversion in self.conversions}
        if len(kinds) < len((True, False)):
            return ()
        return self.conversions if self.conversions[0].after_image else self.conversions[1:]


def _conversions(operations: Operations, dataflow: Dataflow) -> Iterator[Conversion]:
    """Yield the conversions that ran, in the graph's order."""
    directions = {
        operation.name: to_last
        for operation in dataflow.program.by_name.values()
        if operation.type == "Transpose" and not operation.name.startswith("gradient")
        if (to_last := _direction(operation)) is not None
    }
    after, images = _of_images(directions, dataflow)
    for name, to_last in directions.items():
        operation = dataflow.program.by_name[name]
        rows = tuple(
            row for row in operations.rows if row.name == name or dataflow.is_gradient_of(row.name, operation)
        )
        if rows and name in images:
            yield Conversion(operation, to_last, rows, name in after)


def _of_images(names: Iterable[str], dataflow: Dataflow) -> tuple[set[str], set[str]]:
    """Return the conversions behind an image operation, and all conversions of images.

    A conversion within reach of another one of images converts images too: a normalization may go back
    and forth several times between two convolutions.
    """
    by_name, users = dataflow.program.by_name, dataflow.consumers

    def sources(operation: Operation) -> list[Operation]:
        return [by_name[name] for name in operation.sources if name in by_name]

    behind = {name: _near(by_name[name], sources) for name in names}
    ahead = {name: _near(by_name[name], lambda one: users.get(one.name, ())) for name in names}
    after = {name for name, reached in behind.items() if _has_image(reached)}
    images = after | {name for name, reached in ahead.items() if _has_image(reached)}
    linked = {name: {row.name for row in (*behind[name], *ahead[name])} for name in behind}
    while more := {name for name in linked if name not in images and linked[name] & images}:
        images |= more
    return after, images


def _has_image(reached: Iterable[Operation]) -> bool:
    return any(operation.type in IMAGES for operation in reached)


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


def _near(operation: Operation, neighbors: Callable[[Operation], Iterable[Operation]]) -> list[Operation]:
    """Return the operations of the forward pass within reach in one direction, up to other transpositions."""
    frontier, reached = [operation], list[Operation]()
    for _ in range(REACH):
        frontier = [
            neighbor
            for operation in frontier
            for neighbor in neighbors(operation)
            if not neighbor.name.startswith("gradient")
        ]
        reached += frontier
        frontier = [neighbor for neighbor in frontier if neighbor.type != "Transpose"]
    return reached
