"""How fast the matrix units of GPUs are, by generation; every table names its source."""

import re

# FLOP per SM and clock by compute capability: float32 matmuls as TensorFlow runs them (TF32 from 8.0 on), 16 bit
# with float32 accumulation (dense), and the type. 0: no Tensor Cores. NVIDIA's architecture white papers; GeForce
# boards halve both Tensor Core rates from 8.6 on.
GPU_RATES: dict[tuple[int, int], tuple[int, int, str]] = {
    (5, 2): (256, 0, ""),
    (6, 0): (128, 0, ""),
    (6, 1): (256, 0, ""),
    (7, 0): (128, 1024, "float16"),
    (7, 5): (128, 1024, "float16"),
    (8, 0): (1024, 2048, "bfloat16"),
    (8, 6): (512, 1024, "bfloat16"),
    (8, 9): (512, 1024, "bfloat16"),
    (9, 0): (2048, 4096, "bfloat16"),
    (10, 0): (4096, 8192, "bfloat16"),
    (12, 0): (512, 1024, "bfloat16"),
}

# FLOP per SM and clock of float32 matmuls off the Tensor Cores, where others run on them (TF32): two for each of
# the SM's float32 lanes. NVIDIA's architecture white papers.
SCALAR_RATES = {(8, 0): 128, (8, 6): 256, (8, 9): 256, (9, 0): 256, (10, 0): 256, (12, 0): 256}

# Share of the 16-bit peak at the highest clock that no kernel exceeded, by compute capability. On an H100 80GB
# HBM3, JAX 0.11.2 with CUDA 13, 2026-11-22: aligned bfloat16 products of 4096x4000x4000 reached 0.68 to 0.71 (nvjet
# kernels), convolutions of 128 channels 0.64 to 0.68; its power limit lowers the clock to 1.7 to 1.9 of 1.98 GHz
# meanwhile.
REACHED = {(9, 0): 0.75}

# Boards of compute capability 7.5 on NVIDIA's TU116 and TU117, which have no Tensor Cores.
PLAIN_TURING = re.compile(r"GTX 16|MX[45]50|\bT(?:400|500|600|1000|1200|2000)\b")
FIRST_TENSOR_CORES = (7, 0)  # The compute capability of Volta, the first NVIDIA generation with Tensor Cores
# Compute capabilities without Tensor Cores that compute float16 at twice the rate of float32; that of 6.1 is 1/64.
# NVIDIA, CUDA C++ Programming Guide, throughput of native arithmetic instructions.
FAST_FLOAT16 = frozenset([(5, 3), (6, 0), (6, 2)])
# What Tensor Cores multiply, from which compute capability on; float32 stands for TF32.
TENSOR_CORE_TYPES = {"float16": (7, 0), "int8": (7, 5), "uint8": (7, 5), "bfloat16": (8, 0), "float32": (8, 0)}
# Compute capabilities whose Tensor Cores multiply float64 (A100, H100, B200).
FP64_CORES = ((8, 0), (9, 0), (10, 0))

# FLOP per compute unit and clock (float32 matmuls on the matrix cores, 16 bit dense), the factor for the plane's
# memory bandwidth, and the type. Rates: AMD's data sheets, which they reproduce: MI100 184.6 and MI250X 383 TFLOP/s
# (of two dies), MI300X 1307.4, MI355X 2516.6, in 16 bit. ROCm's plane counts two transfers per memory clock, where
# HBM3 makes four: 2662 and 4096 GB/s in real traces of an MI300X and an MI355X, for 5.3 and 8 TB/s on their data
# sheets; the MI250X's HBM2e makes two.
AMD_RATES: dict[str, tuple[int, int, int, str]] = {
    "gfx906": (128, 0, 1, ""),
    "gfx908": (256, 1024, 1, "float16"),
    "gfx90a": (256, 1024, 1, "bfloat16"),
    "gfx942": (256, 2048, 2, "bfloat16"),
    "gfx950": (256, 4096, 2, "bfloat16"),
}

# What the matrix cores of AMD's CDNA multiply (CDNA 3 white paper; float64 from CDNA 2 on).
AMD_TYPES = frozenset({"float16", "bfloat16", "float32", "float64", "int8"})

# Parts of boards' names, and the boards' chips.
AMD_BOARDS = (
    ("MI100", "gfx908"), ("MI210", "gfx90a"), ("MI250", "gfx90a"), ("MI300", "gfx942"),
    ("MI325", "gfx942"), ("MI350", "gfx950"), ("MI355", "gfx950"), ("MI50", "gfx906"), ("MI60", "gfx906"),
)  # fmt: skip

# Instruction sets by the version that the plane gives as compute capability.
AMD_BY_VERSION: dict[object, str] = {(9, 4): "gfx942", (9, 5): "gfx950"}
# Those of version 9.0 by their compute units: MI50, MI60; MI210 and MI250, MI250X (each die); MI100.
AMD_BY_UNITS = {60: "gfx906", 64: "gfx906", 104: "gfx90a", 110: "gfx90a", 120: "gfx908"}
