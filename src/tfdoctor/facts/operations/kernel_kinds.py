"""What a GPU kernel's name shows: its role, whether it uses the matrix unit, and its precision.

Naming schemes of NVIDIA's and AMD's libraries are tried in the order in which they stand: the first match decides.
``SEEN`` families occur in real traces that this project measured (V100, T4, RTX 2060, P4, MI300X, MI355X); ``DOCS``
ones are known from the libraries' documentation and sources or from published profiles, and may become outdated.
"""

from functools import lru_cache
from typing import NamedTuple

from tfdoctor.facts.kit import *


class KernelRole(StrEnum):
    """What a kernel does within the operation that launched it."""

    MATMUL = "matmul"  # multiplies matrices, or convolves
    HELPER = "helper"  # converts layouts, transforms tiles, adds partial sums: for a matmul
    DEPTHWISE = "depthwise"  # convolves each channel alone
    OTHER = "other"  # nothing that a matrix unit could do


SEEN = "seen in real traces"
DOCS = "from documentation and published profiles"


class Family(NamedTuple):
    """Kernels whose names hold ``pattern``; ``on_unit`` is None where the name does not tell.

    ``precision`` is the type of the factors where the whole family has one ("fp16", "tf32", ...).
    """

    pattern: re.Pattern[str]
    maker: str  # "NVIDIA cuBLAS", "AMD Tensile", ...
    role: KernelRole
    on_unit: bool | None
    source: str
    precision: str = ""


def _row(pattern: str, *more: Any) -> Family:
    return Family(re.compile(pattern), *more)


ON, OFF, MAYBE = True, False, None
MATMUL, HELPER, DEPTHWISE, OTHER = KernelRole

# m, n and k of the Tensor Cores' instructions, as kernels' names join them. The operation follows directly
# ("s1688gemm"): alone, they may be the numbers that XLA gives its fusions ("fusion_1688").
SHAPES = r"(?:884|1684|1688|16168|16816|16832|16864|8816|8832|161616|32328|83216)"
# A Tensor Core's instruction as CUTLASS 3 writes it: "SM90_64x128x16_F32F16F16_SS", "SM100_MMA_F16BF16_SS".
ATOM = r"SM(?:70|75|80|89|90|100|101|103|120)_\d+x\d+x\d+_|SM1\d\d_MMA_"

