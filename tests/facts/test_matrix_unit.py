"""Whether the matrix unit was used: by FLOPs where they are known, by kernel names else."""

import pytest

from tests.builders import (
    Machine,
    Row,
    chart,
    device,
    graph_operation,
    line,
    markers,
    recording,
    trace,
    v100,
)
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.hardware import Hardware
from tfdoctor.facts.matrix_unit import MatrixUnit, uses_tensor_cores
from tfdoctor.facts.operations import Operations, OperationTime

ON = [
    "volta_h884gemm_64x128_ldg8_nn",
    "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_exp_small_nhwc2nchw_tn_v1",
    "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_exp_interior_nhwc2nchw_tn_v1",
    "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn",
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn",
    "ampere_h16816gemm_128x64_ldg8_nn",
    "cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4",
    "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x2_tn_align8",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_tensor16x8x8",
    "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_tensor16x8x16",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_hgmma",
    "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize64x64x64",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT",
    "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8>",
    "i16832gemm_int8_128x128",
]

OFF = [
    "volta_sgemm_128x64_nn",
    "ampere_sgemm_64x64_nt",
    "maxwell_sgemm_128x128_raggedMn_nt_splitK",
    "volta_scudnn_128x64_relu_interior_nn_v1",
    "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>",
    "void fft2d_r2c_32x32<float, false, 0u, false>",
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>",
    "void explicit_convolve_sgemm<float, int, 1024, 6, 7, 3, 3, 5>",
    "cutlass_80_simt_sgemm_128x64_8x5_nn_align1",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x128x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4",
    "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x128x8_ffma",
]

UNKNOWN = [
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>",
    "void Eigen::internal::EigenMetaKernel<>",
    "cudnn_infer_kernel",
    "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32",
    "gemv2T_kernel_val<int, int, float>",
    "",
]


def conv(ms: float, kernel: str, name: str = "m/c", kind: str = "Conv2D") -> OperationTime:
    return OperationTime(name=name, type=kind, ms=ms, ran=(kernel,))


@pytest.mark.parametrize("kernel", ON)
def test_kernels_that_run_on_tensor_cores(kernel: str) -> None:
    assert uses_tensor_cores(conv(1, kernel)) is True


@pytest.mark.parametrize("kernel", OFF)
def test_kernels_that_do_not(kernel: str) -> None:
    assert uses_tensor_cores(conv(1, kernel)) is False


@pytest.mark.parametrize("kernel", UNKNOWN)
def test_kernels_of_which_nobody_knows(kernel: str) -> None:
    assert uses_tensor_cores(conv(1, kernel)) is None


def test_one_kernel_on_the_unit_is_enough_for_an_operation() -> None:
    row = OperationTime(
        name="m/c", type="Conv2D", ms=1, ran=("nchwToNhwcKernel", ON[0], "splitKreduce_kernel")
    )
    assert uses_tensor_cores(row) is True


# From a trace


def on_gpu(gpu: Machine) -> MatrixUnit:
    return chart(trace([markers(1, 100)], gpus=[gpu])).fact(MatrixUnit)


def kernel(name: str, start: float, end: float, operation: str) -> Row:
    return (name, start, end, {"tf_op": operation})


def test_matrix_time_is_split_by_what_its_kernels_names_tell() -> None:
    found = on_gpu(
        v100(
            line(
                "Stream #1",
                kernel(ON[0], 0, 10, "a:MatMul"),
                kernel(OFF[0], 10, 30, "b:MatMul"),
                kernel("mystery", 30, 35, "c:Conv2D"),
                kernel(ON[0], 35, 40, "d:Relu"),
            )
        )
    )
    assert (found.on_unit_ms, found.off_unit_ms, found.unknown_ms) == pytest.approx((10, 20, 5))
    assert (found.matrix_ms, found.busy_ms) == pytest.approx((35, 40))
    assert found.utilization is None
    assert found.unit == "Tensor Core"


def test_utilization_is_flops_over_the_peak_of_the_busy_time() -> None:
    shapes = [["float16", [1024, 1024]], ["float16", [1024, 1024]]]
    record = {"graphs": [{"operations": [graph_operation("a", "MatMul", shapes, shapes[:1])]}]}
    gpu = v100(line("Stream #1", kernel(ON[0], 0, 1, "a:MatMul"), kernel("x", 1, 2, "b:Relu")))
    found = chart(trace([markers(1, 100)], gpus=[gpu]), recording(record)).fact(MatrixUnit)
    peak = 1.53e9 * 80 * 1024
    assert found.peak_flop_s == pytest.approx(peak)
    assert found.utilization == pytest.approx(2 * 1024**3 / 2e-3 / peak)
    assert found.matrix_rate == pytest.approx(2 * 1024**3 / 1e-3)


def test_one_product_of_unknown_size_makes_the_utilization_unknown() -> None:
    shapes = [["float16", [1024, 1024]], ["float16", [1024, 1024]]]
    record = {"graphs": [{"operations": [graph_operation("a", "MatMul", shapes, shapes[:1])]}]}
    gpu = v100(line("Stream #1", kernel(ON[0], 0, 1, "a:MatMul"), kernel(ON[0], 1, 9, "b:MatMul")))
    found = chart(trace([markers(1, 100)], gpus=[gpu]), recording(record)).fact(MatrixUnit)
    assert found.utilization is None
    assert found.on_unit_ms == pytest.approx(9)


def test_a_tpu_tells_its_flops_and_its_peak() -> None:
    kinds = {"%fusion": {"hlo_category": "convolution fusion", "flops": 1e9}}
    tpu = device(
        line("XLA Ops", ("%fusion", 0, 1)),
        line("Steps", ("0", 0, 2)),
        kinds=kinds,
        device_type_string="TPU v5 lite",
        peak_teraflops_per_second=100.0,
    )
    found = chart(trace([], tpus=[tpu])).fact(MatrixUnit)
    assert found.utilization == pytest.approx(1e9 / 1e-3 / 100e12)
    assert (found.unit, found.on_unit_ms) == ("MXU", None)


def test_a_cpu_is_not_judged_by_its_peak() -> None:
    with pytest.raises(Unavailable, match="CPU"):
        chart(trace([markers(1, 10), line("t", ("a:MatMul", 0, 5))])).fact(MatrixUnit)


def test_a_gpu_without_tensor_cores_is_not_judged() -> None:
    old = device(line("Stream #1", ("k", 0, 1)), compute_cap_major=6, compute_cap_minor=1)
    with pytest.raises(Unavailable, match=r"6\.1"):
        on_gpu(old)


def test_a_gpu_whose_kernels_were_not_recorded_is_not_judged() -> None:
    with pytest.raises(Unavailable, match=r"not recorded|without a single kernel"):
        on_gpu(v100())


def test_nothing_is_said_of_work_that_has_no_name() -> None:
    with pytest.raises(Unavailable, match="does not name"):
        on_gpu(v100(line("Stream #1", ("mystery", 0, 9))))


def test_a_step_without_matrix_work_is_known_to_have_none() -> None:
    rows = Operations((OperationTime(name="r", type="ReluGrad", ms=5),))
    found = MatrixUnit.of(rows, Hardware("GPU", "x", "Tensor Core"))
    assert (found.matrix_ms, found.busy_ms) == (0, 5)
