"""What a matrix unit gains from 16 bit and pads to, and the matrix units of CPUs."""

from dataclasses import dataclass

from tfdoctor.terms.verdict import Bound


@dataclass(frozen=True, slots=True)
class SixteenBit:
    """How 16 bit changes the time of a matmul or convolution that runs in float32 now.

    ``scales`` is the time in 16 bit relative to float32; ``scalar_scales`` the same for matmuls that
    avoid the matrix unit although float32 could use it (as TF32), else None.
    """

    dtype: str  # "bfloat16" or "float16"
    scales: float
    bound: Bound
    source: str
    scalar_scales: float | None = None
    matmul_scales: float | None = None  # of matmuls, where they gain more than convolutions


@dataclass(frozen=True, slots=True)
class Tile:
    """The multiple to which the matrix unit pads the channels of a matmul.

    ``faster_above`` says that the next multiple above is faster too, because whole tiles use other
    kernels; elsewhere it costs as much as the padded width does now. ``both_sides`` says that the input
    channels of a convolution are padded as its output channels are. ``matmuls`` are the types in which
    matmuls are padded too, on a CPU. ``bound`` says whether the cost of padding was measured on it.
    """

    multiple: int
    source: str
    faster_above: bool = False
    both_sides: bool = False
    matmuls: frozenset[str] = frozenset()
    bound: Bound = Bound.EXPECTED


# A ceiling: padding is only a part of what it predicts.
ONEDNN_TILE = Tile(
    16,
    "oneDNN's AVX-512 convolutions work on blocks of 16 channels. On an AMD EPYC with avx512_bf16, TensorFlow "
    "2.21, 2026-11-22, least of several hundred turns, 3x3 convolutions with both gradients: 130 channels take "
    "1.15 (float32) and 1.20 (bfloat16) times as long as 128, 100 channels 1.17 and 1.22 times as long as 96, 33 "
    "channels 1.30 and 1.36 times as long as 32; padding both sides predicts 1.27, 1.36 and 2.25",
    both_sides=True,
    bound=Bound.AT_MOST,
)

# Measured: an expectation.
AMX_TILE = Tile(
    16,
    "oneDNN on AMX, benchmarks/channels.py on two shared cores, TensorFlow 2.21, 2026-11-22, best of 25 turns: "
    "a multiplication of a 3x3 convolution in bfloat16 costs, relative to 128 channels, 1.25 to 1.35 with 130 and "
    "1.53 to 1.67 with 100 (forward and both gradients), 1.0 with 144; in float32 1.29 to 1.33 and 1.21 to 1.28 "
    "where undisturbed; of a dense layer in bfloat16 1.14 to 1.36 and 1.37 to 1.66. Padding both sides to 16 "
    "predicts 1.23 and 1.25",
    both_sides=True,
    matmuls=frozenset(["bfloat16"]),
)


@dataclass(frozen=True, slots=True)
class Float32Time:
    """The time of an operation in float32 relative to the same operation in float64."""

    matmuls: float  # and convolutions
    others: float
    bound: Bound
    source: str


# On hardware where it was not measured: a ceiling.
FLOAT32 = Float32Time(0.0, 0.5, Bound.AT_MOST, "half the bytes; rates of float64 units are not known")

FLOAT32_ON_AVX512 = Float32Time(
    0.22, 0.5, Bound.EXPECTED,
    "benchmarks/dtypes.py on two shared cores of an Intel Xeon, TensorFlow 2.21, 2026-11-22, least of 7 turns: in "
    "float64, matmuls take 2.8 to 7.8 times (median 4.5) and convolutions 4.8 to 16 times as long as in float32, "
    "which oneDNN computes; elementwise operations and sums at least twice as long, as they move twice the bytes",
)  # fmt: skip

FLOAT32_ON_AVX512_BF16 = Float32Time(
    0.32, 0.5, Bound.EXPECTED,
    "matmuls and 3x3 convolutions with both gradients on two shared cores of an AMD EPYC with avx512_bf16 and "
    "without AMX, TensorFlow 2.21, 2026-11-22, least of several hundred turns: in float64 they take 1.3 to 6.1 "
    "times (median 3.1) as long as in float32; elementwise operations and sums at least 2.4 times "
    "(benchmarks/dtypes.py)",
)  # fmt: skip

AMX = "AMX"

# By the unit of the processor that it was measured on; elsewhere it is a ceiling.
FLOAT32_ON_CPU = {AMX: FLOAT32_ON_AVX512, "AVX512-BF16": FLOAT32_ON_AVX512_BF16}

# CPU flag, unit, gain from 16 bit; the first that the CPU has. Instruction sets by Intel's and AMD's manuals.
CPU_UNITS: tuple[tuple[str, str, SixteenBit], ...] = (
    ("amx_bf16", AMX, SixteenBit(
        "bfloat16", 0.33, Bound.EXPECTED,
        "median of seven large shapes of benchmarks/precision.py, which took 0.16 to 0.74, on an Intel Xeon "
        "with amx_bf16, TensorFlow 2.21, 2026-11-22",
    )),
    ("avx512_bf16", "AVX512-BF16", SixteenBit(
        "bfloat16", 0.6, Bound.EXPECTED,
        "median of benchmarks/precision.py on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-21; of "
        "dense layers with 1 to 17 million weights 0.47 (0.44 to 0.59 in eight shapes, 2026-11-23)",
        matmul_scales=0.47,
    )),
)  # fmt: skip
