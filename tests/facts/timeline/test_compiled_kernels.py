"""Kernels of CUDA graphs and the instructions that they run."""

import pytest

from tests.h100 import h100
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.run.xla_operations import XlaOperations
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.timeline.activity import kernel_operations
from tfdoctor.trace import Event, EventType
from tfdoctor.trace.hlo import HloMatmul, HloProgram, Instruction, Shape

RESULT = (Shape("bf16", (8, 8)),)
CALLS = tuple(
    Instruction(name, "custom-call", RESULT, (), (), "", HloMatmul(1, 8, 8, 8), "__cublas$gemm")
    for name in ("second", "first")
)
PROGRAM = HloProgram("f", 1, {1: CALLS}, donates=False, schedule={1: ("first", "second")})
KNOWN = XlaOperations({("7", name): Operation(name=name, type="MatMul") for name in ("first", "second", "loop.3")})


def kernel(name: str, start: int, **stats: str) -> Event:
    return Event(EventType(name), start, 1, {"program_id": "7", **stats})


def found(*events: Event) -> list[str | None]:
    operations = kernel_operations(events, XlaPrograms({"f(7)": PROGRAM}), KNOWN)
    return [operation.name if operation else None for operation in operations]


def test_a_kernel_names_its_instruction_or_has_the_name_of_its_fusion() -> None:
    named = kernel("some_gemm", 0, hlo_op="first")
    fused = kernel("loop_3", 1, hlo_op="command_buffer_1")
    assert found(named, fused) == ["first", "loop.3"]


def test_kernels_of_a_library_follow_the_order_of_its_calls() -> None:
    runs = [kernel(f"gemm_{at % 2}", at) for at in range(4)]
    assert found(*reversed(runs)) == ["second", "first", "second", "first"]


@pytest.mark.parametrize(
    "names",
    [("gemm_0", "gemm_1", "gemm_0"), ("gemm_0", "gemm_1", "gemm_1", "gemm_0")],
    ids=["cut off", "another order"],
)
def test_an_order_that_is_not_certain_names_nothing(names: tuple[str, ...]) -> None:
    assert set(found(*(kernel(name, at) for at, name in enumerate(names)))) == {None}


def test_a_kernel_of_an_unknown_program_stays_unnamed() -> None:
    other = Event(EventType("loop_3"), 0, 1, {"program_id": "8", "hlo_op": "first"})
    assert found(other) == [None]


@pytest.mark.parametrize(
    ("trace", "flops"),
    [
        ("convnet-bfloat16", 1.784e12),
        ("convnet-float32", 1.784e12),
        ("mlp-bfloat16-4000", 3.146e12 * 23 / 24),  # nothing needs the gradient of the first input
        ("mlp-bfloat16-4001", 3.147e12 * 23 / 24),
    ],
)
def test_all_matmuls_of_a_real_step_are_found(trace: str, flops: float) -> None:
    """The script's own count, of three passes; the first convolution has no gradient of its input either."""
    operations = h100(trace).fact(Operations)

    counted = sum((row.flops or 0.0) * row.calls for row in operations.matrix)
    assert counted == pytest.approx(flops, rel=0.01)
    assert operations.why_unlisted == ""
    assert {row.at.line for row in operations.matrix if row.at and row.ms > 0.1} <= {18, 34}
