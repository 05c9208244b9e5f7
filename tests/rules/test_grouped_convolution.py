"""grouped-convolution: both sides of its limits, and groups that are told by shapes."""

from tests.rules.kit import *
from tfdoctor.rules.operations.grouped_convolution import GroupedConvolutions, check, groups_of

IMAGES, KERNEL, SIZES = (("float32", (8, 16, 16, 64)), ("float32", (3, 3, 16, 128)), ("int32", (4,)))
OUT = ("float32", (8, 16, 16, 128))
FIRST = ("float32", (8, 64, 16, 16))


def convolution(layer: str, groups: int, time_ms: float) -> OperationTime:
    """Build a 3 x 3 convolution of 128 channels."""
    images, kernel = (32, 56, 56, 128), (3, 3, 128 // groups, 128)
    graph = Operation(
        name=f"{layer}/convolution", type="Conv2D",
        inputs=(("float32", images), ("float32", kernel)), outputs=(("float32", images),),
    )  # fmt: skip
    return OperationTime(
        name=graph.name, type=graph.type, ms=time_ms, layer=layer, at=script(9),
        operation=graph, flops=2.0 * 32 * 56 * 56 * 128 * 9 * 128 / groups,
    )  # fmt: skip


def example(
    groups: int = 8, grouped_ms: float = 10.0, regular_ms: float = 10.0, total_ms: float = 30.0,
    peak_flop_s: float | None = None,
) -> Verdict:  # fmt: skip
    """A convolution in 8 groups takes as long as a regular one of the same size."""
    grouped = convolution("conv2d_1", groups, grouped_ms)
    operations = training_step(total_ms, grouped, convolution("conv2d", 1, regular_ms), rest="ReluGrad")
    hardware = Hardware(DeviceKind.GPU, "example", peak_flop_s=peak_flop_s)
    return check(GroupedConvolutions.measure(operations), operations, hardware)


def applied_to(kind: DeviceKind, *rows: OperationTime) -> Verdict:
    operations = training_step(30.0, *rows, rest="ReluGrad")
    return applied(check, GroupedConvolutions.measure(operations), operations, Hardware(kind, "x"))


def row(kind: str, inputs: Any, outputs: Any, **attrs: Any) -> OperationTime:
    graph = Operation(name="c", type=kind, inputs=inputs, outputs=outputs, attrs=Attributes(**attrs))
    return took("c", kind, 1.0, operation=graph)


sick = example
healthy = described("The grouped convolution takes an eighth of the time.", example, grouped_ms=1.25)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["what is left is the time at the regular rate, of 2.96 TFLOP/s, or at a peak that is higher"] = [
        example(peak_flop_s=peak) for peak in (None, 1e12, 1e13)
    ]
    told["twice the time of the regular rate, and less"] = example(grouped_ms=2.51), example(grouped_ms=2.49)
    told["a twentieth of the step, and less"] = example(total_ms=199.0), example(total_ms=201.0)
    told["no groups"] = example(groups=1)
    told["a regular one that takes as long as its launch sets no rate"] = example(regular_ms=0.04)
    told["without a regular one"] = applied_to(DeviceKind.GPU, convolution("a", 8, 10.0))
    told["a CPU's groups"] = applied_to(DeviceKind.CPU, convolution("a", 8, 10.0), convolution("b", 1, 10.0))
    told["the forward pass and both gradients have the same groups"] = [
        groups_of(of)
        for of in (
            row("Conv2D", (IMAGES, KERNEL), (OUT,)),
            row("Conv2DBackpropFilter", (IMAGES, SIZES, OUT), (KERNEL,)),
            row("Conv2DBackpropFilterV2", (IMAGES, KERNEL, OUT), (KERNEL,)),
            row("Conv2DBackpropInput", (SIZES, KERNEL, OUT), (IMAGES,)),
            row("Conv2DBackpropInputV2", (IMAGES, KERNEL, OUT), (IMAGES,)),
            row("Conv2D", (FIRST, KERNEL), (OUT,), data_format="NCHW"),
        )
    ]
    told["channels that are unknown, or that groups do not divide"] = [
        groups_of(row("Conv2D", (("float32", (8, 16, 16, channels)), KERNEL), (OUT,))) for channels in (None, 60)
    ]
    told["convolutions without shapes"] = lambda: GroupedConvolutions.measure(Operations((row("Conv2D", (), ()),)))
    rows = (convolution("a", 8, 1.0), convolution("b", 1, 2.0), convolution("c", 1, 4.0))
    found = GroupedConvolutions.measure(Operations(rows))
    told["the fastest regular convolution sets the rate"] = found.groups, found.regular_flop_s
