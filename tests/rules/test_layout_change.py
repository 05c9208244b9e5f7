"""layout-change: conversions in both directions around operations on images."""

from tests.rules.kit import *
from tfdoctor.rules.operations import layout_change
from tfdoctor.rules.operations.layout_change import Conversion, Layouts

CPU, GPU, TPU = (Hardware(kind, "x") for kind in DeviceKind)
FIRST: Any = ["float32", [16, 8, 64, 32]]
LAST: Any = ["float32", [16, 64, 32, 8]]
GRADIENT = took("gradient_tape/conv/d", "Conv2DBackpropFilter", 30.0)
THERE = ("there", "Transpose", FIRST, LAST), ("image", "Conv2D", LAST, LAST)


def example(*, back: bool = True) -> Verdict:
    """The model transposes to channels last for a convolution, and back."""
    conversions = []
    for layer, to_last in [("permute", True), *([("permute_1", False)] if back else [])]:
        name, at = f"model/{layer}/transpose", script(8)
        graph = Operation(name=name, type="Transpose", layer=layer)
        row = took(name, "Transpose", 2.0, layer=layer, at=at, operation=graph)
        conversions.append(Conversion(graph, to_last, (row,)))
    rows = [row for conversion in conversions for row in conversion.rows]
    operations = training_step(30.0 + 2.0 * len(rows), *rows)
    return layout_change.check(Layouts(tuple(conversions)), operations, Hardware(DeviceKind.CPU, "example"))


def graph(*rows: tuple[str, str, Any, Any]) -> Program:
    """Operations of (name, type, what it is given, what it makes), each on the result of the one before."""
    made = (
        graph_operation(name, kind, [given], [result], **{"from": [at - 1 if at else None]})
        for at, (name, kind, given, result) in enumerate(rows)
    )
    return program_of(*made)


def there_and_back(image: str = "Conv2D", between: int = 0) -> Program:
    """Channels last for an operation, then first, ``between`` operations behind it."""
    relus = ((f"relu{n}", "Relu", LAST, LAST) for n in range(between))
    return graph(*THERE[:1], ("image", image, LAST, LAST), *relus, ("back", "Transpose", LAST, FIRST))


def check(program: Program, *rows: OperationTime, hardware: Hardware = CPU) -> Verdict:
    ran = all_ran(program, 2.0)
    return Chart([program, Operations((*ran, *rows)), hardware]).call(layout_change.check)


sick = example
healthy = described("The model converts its input once.", example, back=False)


@golden_cases
def test_verdicts(told: Cases) -> None:
    told["all conversions but the first are removed"] = check(there_and_back(), GRADIENT)
    there, back = (took(f"gradient_tape/{name}/transpose", "Transpose", 3.0) for name in ("there", "back"))
    told["their gradients go with them"] = check(there_and_back(), back, there, GRADIENT)
    program = graph(
        ("conv", "Conv2D", LAST, LAST),
        ("first", "Transpose", LAST, FIRST),
        ("sub", "Sub", FIRST, FIRST),
        ("second", "Transpose", FIRST, LAST),
        ("mul", "Mul", LAST, LAST),
        ("third", "Transpose", LAST, FIRST),
        ("mul_1", "Mul", FIRST, FIRST),
        ("fourth", "Transpose", FIRST, LAST),
        ("conv_1", "Conv2D", LAST, LAST),
    )
    told["a normalization between convolutions goes back and forth twice"] = check(program, GRADIENT)
    told["one direction alone"] = check(graph(*THERE), GRADIENT)
    for kind in ("BatchMatMulV2", "Einsum", "Softmax"):
        told[f"the heads of attention are no layout: {kind}"] = check(there_and_back(kind), GRADIENT)
    told["three operations may lie between, and four may not"] = check(there_and_back(between=3), GRADIENT)
    told[...] = check(there_and_back(between=4), GRADIENT)
    turned: Any = ["float32", [16, 32, 64, 8]]
    cube: Any = ["float32", [16, 8, 8, 8]]
    for name, outer, inner in (("height and width change places", LAST, turned), ("a cube shows none", cube, cube)):
        rows = ("a", "Transpose", outer, inner), ("conv", "Conv2D", inner, inner), ("b", "Transpose", inner, outer)
        told[f"no change of the format: {name}"] = check(graph(*rows), GRADIENT)
    alone = program_of(graph_operation("there", "Transpose", [FIRST], [LAST]))
    told["a record without edges"] = check(alone, GRADIENT)


@golden_cases
def test_accelerators(told: Cases) -> None:
    kernels: dict[str, Any] = {"ran": ("void nchwToNhwcKernel<half>", "volta_h884cudnn"), "ran_ms": (2.5, 7.5)}
    conv = took("conv", "Conv2D", 10.0, **kernels)
    told["kernels that convert in a convolution"] = check(there_and_back("Softmax"), conv, GRADIENT, hardware=GPU)
    copy = took("copy.3", "x", 4.0, category="data formatting")
    told["XLA's data formatting is a ceiling"] = check(there_and_back("Softmax"), copy, GRADIENT, hardware=TPU)
    program = there_and_back()
    rows = (
        replace(row, ran=("SwapDimension1And2",), ran_ms=(2.0,))
        for row in all_ran(program, 2.0)
        if row.type == "Transpose"
    )
    ran = Chart([program, Operations((*rows, GRADIENT)), GPU])
    told["a removed operation is not counted again for its kernels"] = ran.call(layout_change.check)
    (there, _) = all_ran(graph(*THERE), 2.0)
    for name, hardware, more in (
        ("a kernel", GPU, {"ran": ("SwapDimension1And2InTensor3UsingTiles",), "ran_ms": (2.0,)}),
        ("data formatting", TPU, {"category": "data formatting"}),
    ):
        ran = Chart([graph(*THERE), Operations((replace(there, **more), GRADIENT)), hardware])
        told[f"the first conversion stays if {name} runs it"] = ran.call(layout_change.check)
