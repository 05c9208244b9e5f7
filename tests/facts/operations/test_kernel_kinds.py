"""What kernels' names tell, family by family; what they do not tell stays unknown."""

from scripts.synthetic import kernels as synthetic
from tests.facts.kit import *
from tfdoctor.facts.operations.kernel_kinds import (
    DOCS,
    FAMILIES,
    SEEN,
    kernel,
    multiplies,
    of_operation,
    precision_of,
)
from tfdoctor.facts.operations.matmuls import is_eligible
from tfdoctor.facts.timeline.host_events import UNNAMED

ON = {
    "volta_h884gemm_64x128_ldg8_nn": "fp16",
    "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_exp_small_nhwc2nchw_tn_v1": "fp16",
    "Volta_hmma_implicit_gemm_fprop_fp32_nhwc_128x128x64x1_1x3x3x0x1": "fp16",
    "void cutlass::Kernel2<cutlass_70_tensorop_s884gemm_f16_128x128_tn_align8>": "fp16",
    "turing_fp16_s1688cudnn_fp16_128x128_ldg8_relu_exp_interior_nhwc2nchw_tn_v1": "fp16",
    "turing_h1688cudnn_256x128_ldg8_relu_exp_medium_nhwc_tn_v1": "fp16",
    "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn": "fp16",
    "volta_int8_i8816cudnn_int8_256x128_ldg16_relu_interior_nt_v1": "int8",
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn": "fp16",
    "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn": "bf16",
    "ampere_h16816gemm_128x64_ldg8_nn": "fp16",
    "cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4": "tf32",
    "cutlass_80_tensorop_d884gemm_64x64_16x4_nn_align1": "fp64",
    "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x2_tn_align8": "bf16",
    "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8>": "fp16",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_tensor16x8x8": "tf32",
    "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_tensor16x8x16": "fp16",
    "sm80_xmma_wgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32": "bf16",
    "sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32_nchw_vect_c_32kcrs_tensor16x8x32": "int8",
    "sm86_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize64x64x64_tensor16x8x16": "fp16",
    "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x64_stage3_warpsize2x2x1_tensor16x8x32": "fp8",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_hgmma": "bf16",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_kernel__5x_cublas": "tf32",
    "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize64x64x64": "fp16",
    "void cutlass::device_kernel<cutlass3x_sm90_tensorop_gmma_bf16>": "bf16",
    "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT": "fp16",
    "nvjet_tst_128x256_64x4_2x1_v_bz_TNN": "bf16",
    "nvjet_sm100_tst_64x32_64x16_2x1_2cta_v_bz_TNT": "bf16",
    "nvjet_sm90_qqtst_128x256_128x4_2x1_v_bz_coopA_TNT": "fp8",
    "nvjet_sss_128x64_64x6_2x1_v_bz_TNN": "tf32",
    "nvjet_ootst_128x128_256x4_2x1_2cta_v_bz_Avec16UE4M3_Bvec16UE4M3_TNT": "fp4",
    "ampere_s1688gemm_fp32_128x128_ldg8_stages_32x1_tn": "tf32",
    "ampere_s16816gemm_fp32_128x128_ldg8_stages_32x1_tn": "",
    "sm100_xmma_fprop_implicit_gemm_f16f16_f16f32_nhwc": "fp16",
    "cutlass3x_sm100_tensorop_s128x128x8tf32gemm_f32_f32_f32_f32_f32_128x128x32_0_tnn_align4": "tf32",
    "cutlass3x_sm100_bstensorop_s256x128x64gemm_block_scaled_ue4m3xf4_ue4m3": "fp8",
    "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_6_128x64x64_4x1x1_kernel0_0": "fp16",
    "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x1x1": "fp16",
    "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, cutlass::half_t>>": "fp16",
    "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention)": "bf16",
    "i16832gemm_int8_128x128": "int8",
    "Cijk_Ailk_Bljk_BBS_BH_MT256x128x32_MI16x16x16x1_SN_1LDSB1": "bf16",
    "Cijk_Alik_Bljk_HHS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_MI16x16x1_CMS": "fp16",
    "Cijk_Ailk_Bljk_SB_MT128x128x16_MI32x32x2x1_SN": "fp32",
    "Cijk_Ailk_Bljk_DB_MT64x64x16_MI16x16x4x1_SN": "fp64",
    "igemm_fwd_gtcx3_nhwc_fp16_bx0_ex0_bt128x128x32_wt32x32x8_ws1x1_wr2x2": "fp16",
    "void ck::kernel_gemm_xdlops_v2r3<ck::GridwiseGemm, _Float16>": "",
    "void ck_tile::kentry<ck_tile::gfx950_t, 2, ck_tile::FmhaFwdKernel<std::bfloat16_t>>": "bf16",
    # of cuDNN on an H100, JAX 0.11.2
    "_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS_10bfloat16_t"
    "ENS_6layout40ColumnMajorTensorOpMultiplicandCongruousILi16ELi64EEE": "bf16",
}  # fmt: skip

