from tfdoctor.facts.run.operation_types import DEPTHWISE
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)


# Operations that have a data format: a transposition for them is a layout, not attention's heads.
IMAGES = CONVOLUTIONS | DEPTHWISE | {
    "MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "FusedBatchNormV3", "ResizeBilinear", "ResizeNearestNeighbor",
    "DepthToSpace", "SpaceToDepth",
}  # fmt: skip
# How many operations may lie between a conversion and its image operation: a bias, an activation, a normalization's
# multiplication and addition.
REACH = 4
# Kernels of cuDNN, MIOpen and TensorFlow that convert a tensor's layout, also within other operations.
CONVERTING_KERNEL = re.compile(r"nchwToNhwc|nhwcToNchw|batched_transpose_|SwapDimension")
FORMATTING = "data formatting"  # XLA's category of copies, transposes and reshapes that move a TPU's data


class Conversion(Record, OperationRows):
    """A transposition between the two formats in the forward pass, with its gradient's."""

    operation: Operation
    to_last: bool  # from NCHW to NHWC
    rows: tuple[OperationTime, ...]
    after_image: bool = False  # follows an operation on images, so the data does not dictate it


class Layouts(Record):
    """The user's own conversions in the graph's order; ``unknown`` says why they are unknown.

    ``inside`` has the operations with converting kernels, or on a TPU those that only format data, each with
    the ms per step of converting.
    """

    conversions: tuple[Conversion, ...]
    inside: tuple[tuple[OperationTime, float], ...] = ()
    unknown: str = ""

    @classmethod
    def measure(cls, operations: Operations, dataflow: Dataflow | Unavailable) -> Self:
        """Find the conversions of images that ran in the graph, and the kernels by their names.

        A conversion within reach of another one of images converts images too: a normalization may go back
        and forth several times between two convolutions.
        """
        inside = []
        for row in operations.rows:
            kernels = zip(row.ran, row.ran_ms, strict=False)
            time = sum(ms for name, ms in kernels if CONVERTING_KERNEL.search(name))
            time = row.ms if row.category == FORMATTING else min(time, row.ms)
            if time:
                inside.append((row, time))
        if isinstance(dataflow, Unavailable):
            return cls((), tuple(inside), str(dataflow))
        by_name, users = dataflow.program.by_name, dataflow.consumers
        turned: dict[Operation, bool] = {}  # where only one of the two directions explains the shapes
        for one in dataflow.operations:
            if one.type == "Transpose" and not one.name.startswith("gradient") and one.inputs and one.outputs:
                before, after = one.inputs[0][1] or (), one.outputs[0][1]
                first, last = (*before[:1], *before[-1:], *before[1:-1]), (*before[:1], *before[2:], *before[1:2])
                if len(before) in {4, 5} and (after == last) != (after == first):
                    turned[one] = after == last
        near, images, following = dict[str, set[str]](), set[str](), set[str]()
        for one in turned:
            behind = _near(one, lambda one: (by_name[name] for name in one.sources if name in by_name))
            reached = [*behind, *_near(one, lambda one: users.get(one.name, ()))]
            near[one.name] = {other.name for other in reached}
            following |= {one.name for other in behind if other.type in IMAGES}
            images |= {one.name for other in reached if other.type in IMAGES}
        while more := {name for name in near if name not in images and near[name] & images}:
            images |= more
        found = []
        for one, to_last in turned.items():
            own = (row for row in operations.rows if row.name == one.name or dataflow.is_gradient_of(row.name, one))
            rows = tuple(own)
            if rows and one.name in images:
                found.append(Conversion(one, to_last, rows, one.name in following))
        return cls(tuple(found), tuple(inside))


def _near(operation: Operation, neighbors: Callable[[Operation], Iterable[Operation]]) -> list[Operation]:
    """Return the operations of the forward pass within reach in one direction, up to other transpositions."""
    frontier, reached = [operation], list[Operation]()
    for _ in range(REACH):
        around = [one for operation in frontier for one in neighbors(operation)]
        frontier = [one for one in around if not one.name.startswith("gradient")]
        reached += frontier
        frontier = [one for one in frontier if one.type != "Transpose"]
    return reached


def check(layouts: Layouts, operations: Operations, hardware: Hardware) -> Verdict:
    """Remove the superfluous conversions, and those that the device does inside other operations."""
    # kernels inside a conversion of the model belong to it: it is counted already, or is the first one
    changes, own = layouts.conversions, [row for one in layouts.conversions for row in one.rows]
    inside = [(row, time) for row, time in layouts.inside if row not in own]
    # where the format changes back, all are superfluous but the first one, of the model's input; that as well where
    # an operation on images precedes it: the model was in one format before
    back = len({one.to_last for one in changes}) > 1
    superfluous = changes[0 if changes[0].after_image else 1 :] if back else ()
    rows = [row for conversion in superfluous for row in conversion.rows]
    total_ms = sum(row.ms for row in rows) + sum(time for _, time in inside)
    if not total_ms:
        if why := operations.why_unnamed or layouts.unknown:
            return NotApplicable(reason=why)
        if not changes:
            return Healthy(summary="The step never changes the data format of images")
        number = counted(len(changes), "conversion").capitalize()
        spent = milliseconds(sum(one.ms for one in changes))
        return Healthy(summary=f"{number} of the data format, in one direction only: {spent} per step")
    bound = Bound.EXPECTED if hardware.kind == DeviceKind.CPU else Bound.AT_MOST
    table: list[tuple[Cell, ...]] = [
        (one.operation.layer or one.operation.name, one.rows[0].at or "unknown",
         "to channels last" if one.to_last else "to channels first", ms(one.ms))
        for one in superfluous
    ]  # fmt: skip
    table += [
        (row.layer or row.name, row.at or "unknown", f"inside {row.type}", ms(time))
        for row, time in sorted(inside, key=lambda pair: -pair[1])
    ]
    remedies = []
    if rows:
        at = next((row.at for row in rows if row.at), None)
        remedies.append(Remedy("Use one data format in the whole model", CODE["one-format"], at))
    if inside and hardware.kind == DeviceKind.TPU:
        remedies.append(Remedy("Order dimensions as the next operation needs them", CODE["for-tpu"]))
    elif inside:
        action = "Run convolutions in 16-bit precision with channels-last data"
        remedies.append(Remedy(action, CODE["sixteen-bit"]))
    return spared(
        operations.part(total_ms),
        None,
        "in avoidable layout changes",
        (
            *(row.scaled(0.0, bound) for row in rows),
            *(row.scaled(1.0 - time / row.ms, Bound.AT_MOST) for row, time in inside),
        ),
        finding=f"Changing the layout of tensors takes {milliseconds(total_ms)} per step",
        remedies=remedies,
        shown=[Table(("layer", "your line", "conversion", "time per step"), tuple(table))],
    )
