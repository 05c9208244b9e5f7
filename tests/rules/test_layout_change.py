"""layout-change: conversions in both directions around operations on images."""

from tests.rules.kit import *
from tfdoctor.rules.operations import layout_change
from tfdoctor.rules.operations.layout_change import Conversion, Layouts


def example(*, back: bool = True) -> Verdict:
    """The model transposes to channels last for a convolution, and back."""
    conversions = []
    for layer, to_last in [("permute", True), *([("permute_1", False)] if back else [])]:
        name, at = f"model/{layer}/transpose", Location("train.py", 8)
        graph = Operation(name=name, type="Transpose", layer=layer)
        row = OperationTime(name=name, type="Transpose", ms=2.0, layer=layer, at=at, operation=graph)
        conversions.append(Conversion(graph, to_last, (row,)))
    rows = [row for conversion in conversions for row in conversion.rows]
    operations = Operations.training(30.0 + 2.0 * len(rows), *rows)
    return layout_change.check(Layouts(tuple(conversions)), operations, Hardware(DeviceKind.CPU, "example"))


sick = example


def healthy() -> Verdict:
    """The model converts its input once."""
    return example(back=False)


CPU, GPU, TPU = (Hardware(kind, "x") for kind in DeviceKind)
FIRST: Any = ["float32", [16, 8, 64, 32]]
LAST: Any = ["float32", [16, 64, 32, 8]]
GRADIENT = OperationTime(name="gradient_tape/conv/d", type="Conv2DBackpropFilter", ms=30.0)
THERE = ("there", "Transpose", FIRST, LAST), ("image", "Conv2D", LAST, LAST)


def graph(*rows: tuple[str, str, Any, Any]) -> Program:
    """Operations of (name, type, what it is given, what it makes), each on the result of the one before."""
    return program_of(
        *(
            graph_operation(name, kind, [given], [made], **{"from": [at - 1 if at else None]})
            for at, (name, kind, given, made) in enumerate(rows)
        )
    )


def there_and_back(image: str = "Conv2D", between: int = 0) -> Program:
    """Channels last for an operation, then first, ``between`` operations behind it."""
    relus = ((f"relu{n}", "Relu", LAST, LAST) for n in range(between))
    return graph(*THERE[:1], ("image", image, LAST, LAST), *relus, ("back", "Transpose", LAST, FIRST))


def check(program: Program, *rows: OperationTime, hardware: Hardware = CPU) -> Verdict:
    ran = all_ran(program, 2.0)
    return Chart([program, Operations((*ran, *rows)), hardware]).call(layout_change.check)


def removed(verdict: Verdict) -> set[str]:
    assert set(scales(verdict).values()) == {0.0}
    return {*scales(verdict)}


def test_all_conversions_but_the_first_are_removed() -> None:
    finding = check(there_and_back(), GRADIENT)
    assert removed(finding) == {"back"}
    assert effects(finding)[0][3] is Bound.EXPECTED


def test_their_gradients_go_with_them() -> None:
    there, back = (
        OperationTime(name=f"gradient_tape/{name}/transpose", type="Transpose", ms=3.0)
        for name in ("there", "back")
    )
    assert removed(check(there_and_back(), back, there, GRADIENT)) == {"back", back.name}


def test_a_normalization_between_convolutions_needs_no_conversion() -> None:
    """It goes back and forth twice; the inner conversions have no image operation next to them."""
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
    assert removed(check(program, GRADIENT)) == {"first", "second", "third", "fourth"}


def test_one_direction_alone_is_healthy() -> None:
    assert "one direction" in as_healthy(check(graph(*THERE), GRADIENT)).summary


def test_attentions_heads_are_no_layout() -> None:
    for kind in ("BatchMatMulV2", "Einsum", "Softmax"):
        assert "never" in as_healthy(check(there_and_back(kind), GRADIENT)).summary


def test_few_operations_may_lie_between() -> None:
    assert [type(check(there_and_back(between=between), GRADIENT)) for between in (3, 4)] == [Finding, Healthy]


def test_a_transposition_that_shows_no_change_of_the_format_is_none() -> None:
    """One of height and width; and a cube does not show its direction."""
    turned: Any = ["float32", [16, 32, 64, 8]]
    cube: Any = ["float32", [16, 8, 8, 8]]
    for outer, inner in ((LAST, turned), (cube, cube)):
        rows = ("a", "Transpose", outer, inner), ("conv", "Conv2D", inner, inner), ("b", "Transpose", inner, outer)
        assert isinstance(check(graph(*rows), GRADIENT), Healthy)


def test_a_record_without_edges_gives_no_verdict() -> None:
    alone = program_of(graph_operation("there", "Transpose", [FIRST], [LAST]))
    assert isinstance(check(alone, GRADIENT), NotApplicable)


def test_kernels_that_convert_within_a_convolution_are_a_ceiling() -> None:
    conv = OperationTime(
        name="conv", type="Conv2D", ms=10.0, ran=("void nchwToNhwcKernel<half>", "volta_h884cudnn"),
        ran_ms=(2.5, 7.5),
    )  # fmt: skip
    finding = as_finding(check(there_and_back("Softmax"), conv, GRADIENT, hardware=GPU))
    (effect,) = finding.effects
    assert (effect.subject, effect.scales, effect.bound) == ("conv", 0.75, Bound.AT_MOST)


def test_what_xla_calls_data_formatting_is_a_ceiling() -> None:
    copy = OperationTime(name="copy.3", type="x", ms=4.0, category="data formatting")
    finding = check(there_and_back("Softmax"), copy, GRADIENT, hardware=TPU)
    assert removed(finding) == {"copy.3"}


def test_a_removed_operation_is_not_counted_again_for_its_kernels() -> None:
    program = there_and_back()
    rows = [
        replace(row, ran=("SwapDimension1And2",), ran_ms=(2.0,))
        for row in all_ran(program, 2.0)
        if row.type == "Transpose"
    ]
    finding = Chart([program, Operations((*rows, GRADIENT)), GPU]).call(layout_change.check)
    assert [*scales(finding)] == ["back"]


def test_the_first_conversion_stays_whatever_runs_it() -> None:
    program = graph(*THERE)
    (there, _) = all_ran(program, 2.0)
    for hardware, ran in (
        (GPU, replace(there, ran=("SwapDimension1And2InTensor3UsingTiles",), ran_ms=(2.0,))),
        (TPU, replace(there, category="data formatting")),
    ):
        verdict = Chart([program, Operations((ran, GRADIENT)), hardware]).call(layout_change.check)
        assert "one direction" in as_healthy(verdict).summary
