"""Conversions between NCHW and NHWC, and the step's time in them."""

import re

from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.run.operation_types import CONVOLUTIONS, DEPTHWISE

# Operations that have a data format: a transposition for them is a layout, not attention's heads.
IMAGES = (
    CONVOLUTIONS
    | DEPTHWISE
    | {"MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "FusedBatchNormV3", "ResizeBilinear"}
    | {"ResizeNearestNeighbor", "DepthToSpace", "SpaceToDepth"}
)

# How many operations may lie between a conversion and its image operation: a bias, an activation, a normalization's
# multiplication and addition.
REACH = 4

IMAGE_RANKS = (4, 5)

# Kernels of cuDNN, MIOpen and TensorFlow that convert a tensor's layout, also within other operations.
CONVERTING_KERNEL = re.compile(r"nchwToNhwc|nhwcToNchw|batched_transpose_|SwapDimension")
FORMATTING = "data formatting"  # XLA's category of copies, transposes and reshapes that move a TPU's data


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
            time = row.ms if row.category == FORMATTING else min(time, row.ms)
            if time:
                inside.append((row, time))
        if isinstance(dataflow, Unavailable):
            return cls((), tuple(inside), str(dataflow))
        return cls(tuple(_conversions(operations, dataflow)), tuple(inside))

    @property
    def superfluous(self) -> tuple[Conversion, ...]:
        """All conversions where the format changes back, without the one that a single format needs.

        That is the first one, of the model's input. None is needed where an operation on images precedes
        the first: the model was in one format before it.
        """
        if len({conversion.to_last for conversion in self.conversions}) == 1:
            return ()
        return self.conversions[0 if self.conversions and self.conversions[0].after_image else 1 :]


def _conversions(operations: Operations, dataflow: Dataflow) -> Iterator[Conversion]:
    """Yield the conversions of images that ran, in the graph's order.

    A conversion within reach of another one of images converts images too: a normalization may go back
    and forth several times between two convolutions.
    """
    by_name, users = dataflow.program.by_name, dataflow.consumers
    turned = {
        one: to_last
        for one in dataflow.operations
        if one.type == "Transpose" and not one.name.startswith("gradient")
        if (to_last := _direction(one)) is not None
    }

    def sources(one: Operation) -> list[Operation]:
        return [by_name[name] for name in one.sources if name in by_name]

    behind = {one.name: _near(one, sources) for one in turned}
    near = {one.name: behind[one.name] + _near(one, lambda one: users.get(one.name, ())) for one in turned}
    after = {name for name, reached in behind.items() if any(one.type in IMAGES for one in reached)}
    images = {name for name, reached in near.items() if any(one.type in IMAGES for one in reached)}
    linked = {name: {one.name for one in reached} for name, reached in near.items()}
    while more := {name for name in linked if name not in images and linked[name] & images}:
        images |= more
    for one, to_last in turned.items():
        rows = [row for row in operations.rows if row.name == one.name or dataflow.is_gradient_of(row.name, one)]
        if rows and one.name in images:
            yield Conversion(one, to_last, tuple(rows), one.name in after)


def _direction(operation: Operation) -> bool | None:
    """Say whether it moves the channels last (True) or first (False); None where neither or ambiguous."""
    if not operation.inputs or not operation.outputs:
        return None
    before, after = operation.inputs[0][1], operation.outputs[0][1]
    if before is None or after is None or len(before) not in IMAGE_RANKS:
        return None
    first: Shape = (before[0], before[-1], *before[1:-1])
    last: Shape = (before[0], *before[2:], before[1])
    return after == last if (after == last) != (after == first) else None


def _near(operation: Operation, neighbors: Callable[[Operation], Iterable[Operation]]) -> list[Operation]:
    """Return the operations of the forward pass within reach in one direction, up to other transpositions."""
    frontier, reached = [operation], list[Operation]()
    for _ in range(REACH):
        around = [one for operation in frontier for one in neighbors(operation)]
        frontier = [one for one in around if not one.name.startswith("gradient")]
        reached += frontier
        frontier = [one for one in frontier if one.type != "Transpose"]
    return reached
