"""What could run on the matrix unit as it is: by type, dtype and dimensions, on this device."""

from typing import Any

import pytest

from tests.builders import chart, device, line, matmul, trace
from tfdoctor.facts.operations.matmuls import is_eligible
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.timeline.host_events import UNNAMED


def gpu(major: int, minor: int, **stats: Any) -> Hardware:
    plane = device(line("Stream #1", ("k", 0, 5)), compute_cap_major=major, compute_cap_minor=minor, **stats)
    return chart(trace([], gpus=[plane])).fact(Hardware)


V100, T4, A100, H100, P4 = gpu(7, 0), gpu(7, 5), gpu(8, 0), gpu(9, 0), gpu(6, 1)
MI300X = gpu(9, 4, device_vendor="AMD")


@pytest.mark.parametrize(
    ("hardware", "dtype", "possible"),
    [
        (V100, "float16", True),
        (V100, "float32", False),
        (V100, "bfloat16", False),
        (T4, "float16", True),
        (T4, "bfloat16", False),
        (A100, "float32", True),
        (A100, "bfloat16", True),
        (A100, "float64", True),
        (gpu(8, 6), "float64", False),
        (H100, "float16", True),
        (MI300X, "float32", True),
        (P4, "float16", False),
        (gpu(7, 5, gpu_device_name="NVIDIA GeForce GTX 1650"), "float16", False),
        (gpu(13, 0), "float16", None),
        (gpu(11, 0, device_vendor="AMD"), "float16", None),
    ],
)
def test_by_device_and_type(hardware: Hardware, dtype: str, possible: object) -> None:
    assert is_eligible(matmul(dtype=dtype, weights=(3, 3, 64, 64)), hardware) is possible


@pytest.mark.parametrize(
    ("hardware", "weights", "possible"),
    [
        (V100, (3, 3, 64, 60), None),
        (V100, (3, 3, 3, 64), None),
        (A100, (3, 3, 64, 60), True),
        (V100, (100, 10), None),
        (V100, (104, 16), True),
        (V100, (None, 64), None),
    ],
)
def test_by_dimensions_where_old_libraries_mind(
    hardware: Hardware, weights: tuple[int | None, ...], possible: object
) -> None:
    row = matmul("MatMul" if len(weights) == 2 else "Conv2D", dtype="float16", weights=weights)
    assert is_eligible(row, hardware) is possible


@pytest.mark.parametrize(
    "kind", ["Conv2DBackpropFilter", "Conv3D", "BatchMatMulV2", "Einsum", "CudnnRNNV3", "MatMul"]
)
def test_operations_that_multiply_whatever_they_are_called(kind: str) -> None:
    row = matmul(kind, dtype="float32", name="depthwise/batch_norm")
    assert is_eligible(row, A100) is True


def test_operations_that_do_not_multiply() -> None:
    assert is_eligible(matmul("Relu", name="conv/MatMul"), A100) is False
    assert is_eligible(matmul("DepthwiseConv2dNative"), A100) is False


def test_a_product_that_xla_compiled_is_told_by_its_kernel() -> None:
    name = "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x16x1"
    row = OperationTime(name=name, type=UNNAMED, ms=1.0, ran=(name,))
    assert row.is_matrix
    assert is_eligible(row, MI300X) is True
    triton = OperationTime(name="t", type=UNNAMED, ms=1.0, ran=("gemm_fusion_dot.kd",))
    assert is_eligible(triton, MI300X) is None
    assert not OperationTime(name="f", type=UNNAMED, ms=1.0, ran=("loop_fusion",)).is_matrix
