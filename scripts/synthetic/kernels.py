"""Which kernel NVIDIA's libraries run for an operation, by architecture and precision.

Seen in real traces: the float32 names of Volta, Eigen's and cuDNN's batch normalization. The others
are recalled from public logs; they serve to test tables of names, not as evidence.
"""

import re

from scripts.synthetic.operation import Kind, Op

FPROP, DGRAD, WGRAD = "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"
ROLE = {FPROP: "fprop", DGRAD: "dgrad", WGRAD: "wgrad"}

VOLTA_CONVOLUTION = {
    FPROP: "volta_scudnn_128x64_relu_interior_nn_v1",
    DGRAD: "volta_scudnn_128x64_stridedB_interior_nn_v1",
    WGRAD: "volta_scudnn_128x64_stridedB_splitK_interior_nn_v1",
}
"""Float32; a T4 runs them too, and Ampere's differ in the first word."""

MMA_CONVOLUTION = {
    ("v100", "fp16"): "volta_fp16_s884cudnn_fp16_256x64_ldg8_{}_f2f_exp_small_nhwc_tn_v1",
    ("t4", "fp16"): "turing_fp16_s1688cudnn_fp16_128x128_ldg8_{}_f2f_exp_interior_nhwc_tn_v1",
    ("a100", "tf32"): "sm80_xmma_{}_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_"
    "tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_kernel_cudnn",
    ("a100", "fp16"): "sm80_xmma_{}_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_"
    "tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16_kernel_cudnn",
    ("a100", "bf16"): "sm80_xmma_{}_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_"
    "tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16_kernel_cudnn",
    ("h100", "tf32"): "sm90_xmma_{}_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_"
    "tilesize128x128x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn",
    ("h100", "fp16"): "sm90_xmma_{}_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_"
    "tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn",
    ("h100", "bf16"): "sm90_xmma_{}_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_"
    "tilesize128x128x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn",
}  # fmt: skip

SCALAR_CONVOLUTION = {("gtx1660", "fp16"): "volta_fp16_scudnn_fp16_128x64_{}_interior_nn_v1"}
SCALAR_GEMM = {("gtx1660", "fp16"): "volta_fp16_sgemm_fp16_128x64_nn"}
"""Both of GPUs without Tensor Cores."""

GEMM = {
    ("v100", "fp32"): "volta_sgemm_128x64_nn",
    ("v100", "fp16"): "volta_h884gemm_128x64_ldg8_nn",
    ("gtx1660", "fp32"): "volta_sgemm_128x64_nn",
    ("t4", "fp32"): "volta_sgemm_128x64_nn",
    ("t4", "fp16"): "turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn",
    ("a100", "fp32"): "ampere_sgemm_128x64_nn",
    ("a100", "tf32"): "cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4",
    ("a100", "fp16"): "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn",
    ("a100", "bf16"): "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_nn",
    ("h100", "fp32"): "ampere_sgemm_128x64_nn",
    ("h100", "tf32"): "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_kernel__5x_cublas",
    ("h100", "fp16"): "nvjet_hsh_128x256_64x4_2x1_v_bz_TNN",
    ("h100", "bf16"): "nvjet_tst_128x256_64x4_2x1_v_bz_TNN",
}

BATCH_NORM = {
    "FusedBatchNormV3": "void cudnn::detail::bn_fw_tr_1C11_kernel_NCHW<{0}, float, 512, true, 1>"
    "(cudnnTensorStruct, {0} const*)",
    "FusedBatchNormGradV3": "void cudnn::detail::bn_bw_1C11_kernel_new<{0}, float, float2, 512, "
    "true, 1>(float, float, float, float, {0} const*)",
}
OTHERS = {
    "MaxPool": "void cudnn::pooling_fw_4d_kernel<{0}, float, cudnn::maxpooling_func<float, 0>, 0, false>"
    "(cudnnTensorStruct, {0} const*)",
    "MaxPoolGrad": "void cudnn::pooling_bw_kernel_max<{0}, float, cudnn::maxpooling_func<float, 0>, 0>"
    "(cudnnTensorStruct, {0} const*)",
    "AvgPool": "void cudnn::pooling_fw_4d_kernel<{0}, float, cudnn::averpooling_func<float>, 1, false>"
    "(cudnnTensorStruct, {0} const*)",
    "AvgPoolGrad": "void tensorflow::AvePoolBackwardNHWC<{0}>(int, {0} const*)",
    "Transpose": "void tensorflow::functor::SwapDimension1And2InTensor3UsingTiles<unsigned int, 1024, 1024, "
    "2, false>(unsigned int const*, tensorflow::functor::Dimension<3>, unsigned int*)",
    "XlaLaunch": "loop_multiply_fusion",
}
"""As in cuDNN's and TensorFlow's sources; XLA names a kernel after its fusion."""

