"""What a GPU kernel's name shows: its role, whether it uses the matrix unit, and its precision."""

import re
from dataclasses import dataclass
from functools import lru_cache

from tfdoctor.facts.operations.kernel_names import FAMILIES, KernelRole

UNKNOWN = "the kernel's name belongs to no family that tfdoctor knows"


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, identified by its name.

    ``precision`` is the type of the factors that it multiplies: "fp64", "fp32", "tf32", "fp16", "bf16", "fp8",
    "fp4", "int8", or "" when the name does not show it.
    """

    name: str
    role: KernelRole | None = None  # within its operation; None when unknown
    on_unit: bool | None = None  # whether it runs on the matrix unit (Tensor Cores, AMD's matrix cores)
    reason: str = ""  # why it is not known whether it does
    precision: str = ""


# Name patterns, the more specific first: mixed names hold the factors' type and float32, the sum's type.
PRECISIONS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
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
        return Kernel(name, reason=UNKNOWN, precision=precision)
    precision = family.precision or precision
    if precision == "fp32" and family.on_unit and family.maker.startswith("NVIDIA"):
        precision = ""  # Tensor Cores do not multiply float32, so that it can only be the sum's type
    return Kernel(name, family.role, family.on_unit, family.reason if family.on_unit is None else "", precision)


def of_operation(names: tuple[str, ...]) -> bool | None:
    """Say whether an operation used the matrix unit, from all its kernels' names; None when unknown.

    One kernel on the unit is enough: the others are conversions. The unit was not used when all kernels
    that multiply are known to avoid it; where none is known to multiply, the answer is None.
    """
    kernels = [kernel(name) for name in names]
    if any(launched.on_unit for launched in kernels):
        return True
    decisive = [launched for launched in kernels if launched.role in (KernelRole.MATMUL, KernelRole.DEPTHWISE)]
    return False if decisive and all(launched.on_unit is False for launched in decisive) else None


def multiplies(names: tuple[str, ...]) -> bool:
    """Say whether any of the kernels is known to be a matmul or convolution."""
    return any(kernel(name).role is KernelRole.MATMUL for name in names)


def precision_of(names: tuple[str, ...]) -> str:
    """Return the precision of an operation's first matmul that shows one, else of any kernel, else ""."""
    kernels = [kernel(name) for name in names]
    matmuls = [launched for launched in kernels if launched.role is KernelRole.MATMUL]
    return next((launched.precision for launched in matmuls or kernels if launched.precision), "")
