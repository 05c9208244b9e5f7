"""layout-change: conversions in both directions around operations on images."""

import pytest

from tests.builders import all_ran, graph_operation, program_of
from tests.rules.kit import *
from tfdoctor.rules import layout_change

CPU, GPU, TPU = (Hardware(kind, "x") for kind in DeviceKind)
FIRST: Any = ["float32", [16, 8, 64, 32]]
LAST: Any = ["float32", [16, 64, 32, 8]]
GRADIENT = OperationTime(name="gradient_tape/conv/d", type="Conv2DBackpropFilter", ms=30.0)


def operation(name: str, kind: str, given: Any, made: Any, *sources: int | None) -> dict[str, Any]:
    return graph_operation(name, kind, [given], [made], **{"from": list(sources)})


def there_and_back(image: str = "Conv2D", between: int = 0) -> Program:
    """Channels last for an operation, then first, ``between`` operations behind it."""
    rows = [
        operation("there", "Transpose", FIRST, LAST, None),
        operation("image", image, LAST, LAST, 0),
        *(operation(f"relu{n}", "Relu", LAST, LAST, n + 1) for n in range(between)),
        operation("back", "Transpose", LAST, FIRST, between + 1),
    ]
    return program_of(*rows)


def check(program: Program, *rows: OperationTime, hardware: Hardware = CPU) -> Verdict:
    ran = all_ran(program, 2.0)
    return Chart([program, Operations((*ran, *rows)), hardware]).call(layout_change.check)


def removed(verdict: Verdict) -> set[str]:
    assert isinstance(verdict, Finding)
    assert all(effect.scales == 0.0 for effect in verdict.effects)
    return {effect.subject for effect in verdict.effects}


def test_all_conversions_but_the_first_are_removed() -> None:
    finding = check(there_and_back(), GRADIENT)
    assert removed(finding) == {"back"}
    assert isinstance(finding, Finding)
    assert finding.effects[0].bound is Bound.EXPECTED


def test_their_gradients_go_with_them() -> None:
    back = OperationTime(name="gradient_tape/back/transpose", type="Transpose", ms=3.0)
    there = OperationTime(name="gradient_tape/there/transpose", type="Transpose", ms=3.0)
    assert removed(check(there_and_back(), back, there, GRADIENT)) == {"back", back.name}


def test_a_normalization_between_convolutions_needs_no_conversion() -> None:
    """It goes back and forth twice; the inner conversions have no image operation next to them."""
    rows = [operation("conv", "Conv2D", LAST, LAST, None)]
    rows.append(operation("first", "Transpose", LAST, FIRST, 0))
    rows.append(operation("sub", "Sub", FIRST, FIRST, 1))
    rows.append(operation("second", "Transpose", FIRST, LAST, 2))
    rows.append(operation("mul", "Mul", LAST, LAST, 3))
    rows.append(operation("third", "Transpose", LAST, FIRST, 4))
    rows.append(operation("mul_1", "Mul", FIRST, FIRST, 5))
    rows.append(operation("fourth", "Transpose", FIRST, LAST, 6))
    rows.append(operation("conv_1", "Conv2D", LAST, LAST, 7))
    finding = check(program_of(*rows), GRADIENT)
    assert removed(finding) == {"first", "second", "third", "fourth"}


def test_one_direction_alone_is_healthy() -> None:
    rows = [operation("there", "Transpose", FIRST, LAST, None)]
    rows.append(operation("image", "Conv2D", LAST, LAST, 0))
    assert "one direction" in as_healthy(check(program_of(*rows), GRADIENT)).summary


@pytest.mark.parametrize("kind", ["BatchMatMulV2", "Einsum", "Softmax"])
def test_attentions_heads_are_no_layout(kind: str) -> None:
    assert "never" in as_healthy(check(there_and_back(kind), GRADIENT)).summary


def test_few_operations_may_lie_between() -> None:
    assert [type(check(there_and_back(between=between), GRADIENT)) for between in (3, 4)] == [Finding, Healthy]


def test_a_transposition_of_height_and_width_keeps_the_format() -> None:
    turned: Any = ["float32", [16, 32, 64, 8]]
    rows = [operation("a", "Transpose", LAST, turned, None)]
    rows += [operation("conv", "Conv2D", turned, turned, 0)]
    rows += [operation("b", "Transpose", turned, LAST, 1)]
    assert isinstance(check(program_of(*rows), GRADIENT), Healthy)


def test_a_cube_does_not_show_its_direction() -> None:
    cube: Any = ["float32", [16, 8, 8, 8]]
    rows = [operation("a", "Transpose", cube, cube, None)]
    rows += [operation("conv", "Conv2D", cube, cube, 0)]
    rows += [operation("b", "Transpose", cube, cube, 1)]
    assert isinstance(check(program_of(*rows), GRADIENT), Healthy)


def test_a_record_without_edges_gives_no_verdict() -> None:
    assert isinstance(
        check(program_of(graph_operation("there", "Transpose", [FIRST], [LAST])), GRADIENT), NotApplicable
    )


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
        OperationTime(
            name=operation.name, type=operation.type, ms=2.0, operation=operation, ran=("SwapDimension1And2",),
            ran_ms=(2.0,),
        )
        for operation in program.operations
        if operation.type == "Transpose"
    ]  # fmt: skip
    finding = as_finding(Chart([program, Operations((*rows, GRADIENT)), GPU]).call(layout_change.check))
    assert [effect.subject for effect in finding.effects] == ["back"]


@pytest.mark.parametrize(("hardware", "parts"), [
    (GPU, {"ran": ("SwapDimension1And2InTensor3UsingTiles",), "ran_ms": (2.0,)}),
    (TPU, {"category": "data formatting"}),
])  # fmt: skip
def test_the_first_conversion_stays_whatever_runs_it(hardware: Hardware, parts: Any) -> None:
    rows = [operation("there", "Transpose", FIRST, LAST, None)]
    program = program_of(*rows, operation("image", "Conv2D", LAST, LAST, 0))
    there = program.by_name["there"]
    ran = OperationTime(name="there", type="Transpose", ms=2.0, operation=there, **parts)
    verdict = as_healthy(Chart([program, Operations((ran, GRADIENT)), hardware]).call(layout_change.check))
    assert "one direction" in verdict.summary