# AMD's and XLA's first, because their patterns are the more specific ones.
FAMILIES: tuple[Family, ...] = (
    _row(r"^Cijk_\w*_MI\d+x\d+", "AMD Tensile (rocBLAS, hipBLASLt)", MATMUL, ON, SEEN),
    _row(r"^Cijk_\w*_TT\d+_\d+", "AMD Tensile (rocBLAS)", MATMUL, OFF, DOCS),
    # names of AMD's kernels hold the matrix instruction, but these are cut off or have none
    _row(r"^Cijk_", "AMD Tensile (rocBLAS, hipBLASLt)", MATMUL, MAYBE, DOCS),
    _row(r"Fmha(?:Bwd)?(?:OGradDotO|ConvertQGrad|\w*Combine)", "AMD composable kernel", HELPER, OFF, SEEN),
    _row(r"ck_tile::.*Fmha(?:Fwd|Bwd)", "AMD composable kernel", MATMUL, ON, SEEN),
    _row(r"xdlops|_xdl_|Xdl|mfma|MFMA|(?<![A-Za-z])[Ww]mma|igemm_\w+_gtcx", "AMD MIOpen, composable kernel",
         MATMUL, ON, DOCS),
    _row(r"igemm_\w+_gtc_|ck::\w*.*_dl_|[Mm]iopenSp3AsmConv\w*_gfx9_|[Mm]iopenGcnAsmConv|naive_conv_|MIOpenConv\w*",
         "AMD MIOpen", MATMUL, OFF, DOCS),
    _row(r"[Mm]iopenSp3AsmConv", "AMD MIOpen", MATMUL, MAYBE, DOCS),  # Winograd of newer generations: either unit
    _row(r"Im\d?d?2Col|Im3d2Col|Col2Im|batched_transpose_|SubTensorOp", "AMD MIOpen", HELPER, OFF, SEEN),
    _row(r"ck(?:_tile)?::", "AMD composable kernel", MATMUL, MAYBE, DOCS),  # the name holds no instruction
    _row(r"MIOpenBatchNorm|MIOpenPooling|mloPooling|MIOpenSoftmax", "AMD MIOpen", OTHER, OFF, DOCS),
    _row(r"__amd_rocclr_", "AMD runtime", OTHER, OFF, SEEN),
    # Triton chooses the instruction by type and tile, which the kernel's name does not show
    _row(r"^(?:__)?(?:triton_)?gemm_fusion|^triton_gemm", "XLA, Triton", MATMUL, MAYBE, SEEN),
    _row(r"^(?:loop|input|wrapped|reduce|transpose|scatter|concatenate)_\w*|^triton_softmax|^__triton_fusion_softmax",
         "XLA", OTHER, OFF, SEEN),
    _row(r"nhwcAddPadding|init_device_workspace|ReduceSplitK|convertTensor_kernel", "NVIDIA cuDNN",
         HELPER, OFF, SEEN),
    _row(r"simt|ffma|_dfma", "NVIDIA CUTLASS, cuDNN", MATMUL, OFF, DOCS),
    _row(r"scudnn_winograd|hcudnn_winograd", "NVIDIA cuDNN", MATMUL, OFF, SEEN),
    _row(rf"(?<![a-z])[hsidczb]?f?{SHAPES}(?=gemm|cudnn|tf32|bf16|f16|f32|i8|fp|e4m3|e5m2|fprop|dgrad|wgrad"
         r"|conv)", "NVIDIA cuBLAS, cuDNN, CUTLASS", MATMUL, ON, DOCS),
    _row(r"cutlass\w*Kernel\w*Gemm\w*TensorOpMultiplicand", "NVIDIA CUTLASS, cuDNN", MATMUL, ON, SEEN),
    _row(r"cutlass\w*tensorop", "NVIDIA CUTLASS", MATMUL, ON, DOCS),
    _row(rf"{ATOM}|MainloopSm\d+\w*[GU]mma", "NVIDIA CUTLASS 3", MATMUL, ON, DOCS),
    _row(r"(?<![a-z])(?:[hidq]mma|w?gmma|wgmma|utcmma|tcgen05|wmma)(?![a-z])", "NVIDIA", MATMUL, ON, DOCS),
    _row(r"xmma_.*f32f32_f32f32", "NVIDIA cuBLAS, cuDNN", MATMUL, OFF, DOCS, "fp32"),
    _row(r"xmma_.*tensor\d+x\d+x\d+", "NVIDIA cuBLAS, cuDNN", MATMUL, ON, DOCS),
    _row(r"xmma_.*(?:f16f16|tf32|bf16|i8i8|i8u8|e4m3|e5m2|fp4|e2m1)", "NVIDIA cuBLAS, cuDNN", MATMUL, ON, DOCS),
    _row(r"xmma_", "NVIDIA cuBLAS, cuDNN", MATMUL, MAYBE, DOCS),  # of unknown types
    _row(r"nvjet_", "NVIDIA cuBLAS 12", MATMUL, ON, DOCS),
    _row(r"sdpa_sm\d+_flash|fmha_v2|fmhaSm\d+|fmha_cutlass[FB]_b?f16_aligned\w*_sm[789]|"
         r"flash_(?:fwd|bwd)_(?!convert|dot|preprocess)|FlashAttention", "NVIDIA attention", MATMUL, ON, DOCS),
    _row(r"fmha_cutlass[FB]_f32\w*_sm[57]\d", "NVIDIA attention", MATMUL, OFF, DOCS, "fp32"),
    # cuDNN also generates such kernels for the scalar units, and the name does not say for which
    _row(r"cudnn_generated|fort_native", "NVIDIA cuDNN's runtime fusion", MATMUL, MAYBE, DOCS),
    _row(r"RNN_blockPersist|persistRNN", "NVIDIA cuDNN", MATMUL, MAYBE, DOCS),  # either unit
    _row(r"(?:^|_|\s)(?:gc|s|d|c|z|h|i)gemm_|magma_[sdh]gemm|sgemm_largek", "NVIDIA cuBLAS", MATMUL, OFF, SEEN),
    _row(r"gemmSN_|gemmk1_|gemv|dot_kernel", "NVIDIA cuBLAS", MATMUL, OFF, SEEN),
    _row(r"(?<![a-z])[shid]cudnn", "NVIDIA cuDNN", MATMUL, OFF, SEEN),
    _row(r"(?:im|ex)plicit_convolve_sgemm|precomputed_convolve_sgemm", "NVIDIA cuDNN", MATMUL, OFF, SEEN),
    _row(r"[dw]grad(?:2d|_alg[01]|_engine)|conv2d_c1_k1|grouped_direct_kernel", "NVIDIA cuDNN", MATMUL, OFF, SEEN),
    _row(r"[Ww]inograd\w*(?:Data|Filter|Output|Delta|Tiles)|fft[12]d_|flip_filter|compute_gemm_pointers|"
         r"nchwToNhwc|nhwcToNchw|compute\w*OffsetsKernel|splitKreduce|scalePackedTensor|scal_kernel|"
         r"im2col|col2im|reorderWeight", "NVIDIA cuDNN, cuBLAS", HELPER, OFF, SEEN),
    _row(r"[Dd]epthwise", "NVIDIA cuDNN, TensorFlow", DEPTHWISE, OFF, DOCS),
    _row(r"bn_[fb]w_|batchnorm_|pooling_[fb]w|op_generic_tensor|softmax_[fb]w|LRN|dropout",
         "NVIDIA cuDNN", OTHER, OFF, SEEN),
    _row(r"Eigen(?:Float)?ContractionKernel", "Eigen", MATMUL, OFF, DOCS),
    _row(r"Eigen::|tensorflow::|cub::", "TensorFlow", OTHER, OFF, SEEN),
)  # fmt: skip