DEVICE_KERNEL = (
    "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, "
    "cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecializedPingpong<5>, "
    "{}, cutlass::epilogue::collective::CollectiveEpilogue<float>>>(Params)"
)
"""How CUTLASS 3 names a kernel: by all of its types."""

ON |= {
    DEVICE_KERNEL.format(atom): precision
    for atom, precision in {
        "cute::SM90_64x128x16_F32F16F16_SS<(cute::GMMA::Major)0, (cute::GMMA::Major)1>": "fp16",
        "cute::SM90_64x128x16_F32BF16BF16_RS<(cute::GMMA::Major)0>": "bf16",
        "cute::SM90_64x128x8_F32TF32TF32_SS_TN<(cute::GMMA::ScaleIn)1>": "tf32",
        "cute::SM90_64x128x32_F32E4M3E5M2_SS_TN": "fp8",
        "cute::SM90_64x128x32_S32S8S8_SS_TN": "int8",
        "cute::SM80_16x8x4_F64F64F64F64_TN": "fp64",
        "cute::MMA_Traits<of another release>": "",
    }.items()
}

OFF = {
    "volta_sgemm_128x64_nn": "fp32",
    "ampere_sgemm_64x64_nt": "fp32",
    "maxwell_sgemm_128x128_raggedMn_nt_splitK": "fp32",
    "sgemm_128x128x8_NT": "fp32",
    "void sgemm_largek_lds64<false, false, 5, 5, 4, 4, 4, 32>(float*)": "fp32",
    "volta_dgemm_64x64_nt": "fp64",
    "maxwell_hgemm_128x128_nn": "fp16",
    "volta_gcgemm_64x32_nt": "fp32",
    "volta_cgemm_32x32_tn": "fp32",
    "volta_scudnn_128x64_relu_interior_nn_v1": "fp32",
    "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1": "fp32",
    "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>": "fp32",
    "void explicit_convolve_sgemm<float, int, 1024, 6, 7, 3, 3, 5>": "fp32",
    "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>": "fp32",
    "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>": "fp32",
    "void cudnn::cnn::conv2d_grouped_direct_kernel<float, float, float>": "fp32",
    "cutlass_80_simt_sgemm_128x64_8x5_nn_align1": "fp32",
    "cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x128x16_1x1x1_3_tnn_align1_bias_f32_relu": "fp32",
    "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x128x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4": "fp32",
    "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nchw_tilesize128x128x8": "fp32",
    "void gemvNSP_kernel<float, float, float, 1, 32, 4, 1024>": "fp32",
    "void gemmk1_kernel<float, 256, 5, true, false, false, false>": "fp32",
    "Cijk_Ailk_Bljk_SB_MT128x64x8_SE_K1_TT8_4_WG16_16_1": "fp32",
    "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1": "fp32",
    "naive_conv_fwd_nchw_float_double_float": "fp64",
}  # fmt: skip

MAYBE = [
    "cudnn_generated_fort_native_sm80_convFwd_pointwise_pointwise_kernel0",
    "gemm_fusion_dot_general_1.kd",
    "triton_gemm_dot_4",
    "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32",
    "sm80_xmma_something_new",
    "RNN_blockPersist_fp_LSTM<float>",
    "void ck_tile::kentry<ck_tile::GroupedGemm>",
    "cudnn_infer_kernel",
    "custom-call.7",
    "fusion_884",
    "copy_fusion_8832",
    "convert_8816",
    "multiply_subtract_fusion_884",
    "select_and_scatter_1688",
    "user_1688_loss_kernel",
    "",
]

