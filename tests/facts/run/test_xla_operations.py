"""XLA's instructions as operations, by real traces of a GPU."""

import pytest

from tests.h100 import h100
from tfdoctor.facts.run.program import Operation
from tfdoctor.facts.run.xla_operations import XlaOperations, operation
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.hlo import HloMatmul, HloProgram, Instruction, Pass, Shape


def by_name(trace: str) -> dict[str, Operation]:
    operations = h100(trace).fact(XlaOperations).operations.items()
    return {name: found for (_, name), found in operations}


@pytest.mark.parametrize(
    ("instruction", "kind", "kernel"),
    [
        ("cudnn-conv.7", "Conv2D", 1),
        ("cudnn-conv-bw-input.9", "Conv2DBackpropInput", 1),
        ("cudnn-conv-bw-filter.7", "Conv2DBackpropFilter", None),
    ],
)
def test_calls_of_cudnn_have_the_sizes_of_the_convolution(instruction: str, kind: str, kernel: int | None) -> None:
    found = by_name("convnet-bfloat16-130")[instruction]

    weights = found.outputs[0] if kernel is None else found.inputs[kernel]
    assert (found.type, weights) == (kind, ("bfloat16", (1, 9, 130, 130)))
    assert found.at == Location("/home/user/jx/train.py", 18)
    assert found.name.endswith(f"conv_general_dilated/{instruction}")


@pytest.mark.parametrize(
    ("trace", "instruction"),
    [
        ("mlp-bfloat16-4000", "custom-call.1"),  # of cuBLASLt
        ("mlp-bfloat16-4001", "gemm_fusion_dot_general.24"),  # of Triton
    ],
)
def test_matmuls_of_a_library_and_of_triton_have_their_sizes(trace: str, instruction: str) -> None:
    found, width = by_name(trace)[instruction], int(trace[-4:])

    assert found.type == "MatMul"
    assert found.inputs == (("bfloat16", (4096, width)), ("bfloat16", (width, width)))
    assert found.outputs == (("bfloat16", (4096, width)),)


def test_what_a_fusion_reads_and_writes() -> None:
    found = by_name("mlp-bfloat16-4000")["loop_subtract_fusion.7"]

    assert found.type == "sub (fused)"
    assert {dtype for dtype, _ in found.inputs} == {"float32", "bfloat16"}
    assert found.outputs == (("float32", (4000, 4000)),)


def test_a_fusion_that_gathers_moves_an_unknown_number_of_bytes() -> None:
    table, row = (Shape("f32", (1000, 8)),), (Shape("f32", (4, 8)),)
    inner = Instruction("gather.1", "gather", row, ("p",), ())
    fusion = Instruction("fusion.1", "fusion", row, ("p",), (2,), "f/take")
    program = HloProgram("f", 1, {1: (fusion,), 2: (inner,)}, donates=False)

    assert operation(program, fusion, {"p": table}).inputs == (("float32", None),)


def test_a_depthwise_convolution_is_no_matmul() -> None:
    sizes = HloMatmul(1, 64, 32, 1, 9, 32, "f32", Pass.FORWARD)
    call = Instruction("c", "custom-call", (Shape("f32", (64, 32)),), (), (), "f/conv", sizes)
    program = HloProgram("f", 1, {1: (call,)}, donates=False)

    assert operation(program, call, {}).type == "DepthwiseConv2dNative"
