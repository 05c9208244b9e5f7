"""float64-compute: time in float64 operations, and what made the values so wide."""

from typing import Any

import pytest

from tests.builders import all_ran, graph_operation, program_of
from tests.rules.verdicts import as_finding
from tfdoctor.diagnosis.rule import Rule
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import FLOAT32_ON_AVX512, Hardware
from tfdoctor.facts.run.program import Program
from tfdoctor.rules import float64_compute
from tfdoctor.rules.float64_compute import Limits
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, NotApplicable, Verdict

CPU = Hardware(DeviceKind.CPU, "x", float32=FLOAT32_ON_AVX512)
GPU = Hardware(DeviceKind.GPU, "x")
GRADIENT = OperationTime(name="gradient_tape/relu", type="ReluGrad", ms=50.0)
SIZE = [64, 64]


def check(
    *rows: dict[str, Any],
    hardware: Hardware = CPU,
    ms: float = 20.0,
    idle: str = "",
    beside: dict[str, Any] | None = None,
) -> Verdict:
    """Judge a step in which each recorded operation takes ``ms``, but for the type ``idle``."""
    program = program_of(*rows, **(beside or {}))
    ran = all_ran(program, ms, "Placeholder", idle)
    facts = Chart([program, Operations((*ran, GRADIENT)), hardware])
    return Rule.from_module(float64_compute).apply(facts)


def op(name: str, kind: str, dtype: str, *sources: int, given: str = "", line: int = 0) -> Any:
    """An operation with results of a type; its operands have the same, or another one."""
    more: Any = {"at": ["train.py", line]} if line else {}
    inputs = [[given or dtype, SIZE] for _ in sources]
    return graph_operation(name, kind, inputs, [[dtype, SIZE]], **{"from": list(sources), **more})


def matmul_of_arguments(dtype: str) -> list[dict[str, Any]]:
    return [op("x", "Placeholder", dtype), op("product", "MatMul", dtype, 0, 0, line=7)]


def test_an_array_of_numpys_default_makes_the_products_wide() -> None:
    finding = as_finding(check(*matmul_of_arguments("float64")))
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (FLOAT32_ON_AVX512.matmuls, Bound.EXPECTED)
    assert "arrays" in finding.remedies[0].action
    assert finding.remedies[0].at == Location("train.py", 7)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("w/write_summary/buckets/truediv", Healthy), ("write_summary_2/x", Healthy), ("w/x", Finding)],
)
def test_what_tf_summary_computes_is_no_choice_of_the_script(name: str, kind: type) -> None:
    rows = [op("x", "Placeholder", "float64"), op(name, "RealDiv", "float64", 0, 0)]
    assert isinstance(check(*rows), kind)


def test_unmeasured_hardware_gets_a_ceiling() -> None:
    finding = as_finding(check(*matmul_of_arguments("float64"), hardware=GPU))
    assert finding.effects[0].bound is Bound.AT_MOST


def layered(policy: str, dtype: str = "float64") -> Finding:
    """Arrays of float64 are given to a layer whose product is float64, with a layer of another type before it."""
    layers = [
        {"name": "first", "class": "Dense", "compute_dtype": policy, "at": ["train.py", 3]},
        {"name": "wide", "class": "Dense", "compute_dtype": dtype, "at": ["train.py", 5]},
    ]
    beside = {"layers": layers, "run": {"policy": policy, "fit_at": ["train.py", 9]}}
    product = {**op("p", "MatMul", "float64", 0, 0, line=9), "layer": "wide"}
    return as_finding(check(op("x", "Placeholder", "float64"), product, beside=beside))


def test_after_set_floatx_the_arrays_do_not_matter() -> None:
    (remedy,) = layered("float64").remedies
    assert "set_floatx" in remedy.action
    assert remedy.at == Location("train.py", 3)


def test_a_layer_of_its_own_type_is_the_one_to_change() -> None:
    (remedy,) = layered("float32").remedies
    assert "layers" in remedy.action
    assert remedy.at == Location("train.py", 5)


def test_arrays_matter_where_no_layer_computes_in_float64() -> None:
    """Trap: a layer that is called without autocast on what the user made."""
    assert "arrays" in layered("float32", dtype="float32").remedies[0].action


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_other_types_are_healthy(dtype: str) -> None:
    """Trap: indices are int64, which is as wide."""
    assert isinstance(check(*matmul_of_arguments(dtype)), Healthy)


@pytest.mark.parametrize(("ms", "kind"), [(1.6, Finding), (1.5, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    """Trap: a metric that is summed in float64 on purpose. 1.6 of 51.6 ms are 3.1 %."""
    assert Limits().share == 0.03
    assert isinstance(check(*matmul_of_arguments("float64"), ms=ms), kind)


def test_a_cast_is_where_it_begins() -> None:
    """What the cast is given is float32; its line is the one to change, and it goes away."""
    rows = [op("x", "Placeholder", "float32"), op("wide", "Cast", "float64", 0, given="float32", line=3)]
    rows.append(op("sum", "AddV2", "float64", 1, 1, line=4))
    finding = as_finding(check(*rows))
    assert {effect.subject: effect.scales for effect in finding.effects} == {"sum": 0.5, "wide": 0.0}
    assert finding.remedies[0].at == Location("train.py", 3)
    assert "Cast" in finding.remedies[0].action


def test_a_conversion_of_whole_numbers_stays() -> None:
    rows = [op("n", "Placeholder", "int64"), op("wide", "Cast", "float64", 0, given="int64")]
    rows.append(op("sum", "AddV2", "float64", 1, 1))
    assert [effect.subject for effect in as_finding(check(*rows)).effects] == ["sum"]


@pytest.mark.parametrize(("kind", "word"), [("ReadVariableOp", "variables"), ("Const", "constants")])
def test_the_remedy_names_what_is_wide(kind: str, word: str) -> None:
    finding = as_finding(check(op("w", kind, "float64", line=2), op("p", "MatMul", "float64", 0, 0), idle=kind))
    assert word in finding.remedies[0].action


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    facts = Chart([Program(), Operations((unnamed,)), CPU])
    assert isinstance(Rule.from_module(float64_compute).apply(facts), NotApplicable)