BESIDE = {
    "void nhwcAddPaddingKernel<__nv_bfloat16, __nv_bfloat16, float, true>": KernelRole.HELPER,
    "void cask_plugin__5x_cudnn::xmma__5x_cudnn::init_device_workspace_kernel<int>": KernelRole.HELPER,
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>": KernelRole.HELPER,
    "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>": KernelRole.HELPER,
    "void fft2d_r2c_32x32<float, false, 0u, false>": KernelRole.HELPER,
    "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, true, true>": KernelRole.HELPER,
    "void splitKreduce_kernel<float, float, float, float>(cublasSplitKParams<float>)": KernelRole.HELPER,
    "cask_cudnn::computeOffsetsKernel(cask_cudnn::ComputeOffsetsParams)": KernelRole.HELPER,
    "Im3d2Col.kd": KernelRole.HELPER,
    "void ck_tile::kentry<ck_tile::FmhaBwdOGradDotOKernel<std::bfloat16_t>>": KernelRole.HELPER,
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>": KernelRole.OTHER,
    "void Eigen::internal::EigenMetaKernel<scalar_sum_op<Eigen::half>>": KernelRole.OTHER,
    "void tensorflow::functor::ShuffleInTensor3Simple<float, 2, 1, 0, false>": KernelRole.OTHER,
    "loop_convert_fusion.kd": KernelRole.OTHER,
    "input_transpose_fusion_1.kd": KernelRole.OTHER,
    "__amd_rocclr_copyBuffer.kd": KernelRole.OTHER,
    "void tensorflow::DepthwiseConv2dGPUKernelNHWC<float, 3, 3, 1>": KernelRole.DEPTHWISE,
}


@pytest.mark.parametrize(("name", "precision"), (ON | OFF).items())
def test_kernels_that_multiply_on_the_matrix_unit_or_without_it(name: str, precision: str) -> None:
    found = kernel(name)
    assert (found.on_unit, found.role, found.precision) == (name in ON, KernelRole.MATMUL, precision)


@pytest.mark.parametrize("name", MAYBE)
def test_kernels_whose_names_do_not_tell(name: str) -> None:
    assert kernel(name).on_unit is None
    assert of_operation((name,)) is None


@pytest.mark.parametrize("name", BESIDE)
def test_kernels_that_only_prepare_or_have_nothing_to_multiply(name: str) -> None:
    found = kernel(name)
    assert (found.on_unit, found.role) == (False, BESIDE[name])


@pytest.mark.parametrize(("gpu", "precision"), sorted({*synthetic.GEMM, *synthetic.MMA_CONVOLUTION}))
def test_synthetic_kernels_tell_unit_and_precision(gpu: str, precision: str) -> None:
    table = synthetic.GEMM | synthetic.MMA_CONVOLUTION
    for name in {table[gpu, precision], synthetic.GEMM[gpu, precision]}:
        found = kernel(name.format("fprop"))
        assert (found.on_unit, found.precision) == (precision != "fp32", precision)


WINOGRAD = "void cudnn::winograd_nonfused::winogradForwardData4x4<__half, __half>"


@cases(
    (("nchwToNhwcKernel", next(iter(ON)), "splitKreduce_kernel"), True),  # one is enough
    (("nchwToNhwcKernel", "void Eigen::internal::EigenMetaKernel<>"), None),  # helpers alone do not tell
    ((), None),
    ((WINOGRAD, "volta_sgemm_128x64_nn"), False),  # runs where its products do
    ((WINOGRAD, "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn"), True),
)
def test_where_an_operation_ran(names: tuple[str, ...], *, on_unit: bool | None) -> None:
    assert of_operation(names) is on_unit


def test_what_the_kernels_of_an_operation_tell_together() -> None:
    assert precision_of(("nchwToNhwcKernel", next(iter(ON)), "splitKreduce_kernel")) == "fp16"
    assert multiplies(("loop_fusion", "gemm_fusion_dot"))
    assert not multiplies(("loop_fusion", "Im3d2Col.kd", "mystery"))
    assert kernel("mystery") == Kernel()


def test_every_family_names_its_maker_and_source_and_is_met_by_one_of_these_names() -> None:
    """A row that never decides is dead: another one takes its names before it."""
    assert all(family.maker and family.source in (SEEN, DOCS) for family in FAMILIES)
    names = [*ON, *OFF, *MAYBE, *BESIDE, *RARE]
    met = [next((family for family in FAMILIES if family.pattern.search(name)), None) for name in names]
    assert [family.pattern.pattern for family in FAMILIES if family not in met] == []


RARE = [
    "void fmha_cutlassF_f32_aligned_64x64_rf_sm50()",
    "void Eigen::internal::EigenContractionKernel<float>",
    "xmma_new_tensor16x8x16_gemm",
    "miopenSp3AsmConvFury_v4_0_0_gfx11_fp16",
    "MIOpenBatchNormFwdTrainSpatial",
]


# What ran a CPU's products, and with which instructions.

ON_CPU = Device(DeviceKind.CPU, 1, 1)


def machine(*flags: str) -> Recording:
    return recording(manifest=manifest(host=HostMachine("vm", "a CPU", flags, 4, 4.0, 2**34)))