class Kernel(Record):
    """A kernel, identified by its name.

    ``precision`` is the type of the factors that it multiplies: "fp64", "fp32", "tf32", "fp16", "bf16", "fp8",
    "fp4", "int8", or "" when the name does not show it.
    """

    role: KernelRole | None = None  # within its operation; None when unknown
    on_unit: bool | None = None  # whether it runs on the matrix unit (Tensor Cores, AMD's matrix cores)
    precision: str = ""


# Name patterns, the more specific first: mixed names hold the factors' type and float32, the sum's type.
PRECISIONS = tuple(
    (precision, re.compile(pattern))
    for precision, pattern in (
        ("fp4", r"e2m1|fp4|nvjet_(?:sm\d+_)?oo"),
        ("fp8", r"(?:x\d+_F(?:32|16)|MMA_F8F6F4_)E[45]M[23]"),
        ("tf32", r"x\d+_F32TF32TF32|MMA_TF32_"),
        ("bf16", r"x\d+_F32BF16BF16"),
        ("fp16", r"x\d+_F(?:32|16)F16F16"),
        ("int8", r"x\d+_S32[SU]8[SU]8|MMA_S8_"),
        ("fp64", r"x\d+_F64F64F64"),
        ("fp8", r"e4m3|e5m2|fp8|f8f8|_f8_|nvjet_(?:sm\d+_)?[qr]|^Cijk_\w+?_jk_F8|^Cijk_\w+_B?F8"),
        ("tf32", r"tf32|tfloat32|ampere_s1688gemm_fp32|nvjet_(?:sm90_)?ss|^Cijk_[A-Z]\w+?_Bj\w+_S_MX"),
        ("bf16", r"bf16|bfloat16|nvjet_(?:sm\d+_)?t|^Cijk_A\w+?_B\w+?_B[BS]+_"),
        ("int8", r"int8|i8i8|[is]8816|i16832|(?<![a-z])icudnn|^Cijk_A\w+?_B\w+?_(?:4xi8|I8)"),
        ("fp16", r"fp16|f16|half|(?:[Vv]olta|[Tt]uring)_hmma|(?<![a-z])h(?:gemm|cudnn|884|1688|16816)"),
        ("fp16", r"nvjet_(?:sm\d+_)?h|^Cijk_A\w+?_B\w+?_H[HBS]+_"),
        ("fp64", r"(?<![a-z])d(?:gemm|884|8816|16816)|f64f64|double|^Cijk_A\w+?_B\w+?_DB"),
        ("tf32", r"tensorop_s(?:1688|161688)gemm"),
        ("fp32", r"(?<![a-z])(?:s|gc|c)gemm|scudnn|convolve_sgemm|f32f32|fp32|_f32_|<float|float[2>]"),
        ("fp32", r"^Cijk_A\w+?_B\w+?_S_?B_"),
    )
)  # fmt: skip

# The types of tensors by the precision they are multiplied in: TF32 reads float32.
WIDE = {"fp32": "float32", "tf32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}


@lru_cache(maxsize=4096)
def kernel(name: str) -> Kernel:
    """Identify a kernel by its name; an unknown one has no family."""
    family = next((candidate for candidate in FAMILIES if candidate.pattern.search(name)), None)
    precision = next((precision for precision, pattern in PRECISIONS if pattern.search(name)), "")
    if family is None:
        return Kernel(precision=precision)
    precision = family.precision or precision
    if precision == "fp32" and family.on_unit and family.maker.startswith("NVIDIA"):
        precision = ""  # Tensor Cores do not multiply float32, so that it can only be the sum's type
    return Kernel(family.role, family.on_unit, precision)


def of_operation(names: tuple[str, ...]) -> bool | None:
    """Say whether an operation used the matrix unit, from all its kernels' names; None when unknown.

    One kernel on the unit is enough: the others are conversions. The unit was not used when all kernels
    that multiply are known to avoid it; where none is known to multiply, the answer is None.
    """
    kernels = [kernel(name) for name in names]
    if any(launched.on_unit for launched in kernels):
        return True
    decisive = {launched.on_unit for launched in kernels if launched.role in (MATMUL, DEPTHWISE)}
    return False if decisive == {False} else None


def multiplies(names: tuple[str, ...]) -> bool:
    """Say whether any of the kernels is known to be a matmul or convolution."""
    return any(kernel(name).role is MATMUL for name in names)


def precision_of(names: tuple[str, ...]) -> str:
    """Return the precision of an operation's first matmul that shows one, else of any kernel, else ""."""
    kernels = [kernel(name) for name in names]
    matmuls = [launched for launched in kernels if launched.role is MATMUL]
    return next((launched.precision for launched in matmuls or kernels if launched.precision), "")
