"""The cases of grouped-convolution: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.grouped_convolution import GroupedConvolutions, check


def convolution(layer: str, groups: int, time_ms: float) -> OperationTime:
    """Build a 3 x 3 convolution of 128 channels."""
    images, kernel = (32, 56, 56, 128), (3, 3, 128 // groups, 128)
    graph = Operation(
        name=f"{layer}/convolution", type="Conv2D",
        inputs=(("float32", images), ("float32", kernel)), outputs=(("float32", images),),
    )  # fmt: skip
    return OperationTime(
        name=graph.name, type=graph.type, ms=time_ms, layer=layer, at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 56 * 56 * 128 * 9 * 128 / groups,
    )  # fmt: skip


def example(
    groups: int = 8,
    grouped_ms: float = 10.0,
    regular_ms: float = 10.0,
    total_ms: float = 30.0,
    peak_flop_s: float | None = None,
) -> Verdict:
    """A convolution in 8 groups takes as long as a regular one of the same size."""
    grouped = convolution("conv2d_1", groups, grouped_ms)
    operations = Operations.training(total_ms, grouped, convolution("conv2d", 1, regular_ms), rest="ReluGrad")
    hardware = Hardware(DeviceKind.GPU, "example", peak_flop_s=peak_flop_s)
    return check(GroupedConvolutions.measure(operations), operations, hardware)


sick = example


def healthy() -> Verdict:
    """The grouped convolution takes an eighth of the time."""
    return example(grouped_ms=1.25)