def found(*rows: OperationTime, on: Recording | None = None) -> OneDnn:
    return OneDnn.measure(Operations(rows), ON_CPU, on or machine("avx2", "avx512f"), Framework())


def test_products_are_sorted_by_what_ran_them() -> None:
    seen = found(
        matmul(ms=6.0, ran="a:_MklNativeConv2D"),
        matmul(ms=3.0, ran="b:_FusedConv2D", name="b"),
        matmul(ms=1.0, ran="c:Conv2D", name="c"),
    )
    assert (seen.onednn_ms, seen.eigen_fused_ms, seen.other_ms) == (6.0, 3.0, 1.0)
    assert seen.share == pytest.approx(0.6)


@cases(
    (("avx2", "avx512f", "amx_tile"), "bfloat16", "AMX"),
    (("avx2", "avx512f", "amx_tile"), "float32", "AVX-512"),
    (("avx2", "avx512f"), "bfloat16", "AVX-512"),
    (("avx2",), "float32", "AVX2"),
)
def test_the_instructions_follow_from_flags_and_precision(flags: tuple[str, ...], dtype: str, best: str) -> None:
    assert found(matmul(dtype=dtype), on=machine(*flags)).instructions == best


@cases((recording(), "flags; record"), (machine("x"), "distinguishes"))
def test_unknown_flags_leave_the_instructions_unknown(on: Recording, why: str) -> None:
    seen = found(matmul(), on=on)
    assert not seen.instructions
    assert why in seen.why_unknown


# What could run on the matrix unit as it is: by type, dtype and dimensions, on this device.


def gpu(major: int, minor: int, **stats: Any) -> Hardware:
    plane = device(line("Stream #1", ("k", 0, 5)), compute_cap_major=major, compute_cap_minor=minor, **stats)
    return chart(trace([], gpus=[plane])).fact(Hardware)


V100, T4, A100, H100, P4 = gpu(7, 0), gpu(7, 5), gpu(8, 0), gpu(9, 0), gpu(6, 1)
MI300X = gpu(9, 4, device_vendor="AMD")


@cases(
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
)
def test_by_device_and_type(hardware: Hardware, dtype: str, possible: object) -> None:
    assert is_eligible(matmul(dtype=dtype, weights=(3, 3, 64, 64)), hardware) is possible


@cases(
    (V100, (3, 3, 64, 60), None),
    (V100, (3, 3, 3, 64), None),
    (A100, (3, 3, 64, 60), True),
    (V100, (100, 10), None),
    (V100, (104, 16), True),
    (V100, (None, 64), None),
)
def test_by_dimensions_where_old_libraries_mind(
    hardware: Hardware, weights: tuple[int | None, ...], possible: object
) -> None:
    row = matmul("MatMul" if len(weights) == 2 else "Conv2D", dtype="float16", weights=weights)
    assert is_eligible(row, hardware) is possible


@cases(
    *((kind, "depthwise/batch_norm", True) for kind in ("Conv2DBackpropFilter", "Conv3D", "BatchMatMulV2")),
    *((kind, "depthwise/batch_norm", True) for kind in ("Einsum", "CudnnRNNV3", "MatMul")),
    ("Relu", "conv/MatMul", False),
    ("DepthwiseConv2dNative", "model/layer", False),
)
def test_operations_that_multiply_whatever_they_are_called(kind: str, name: str, *, possible: bool) -> None:
    assert is_eligible(matmul(kind, dtype="float32", name=name), A100) is possible


def test_a_product_that_xla_compiled_is_told_by_its_kernel() -> None:
    name = "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x16x1"
    row = OperationTime(name=name, type=UNNAMED, ms=1.0, ran=(name,))
    assert row.is_matrix
    assert is_eligible(row, MI300X) is True
    triton = OperationTime(name="t", type=UNNAMED, ms=1.0, ran=("gemm_fusion_dot.kd",))
    assert is_eligible(triton, MI300X) is None
    assert not OperationTime(name="f", type=UNNAMED, ms=1.0, ran=("loop_fusion",)).is_matrix


# Whether the matrix unit was used: by FLOPs where they are known, by kernel names else.

ON_UNIT = "volta_h884gemm_64x128_ldg8_nn"
OFF_UNIT = "volta_sgemm_128x64_nn"


def on_gpu(*kernels: tuple[str, float, float, str], record: Any = None, gpu: Any = v100) -> MatrixUnit:
    """A step in which these kernels run, each with its operation."""
    rows = [(name, start, end, {"tf_op": operation}) for name, start, end, operation in kernels]
    plane = gpu(line("Stream #1", *rows))
    return chart(trace([markers(1, 100)], gpus=[plane]), recording(record)).fact(MatrixUnit)


