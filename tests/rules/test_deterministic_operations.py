"""deterministic-operations: what switches them on, which operations count, and both sides of the limits."""

import pytest

from tests.rules.kit import *
from tfdoctor.recording.program import DebugAid
from tfdoctor.rules.execution import deterministic_operations
from tfdoctor.rules.execution.deterministic_operations import Determinism, Limits, check

T4 = Hardware(DeviceKind.GPU, "Tesla T4", "Tensor Core", bandwidth_bytes_s=320e9, peak_flop_s=65e12)


def example(
    *rows: OperationTime,
    time_ms: float = 60.0,
    determinism: Determinism = Determinism(by_call=True, at=Location("train.py", 5)),
    hardware: Hardware = T4,
) -> Verdict:
    """The gradient of a filter takes 60 of 70 ms, at 2 % of the peak rate of a T4."""
    kind = "Conv2DBackpropFilter"
    images = ("float16", (32, 128, 128, 64))
    graph = Operation(name=f"gradient_tape/model/conv2d/{kind}", type=kind, inputs=(images,))
    row = OperationTime(
        name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 128 * 128 * 128 * 9 * 64,
    )  # fmt: skip
    operations = Operations.training(70.0, *(rows or (row,)), rest="ReluGrad")
    return check(determinism, operations, hardware)


sick = example


def healthy() -> Verdict:
    """Nothing asks for deterministic operations."""
    return example(determinism=Determinism())


LEAST_MS = 2 * 32 * 128 * 128 * 128 * 9 * 64 / 65e12 * 1e3


def test_a_slow_gradient_is_found_with_the_line_that_asks_for_it() -> None:
    finding = as_finding(example())
    (effect,) = finding.effects
    assert effect.scales == pytest.approx(LEAST_MS / 60)
    assert effect.bound is Bound.AT_MOST
    assert finding.remedies[0].at == Location("train.py", 5)


def row(kind: str, ms: float) -> OperationTime:
    return OperationTime(name=f"gradient_tape/bias/{kind}", type=kind, ms=ms)


test_both_sides_of_each_limit = each_is(
    (example(time_ms=LEAST_MS / Limits().reached * 1.01), Finding),
    (example(time_ms=LEAST_MS / Limits().reached * 0.99), Healthy),
    (example(row("BiasAddGrad", 70 * Limits().share + 0.01)), Finding),
    (example(row("BiasAddGrad", 3.4)), Healthy),
    (example(row("MatMul", 60.0)), Healthy),  # trap: of which one kernel exists
)


def test_a_variable_is_named() -> None:
    finding = as_finding(example(determinism=Determinism(variable="TF_DETERMINISTIC_OPS")))
    assert "TF_DETERMINISTIC_OPS" in finding.summary
    assert "unset TF_DETERMINISTIC_OPS" in finding.remedies[0].code


def test_on_a_cpu_nothing_is_said() -> None:
    operations = Operations.training(70.0, row("BiasAddGrad", 60.0))
    facts = Determinism(by_call=True), operations, Hardware(DeviceKind.CPU, "x")
    assert isinstance(applied(deterministic_operations, *facts), NotApplicable)


@pytest.mark.parametrize(
    ("environment", "aids", "how"),
    [
        ({}, (), (False, "")),
        ({"TF_DETERMINISTIC_OPS": "0"}, (), (False, "")),
        ({"TF_DETERMINISTIC_OPS": "True"}, (), (False, "TF_DETERMINISTIC_OPS")),
        ({"TF_CUDNN_DETERMINISTIC": "1"}, (), (False, "TF_CUDNN_DETERMINISTIC")),
        ({}, ("check_numerics",), (False, "")),
        ({"TF_DETERMINISTIC_OPS": "1"}, ("op_determinism",), (True, "TF_DETERMINISTIC_OPS")),
    ],
)
def test_what_switches_them_on(environment: dict[str, Any], aids: tuple[str, ...], how: tuple[bool, str]) -> None:
    beside = recording(manifest=manifest(environment=environment))
    program = Program(settings=RunSettings(debugging=tuple(DebugAid(aid) for aid in aids)))
    found = Determinism.measure(beside, program)
    assert (found.by_call, found.variable) == how


def test_a_trace_of_another_profiler_says_nothing_of_settings() -> None:
    with pytest.raises(Unavailable, match="settings"):
        Determinism.measure(recording(), None)
