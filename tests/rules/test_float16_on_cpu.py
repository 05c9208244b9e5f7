"""float16-on-cpu: float16 matmuls and convolutions, priced at bfloat16's time."""

import pytest

from tests.rules.kit import *
from tfdoctor.facts.run.hardware import CPU_UNITS
from tfdoctor.rules.precision import float16_on_cpu
from tfdoctor.rules.precision.float16_on_cpu import Limits, check


def example(
    dtype: str = "float16",
    time_ms: float = 60.0,
    kind: str = "Conv2D",
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:
    """A float16 convolution takes 60 ms on a CPU without float16 arithmetic."""
    tensors = ((dtype, (32, 32, 32, 64)), (dtype, (3, 3, 64, 64)))
    graph = Operation(name="model/conv2d/convolution", type=kind, inputs=tensors if dtype else ())
    row = OperationTime(
        name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=Location("train.py", 9), operation=graph
    )  # fmt: skip
    return check(Operations.training(70.0, row, rest="ReluGrad"), hardware, None)


sick = example


def healthy() -> Verdict:
    """The convolution runs in bfloat16."""
    return example("bfloat16")


AMX = Hardware(DeviceKind.CPU, "x", "AMX", CPU_UNITS[0][2])
REST = OperationTime(name="gradient_tape/relu", type="ReluGrad", ms=50.0)


@pytest.mark.parametrize("kind", ["Conv2D", "Conv2DBackpropFilter", "MatMul"])
def test_the_time_in_float16_is_the_ceiling(kind: str) -> None:
    finding = as_finding(example(kind=kind, hardware=AMX))
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (0.0, Bound.AT_MOST)
    assert "mixed_bfloat16" in finding.remedies[0].action


def test_other_operations_in_float16_count_too() -> None:
    rows = (matmul(ms=50.0, dtype="float16"), matmul("Relu", 30.0, dtype="float16"), REST)
    assert len(as_finding(applied(float16_on_cpu, Operations(rows), AMX, None)).effects) == 2


def test_a_processor_without_16_bit_units_trains_in_float32() -> None:
    finding = as_finding(example())
    assert finding.effects[0].bound is Bound.AT_MOST
    assert "float32" in finding.remedies[0].action


def test_on_a_gpu_float16_is_what_it_is_made_for() -> None:
    """Trap: the same policy on other hardware."""
    operations = Operations.training(100.0, matmul(dtype="float16"))
    assert isinstance(applied(float16_on_cpu, operations, Hardware(DeviceKind.GPU, "x")), NotApplicable)


test_both_sides_of_each_limit = each_is(
    (example(time_ms=70 * Limits().share), Finding),
    (example(time_ms=3.4), Healthy),
    (example("float32"), Healthy),
    (example(dtype=""), NotApplicable),
)
