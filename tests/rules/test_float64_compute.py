"""float64-compute: time in float64 operations, and what made the values so wide."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.run.hardware import FLOAT32_ON_AVX512
from tfdoctor.rules.precision import float64_compute
from tfdoctor.rules.precision.float64_compute import Float64Work, Origin


def example(dtype: str = "float64") -> Verdict:
    """A matmul of float64 arrays takes 20 of 30 ms."""
    tensor = (dtype, (256, 1024))
    inputs = (tensor, (dtype, (1024, 1024)))
    graph = Operation(name="model/MatMul", type="MatMul", inputs=inputs, outputs=(tensor,))
    row = OperationTime(name=graph.name, type="MatMul", ms=20.0, at=Location("train.py", 12), operation=graph)
    wide = (row,) if dtype == "float64" else ()
    work = Float64Work(wide, (), Origin.ARGUMENT, Location("train.py", 5))
    cpu = Hardware(DeviceKind.CPU, "example", float32=FLOAT32_ON_AVX512)
    return float64_compute.check(work, Operations.training(30.0, row), cpu)


sick = example


def healthy() -> Verdict:
    """The arrays are float32."""
    return example("float32")


CPU = Hardware(DeviceKind.CPU, "x", float32=FLOAT32_ON_AVX512)
GPU = Hardware(DeviceKind.GPU, "x")
GRADIENT = OperationTime(name="gradient_tape/relu", type="ReluGrad", ms=50.0)
SIZE = [64, 64]


def check(
    *rows: dict[str, Any], hardware: Hardware = CPU, ms: float = 20.0, idle: str = "", **beside: Any
) -> Verdict:
    """Judge a step in which each recorded operation takes ``ms``, but for the type ``idle``."""
    program = program_of(*rows, **beside)
    ran = all_ran(program, ms, "Placeholder", idle)
    facts = Chart([program, Operations((*ran, GRADIENT)), hardware])
    return Rule.from_module(float64_compute).apply(facts)


def op(name: str, kind: str, dtype: str, *sources: int, given: str = "", line: int = 0) -> Any:
    """An operation with results of a type; its operands have the same, or another one."""
    more: Any = {"at": ["train.py", line]} if line else {}
    inputs = [[given or dtype, SIZE] for _ in sources]
    return graph_operation(name, kind, inputs, [[dtype, SIZE]], **{"from": list(sources), **more})


def product(dtype: str = "float64", **more: Any) -> Verdict:
    return check(op("x", "Placeholder", dtype), op("product", "MatMul", dtype, 0, 0, line=7), **more)


def summary(name: str) -> Verdict:
    return check(op("x", "Placeholder", "float64"), op(name, "RealDiv", "float64", 0, 0))


test_both_sides_of_each_limit = each_is(
    (summary("w/write_summary/buckets/truediv"), Healthy),  # what tf.summary computes is no choice of the script
    (summary("write_summary_2/x"), Healthy),
    (summary("w/x"), Finding),
    (product("float32"), Healthy),
    (product("bfloat16"), Healthy),
    (product("int64"), Healthy),  # trap: indices, which are as wide
    # Trap: a metric that is summed in float64 on purpose. 1.6 of 51.6 ms are 3.1 %
    (product(ms=1.6), Finding),
    (product(ms=1.5), Healthy),
)


def test_an_array_of_numpys_default_makes_the_products_wide() -> None:
    finding = as_finding(product())
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (FLOAT32_ON_AVX512.matmuls, Bound.EXPECTED)
    assert "arrays" in finding.remedies[0].action
    assert finding.remedies[0].at == Location("train.py", 7)
    assert as_finding(product(hardware=GPU)).effects[0].bound is Bound.AT_MOST  # not measured


@pytest.mark.parametrize(
    ("policy", "dtype", "words", "line"),
    [
        ("float64", "float64", "set_floatx", 3),  # after it the arrays do not matter
        ("float32", "float64", "layers", 5),  # the layer of its own type is the one to change
        ("float32", "float32", "arrays", 9),  # trap: a layer that is called without autocast on what the user made
    ],
)
def test_the_remedy_is_where_the_type_was_chosen(policy: str, dtype: str, words: str, line: int) -> None:
    """Arrays of float64 are given to a layer whose product is float64, with a layer of another type before it."""
    layers = [
        {"name": "first", "class": "Dense", "compute_dtype": policy, "at": ["train.py", 3]},
        {"name": "wide", "class": "Dense", "compute_dtype": dtype, "at": ["train.py", 5]},
    ]
    wide = {**op("p", "MatMul", "float64", 0, 0, line=9), "layer": "wide"}
    run = {"policy": policy, "fit_at": ["train.py", 9]}
    (remedy,) = as_finding(check(op("x", "Placeholder", "float64"), wide, layers=layers, run=run)).remedies
    assert words in remedy.action
    assert remedy.at == Location("train.py", line)


def test_a_cast_is_where_it_begins() -> None:
    """What the cast is given is float32; its line is the one to change, and it goes away."""
    wide = op("wide", "Cast", "float64", 0, given="float32", line=3)
    finding = as_finding(
        check(op("x", "Placeholder", "float32"), wide, op("sum", "AddV2", "float64", 1, 1, line=4))
    )
    assert scales(finding) == {"sum": 0.5, "wide": 0.0}
    assert finding.remedies[0].at == Location("train.py", 3)
    assert "Cast" in finding.remedies[0].action


def test_a_conversion_of_whole_numbers_stays() -> None:
    wide = op("wide", "Cast", "float64", 0, given="int64")
    assert [*scales(check(op("n", "Placeholder", "int64"), wide, op("sum", "AddV2", "float64", 1, 1)))] == ["sum"]


@pytest.mark.parametrize(("kind", "word"), [("ReadVariableOp", "variables"), ("Const", "constants")])
def test_the_remedy_names_what_is_wide(kind: str, word: str) -> None:
    finding = as_finding(check(op("w", kind, "float64", line=2), op("p", "MatMul", "float64", 0, 0), idle=kind))
    assert word in finding.remedies[0].action


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    facts = Chart([Program(), Operations((unnamed,)), CPU])
    assert isinstance(Rule.from_module(float64_compute).apply(facts), NotApplicable)