def test_matrix_time_is_split_by_what_its_kernels_names_tell() -> None:
    on, off = (ON_UNIT, 0, 10, "a:MatMul"), (OFF_UNIT, 10, 30, "b:MatMul")
    found = on_gpu(on, off, ("mystery", 30, 35, "c:Conv2D"), (ON_UNIT, 35, 40, "d:Relu"))
    assert (found.on_unit_ms, found.off_unit_ms, found.unknown_ms) == pytest.approx((10, 20, 5))
    assert (found.matrix_ms, found.busy_ms) == pytest.approx((35, 40))
    assert (found.utilization, found.unit) == (None, "Tensor Core")


def test_utilization_is_flops_over_the_peak_of_the_busy_time() -> None:
    shapes = [["float16", [1024, 1024]], ["float16", [1024, 1024]]]
    record = {"graphs": [{"operations": [graph_operation("a", "MatMul", shapes, shapes[:1])]}]}
    found = on_gpu((ON_UNIT, 0, 1, "a:MatMul"), ("x", 1, 2, "b:Relu"), record=record)
    peak = 1.53e9 * 80 * 1024
    figures = found.peak_flop_s, found.utilization, found.matrix_rate
    assert figures == pytest.approx((peak, 2 * 1024**3 / 2e-3 / peak, 2 * 1024**3 / 1e-3))
    unknown = on_gpu((ON_UNIT, 0, 1, "a:MatMul"), (ON_UNIT, 1, 9, "b:MatMul"), record=record)
    assert unknown.utilization is None  # one of unknown size
    assert unknown.on_unit_ms == pytest.approx(9)


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


OLD = device(line("Stream #1", ("k", 0, 1)), compute_cap_major=6, compute_cap_minor=1)


def unit_of(*threads: Thread, gpu: Machine | None = None) -> MatrixUnit:
    return chart(trace([markers(1, 100), *threads], gpus=[gpu] if gpu else [])).fact(MatrixUnit)


ADD = OperationTime(name="add", type="AddV2", ms=1.0)
NO_CPU = Device(DeviceKind.GPU, 1, 1)

test_what_is_not_judged = unavailable(
    (lambda: unit_of(line("t", ("a:MatMul", 0, 5))), "CPU"),
    (lambda: unit_of(gpu=OLD), r"6\.1"),
    (lambda: unit_of(gpu=v100()), r"not recorded|no kernel on it"),
    (lambda: unit_of(gpu=v100(line("Stream #1", ("mystery", 0, 9)))), "does not name"),
    (lambda: OneDnn.measure(Operations((matmul(),)), NO_CPU, machine("avx2"), Framework()), "on a GPU"),
    (lambda: found(ADD), "no matmul"),
)


def test_a_step_without_matrix_work_is_known_to_have_none() -> None:
    rows = Operations((OperationTime(name="r", type="ReluGrad", ms=5),))
    found = MatrixUnit.measure(
        rows, Hardware(DeviceKind.GPU, "x", "Tensor Core"), Device(DeviceKind.GPU, 1, 1), None
    )
    assert (found.matrix_ms, found.busy_ms) == (0, 5)


def test_conversions_beside_a_product_count_for_neither_side() -> None:
    converts = ("void cudnn::ops::nchwToNhwcKernel<__half>", 0, 6, "a:Conv2D")
    found = on_gpu(converts, (ON_UNIT, 6, 10, "a:Conv2D"))
    assert (found.on_unit_ms, found.off_unit_ms, found.beside_ms) == pytest.approx((4, 0, 6))
    assert dict(found.precisions) == pytest.approx({"fp16": 4})


@each("XlaModule:", "cluster_0_1/xla_run:_XlaRun")
def test_what_xla_compiled_is_told_kernel_by_kernel(name: str) -> None:
    """JAX's programs and TensorFlow's clusters name all their kernels alike."""
    found = on_gpu((ON_UNIT, 0, 4, name), ("loop_add_fusion", 4, 6, name), ("gemm_fusion_dot", 6, 7, name))
    assert (found.on_unit_ms, found.unknown_ms) == pytest.approx((4, 1))
    assert (found.matrix_ms, found.busy_ms) == pytest.approx((5, 7))


def test_a_product_that_could_have_used_the_unit_as_it_is() -> None:
    ampere = partial(device, compute_cap_major=8, compute_cap_minor=0)
    found = on_gpu(("ampere_sgemm_128x64_nn", 0, 4, "a:MatMul"), gpu=ampere)
    assert (found.unused_ms, found.off_unit_ms) == pytest.approx((4, 4))
