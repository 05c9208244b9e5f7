"""depthwise-convolution: time above what the memory would need."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.builders import chart, line, marker, markers, matmul, trace
from tests.rules.cases.depthwise_convolution import FAST, example
from tests.rules.cases.depthwise_convolution import depthwise as built
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.diagnose import engine
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.rules import depthwise_convolution
from tfdoctor.rules.depthwise_convolution import FixedConvolution
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import Quantity
from tfdoctor.terms.verdict import (
    Bound,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Severity,
    Table,
    Verdict,
)

GPU = Hardware(DeviceKind.GPU, "x", bandwidth_bytes_s=1e12)


def depthwise(ms: float = 10.0, end: str = "", **more: Any) -> OperationTime:
    kind = f"m/DepthwiseConv2dNative{end}"
    parts: dict[str, Any] = {"name": kind, "layer": "dw", "at": None, "operation": None, "flops": None}
    return built(ms, end, **(parts | {"nbytes": 2e9} | more))


check = partial(example, hardware=GPU)


@pytest.mark.parametrize("end", ["", "BackpropInput", "BackpropFilter"])
def test_the_whole_time_is_saved_at_most(end: str) -> None:
    """A regular convolution replaces both, and moves no bytes between them."""
    finding = as_finding(check(depthwise(end=end), FAST))
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (0.0, Bound.AT_MOST)


def test_one_at_the_memorys_rate_saves_nothing() -> None:
    assert as_finding(check(depthwise(ms=1.5), FAST)).effects[0].scales == 1.0


@pytest.mark.parametrize(("calls", "scales"), [(4.9, 0.0), (5.0, 1.0)])
def test_each_call_moves_its_bytes(calls: float, scales: float) -> None:
    assert as_finding(check(depthwise(calls=calls), FAST)).effects[0].scales == scales


@pytest.mark.parametrize(("ms", "scales"), [(9.9, 0.0), (10.0, 1.0)])
def test_the_runs_own_rate_stands_in_for_an_unknown_memory(ms: float, scales: float) -> None:
    add = OperationTime(name="a", type="AddV2", ms=ms, nbytes=2e9)
    finding = as_finding(check(depthwise(), add, hardware=Hardware(DeviceKind.GPU, "x")))
    assert finding.effects[0].scales == scales


def test_a_layers_operations_are_one_row() -> None:
    rows = [depthwise(), depthwise(6.0, "BackpropInput"), depthwise(1.0, layer="other", name="o")]
    finding = as_finding(check(*rows, FAST))
    (table,) = [item for item in finding.evidence if isinstance(item, Table)]
    assert [row[0] for row in table.rows] == ["dw", "other"]
    assert [row[3].value for row in table.rows if isinstance(row[3], Quantity)] == [16.0, 1.0]


def test_a_step_without_any_is_healthy() -> None:
    assert isinstance(check(FAST), Healthy)


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(check(unnamed), NotApplicable)


def test_unknown_hardware_with_a_cpus_trace_gets_a_note() -> None:
    """The engine computes no saving for it."""
    rows = [("d:DepthwiseConv2dNative", 10 * n, 10 * n + 0.02) for n in range(6)]
    facts = chart(trace([markers(6, 10), line("t", *rows)]))
    (result,) = engine.examine(facts, [Rule.from_module(depthwise_convolution)])
    assert isinstance(result.outcome, Finding)
    assert (result.saving, result.severity) == (None, Severity.NOTE)


def test_operations_without_duration_tell_nothing() -> None:
    steps = line("p", *(marker(n, 10 * n, 10 * n + 9) for n in range(6)))
    rows = [("d:DepthwiseConv2dNative", 10 * n + 1, 10 * n + 1) for n in range(6)]
    facts = chart(trace([steps, line("t", *rows)]))
    (result,) = engine.examine(facts, [Rule.from_module(depthwise_convolution)])
    assert isinstance(result.outcome, NotApplicable)


CPU = Hardware(DeviceKind.CPU, "x")


def on_cpu(ms: float = 30.0, flop_s: float = 4e11, others_ms: float = 30.0, hardware: Hardware = CPU) -> Verdict:
    """Return the verdict on 7 x 7 depthwise convolutions beside a convolution that reaches ``flop_s``.

    A regular 3 x 3 convolution of 64 channels needs 64 * 9 / 49 times their 6e8 FLOP: 7.05e9.
    """
    kernel = ("bfloat16", (7, 7, 64, 1))
    graph = Operation(name="m/d", type="DepthwiseConv2dNative", inputs=(("bfloat16", (8, 9, 9, 64)), kernel))
    slow = depthwise(ms, flops=6e8, nbytes=1e6, operation=graph)
    conv = matmul(ms=others_ms, weights=(3, 3, 64, 64), dtype="bfloat16", layer="gradient")
    return check(slow, replace(conv, flops=flop_s * others_ms * 1e-3), hardware=hardware)


def test_on_a_cpu_the_rates_of_the_run_decide() -> None:
    """7.05e9 FLOP in 30 ms are 2.35e11 per second."""
    finding = as_finding(on_cpu(flop_s=2.4e11))
    assert finding.effects
    assert all(effect.bound is Bound.AT_MOST for effect in finding.effects)
    assert finding.severity is None


def test_no_regular_convolution_is_advised_that_no_convolution_here_is_fast_enough_for() -> None:
    verdict = as_healthy(on_cpu(flop_s=2.3e11))
    assert "from 235 GFLOP/s on, and reach at most 230 GFLOP/s here" in verdict.summary
    rates = {one.value.value for one in verdict.evidence if isinstance(one, Measure)}
    assert {2.3e11} < rates


@pytest.mark.parametrize(("peak", "kind"), [(2.4e11, Finding), (2.3e11, Healthy)])
def test_a_known_peak_rate_decides_where_the_runs_convolutions_are_slow(peak: float, kind: type) -> None:
    hardware = replace(GPU, peak_flop_s=peak)
    assert isinstance(on_cpu(flop_s=1e11, hardware=hardware), kind)


@pytest.mark.parametrize(("ms", "kind"), [(10.0, Finding), (9.9, Healthy)])
def test_on_a_cpu_a_tenth_of_the_compute_time_is_reported(ms: float, kind: type) -> None:
    assert isinstance(on_cpu(ms, flop_s=1e12, others_ms=100.0 - ms), kind)


def test_unknown_rates_promise_nothing_on_a_cpu() -> None:
    assert as_finding(check(depthwise(), FAST, hardware=CPU)).effects == ()


def constant(ms: float = 10.0, size: tuple[int, int] = (9, 9), **more: Any) -> FixedConvolution:
    row = depthwise(ms, name="blur")
    parts: dict[str, Any] = {"separable": True, "at": Location("train.py", 44)} | more
    return FixedConvolution((row,), size, **parts)


def check_constant(one: FixedConvolution, *rows: OperationTime) -> Verdict:
    return check(*one.rows, *rows, FAST, constant=(one,))


def test_a_constant_kernel_of_a_column_and_a_row_is_named_by_its_line() -> None:
    finding = as_finding(check_constant(constant()))
    (effect,), (remedy,) = finding.effects, finding.remedies
    assert (effect.scales, effect.bound) == (18 / 81, Bound.AT_MOST)
    assert remedy.at == Location("train.py", 44)
    assert "regular" not in remedy.action


@pytest.mark.parametrize(
    "one",
    [constant(separable=False), constant(size=(3, 4)), constant(size=(1, 9)), constant(ms=0.4)],
    ids=["full", "small", "line", "short"],
)
def test_trap_no_regular_convolution_replaces_a_constant_kernel(one: FixedConvolution) -> None:
    assert "constant kernels" in as_healthy(check_constant(one)).summary


@pytest.mark.parametrize(("size", "found"), [((4, 4), True), ((3, 5), False)])
def test_a_kernel_that_keeps_half_of_its_arithmetic_is_the_smallest(
    size: tuple[int, int],
    found: bool,  # noqa: FBT001
) -> None:
    assert isinstance(check_constant(constant(size=size)), Finding) is found


def test_trained_kernels_beside_constant_ones_are_both_named() -> None:
    finding = as_finding(check_constant(constant(), depthwise(name="trained", ms=10.0)))
    assert [effect.subject for effect in finding.effects] == ["blur", "trained"]
    assert len(finding.remedies) == 2


def test_the_line_is_that_of_a_forward_operation() -> None:
    """The gradient of an operation that a layer's call calls has the line that made the layer."""
    finding = as_finding(
        check(
            depthwise(12.0, "BackpropInput", name="gradient_tape/m/dw/x", at=Location("train.py", 69)),
            depthwise(5.0, at=Location("train.py", 44)),
            FAST,
        )
    )
    assert finding.remedies[0].at == Location("train.py", 44)