CONVERSION = "void cudnn::ops::nchwToNhwcKernel<{0}, {0}, float, false, true, 0>(cudnnTensorStruct)"
"""What cuDNN runs before and after a convolution whose images it wants in another layout."""

GROUPED = (
    "void conv2d_grouped_direct_kernel<false, true, false, false, 0, 0, int, {0}, {0}, {0}, float, "
    "true, false, 1, cudnnTensorFormat_t>({0} const*, cudnnTensorStruct)"
)
"""Seen in real traces, with a few of its parameters."""

EIGEN = (
    "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<"
    "Eigen::internal::scalar_{1}_op<{0}>>, Eigen::GpuDevice>, int>(...)"
)


TILE = re.compile(r"\d+x\d+")
"""The part of a result that one block of threads computes, in a kernel's name."""


def kernel(op: Op, gpu: str, precision: str) -> str:
    """Return the symbol that runs an operation."""
    value = {"fp16": "Eigen::half", "bf16": "Eigen::bfloat16"}.get(precision, "float")
    if op.kind is Kind.LAYOUT and op.type != "Transpose":
        return CONVERSION.format(value)
    if op.kind is Kind.SLOW:
        return GROUPED.format(value)
    if op.kind is Kind.CONVOLUTION:
        kept = _convolution(op.type, gpu, precision)
        return TILE.sub(TILES[op.trial - 1], kept, count=1) if op.trial else kept
    if op.kind is Kind.MATMUL:
        return (GEMM | SCALAR_GEMM)[gpu, precision]
    if op.kind is Kind.DEPTHWISE:
        part = op.type.removeprefix("DepthwiseConv2dNative")
        return f"void tensorflow::DepthwiseConv2d{part}GPUKernelNHWC<{value}, 3, 3, 1>(DepthwiseArgs)"
    return (BATCH_NORM | OTHERS).get(op.type, EIGEN).format(value, op.type.lower())


TILES = ("128x128", "128x32", "64x64", "32x32")
"""In the names of the kernels that a search tries beside the one that it keeps."""


def _convolution(kind: str, gpu: str, precision: str) -> str:
    if precision == "fp32":
        family = "volta" if gpu in ("v100", "t4", "gtx1660") else "ampere"
        return VOLTA_CONVOLUTION[kind].replace("volta", family)
    return (MMA_CONVOLUTION | SCALAR_CONVOLUTION)[gpu, precision].format(ROLE[kind])


def details(op: Op) -> str:
    """Return the launch's shape in the words of the CUPTI collector."""
    if op.is_matrix:
        return "regs:128 static_shared:0 dynamic_shared:49152 grid:64,4,1 block:256,1,1 occ_pct:25"
    return "regs:32 static_shared:0 dynamic_shared:0 grid:160,1,1 block:1024,1,1 occ_pct:100"


SIZES = "int32[4]"
"""The operand by which a gradient is told the sizes of its result."""


def shapes(op: Op, precision: str) -> str:
    """Return the operands' shapes as TensorFlow's tracer writes them."""
    value = {"fp16": "half", "bf16": "bfloat16"}.get(precision, "float")
    texts = [f"{value}[{','.join(map(str, shape))}]" for shape in op.operands]
    if op.type.endswith("BackpropFilter"):
        texts.insert(1, SIZES)
    if op.type.endswith("BackpropInput"):
        texts.insert(0, SIZES)
    return f"({';'.join(texts)})"
