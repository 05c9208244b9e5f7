"""depthwise-convolution: time above what the memory would need."""

import pytest

from tests.builders import chart, line, marker, markers, trace
from tfdoctor.diagnose import engine
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.rule import Rule
from tfdoctor.rules import depthwise_convolution
from tfdoctor.units import Quantity
from tfdoctor.verdict import Bound, Finding, Healthy, NotApplicable, Table, Verdict

GPU = Hardware("GPU", "x", bandwidth_bytes_s=1e12)
CONV = OperationTime(name="gradient_tape/m/conv", type="Conv2D", ms=20.0, flops=7e9)


def depthwise(ms: float = 10.0, end: str = "", **more: object) -> OperationTime:
    kind = f"DepthwiseConv2dNative{end}"
    parts = {"name": f"m/{kind}", "type": kind, "ms": ms, "layer": "dw", "nbytes": 2e9} | more
    return OperationTime(**parts)  # type: ignore[arg-type]


def check(*rows: OperationTime, hardware: Hardware = GPU) -> Verdict:
    return depthwise_convolution.check(Operations(rows), hardware)


@pytest.mark.parametrize("end", ["", "BackpropInput", "BackpropFilter"])
def test_all_of_it_can_be_saved_at_most(end: str) -> None:
    """A regular convolution in the place of both does not move the bytes between them either."""
    found = check(depthwise(end=end), CONV)
    assert isinstance(found, Finding)
    (effect,) = found.effects
    assert (effect.scales, effect.bound) == (0.0, Bound.AT_MOST)


def test_one_at_the_memorys_rate_saves_nothing() -> None:
    found = check(depthwise(ms=1.5), CONV)
    assert isinstance(found, Finding)
    assert found.effects[0].scales == 1.0


@pytest.mark.parametrize(("calls", "scales"), [(4.9, 0.0), (5.0, 1.0)])
def test_each_call_moves_its_bytes(calls: float, scales: float) -> None:
    found = check(depthwise(calls=calls), CONV)
    assert isinstance(found, Finding)
    assert found.effects[0].scales == scales


@pytest.mark.parametrize(("ms", "scales"), [(9.9, 0.0), (10.0, 1.0)])
def test_the_runs_own_rate_stands_in_for_an_unknown_memory(ms: float, scales: float) -> None:
    add = OperationTime(name="a", type="AddV2", ms=ms, nbytes=2e9)
    found = check(depthwise(), add, hardware=Hardware("GPU", "x"))
    assert isinstance(found, Finding)
    assert found.effects[0].scales == scales


def test_a_layers_operations_are_one_row() -> None:
    rows = [depthwise(), depthwise(6.0, "BackpropInput"), depthwise(1.0, layer="other", name="o")]
    found = check(*rows, CONV)
    assert isinstance(found, Finding)
    (table,) = [one for one in found.evidence if isinstance(one, Table)]
    assert [row[0] for row in table.rows] == ["dw", "other"]
    assert [row[3].value for row in table.rows if isinstance(row[3], Quantity)] == [16.0, 1.0]


def test_a_step_without_any_is_healthy() -> None:
    assert isinstance(check(CONV), Healthy)


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(check(unnamed), NotApplicable)


def test_a_step_that_waits_for_its_memory_only_is_healthy_in_the_end() -> None:
    """The engine turns a finding that saves nothing into health, with what was seen."""
    rows = [("d:DepthwiseConv2dNative", 10 * n, 10 * n + 0.02) for n in range(6)]
    facts = chart(trace([markers(6, 10), line("t", *rows)]))
    (result,) = engine.examine(facts, [Rule.from_module(depthwise_convolution)])
    assert isinstance(result.outcome, Healthy)
    assert "Depthwise convolutions take" in result.outcome.summary


def test_operations_without_duration_tell_nothing() -> None:
    steps = line("p", *(marker(n, 10 * n, 10 * n + 9) for n in range(6)))
    rows = [("d:DepthwiseConv2dNative", 10 * n + 1, 10 * n + 1) for n in range(6)]
    facts = chart(trace([steps, line("t", *rows)]))
    (result,) = engine.examine(facts, [Rule.from_module(depthwise_convolution)])
    assert isinstance(result.outcome, NotApplicable)


def test_on_a_cpu_the_change_would_cost_time_so_it_is_not_advised() -> None:
    said = check(depthwise(), CONV, hardware=Hardware("CPU", "x"))
    assert isinstance(said, Healthy)
    assert "take longer" in said.summary
