"""The machine's matrix unit, and how fast it is in each precision.

Every entry names its source; hardware that is not in the tables is unknown, never "like" another.
"""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.recording import HostMachine
from tfdoctor.trace.stats import Value

Stats = Mapping[str, Value]
SM = "multiprocessors"
NVIDIA_GUIDE = "NVIDIA, Matrix Multiplication Background User's Guide, table 1"
TPU_GUIDE = "Google Cloud, Cloud TPU performance guide; TPU v6e for units of 256 by 256"


class SixteenBit(Record):
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


class Tile(Record):
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


class Float32Time(Record):
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

# CPU flag, unit, gain from 16 bit, and time of float32 as measured on it; the first that the CPU has. Instruction
# sets by Intel's and AMD's manuals.
CPU_UNITS: tuple[tuple[str, str, SixteenBit, Float32Time], ...] = (
    ("amx_bf16", AMX, SixteenBit(
        "bfloat16", 0.33, Bound.EXPECTED,
        "median of seven large shapes of benchmarks/precision.py, which took 0.16 to 0.74, on an Intel Xeon "
        "with amx_bf16, TensorFlow 2.21, 2026-11-22",
    ), FLOAT32_ON_AVX512),
    ("avx512_bf16", "AVX512-BF16", SixteenBit(
        "bfloat16", 0.6, Bound.EXPECTED,
        "median of benchmarks/precision.py on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-21; of "
        "dense layers with 1 to 17 million weights 0.47 (0.44 to 0.59 in eight shapes, 2026-11-23)",
        matmul_scales=0.47,
    ), FLOAT32_ON_AVX512_BF16),
)  # fmt: skip

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

# Parts of boards' names, and the boards' chips.
AMD_BOARDS = (
    ("MI100", "gfx908"), ("MI210", "gfx90a"), ("MI250", "gfx90a"), ("MI300", "gfx942"),
    ("MI325", "gfx942"), ("MI350", "gfx950"), ("MI355", "gfx950"), ("MI50", "gfx906"), ("MI60", "gfx906"),
)  # fmt: skip

# Instruction sets by the version that the plane gives as compute capability.
AMD_BY_VERSION: dict[object, str] = {(9, 4): "gfx942", (9, 5): "gfx950"}
# Those of version 9.0 by their compute units: MI50, MI60; MI210 and MI250, MI250X (each die); MI100.
AMD_BY_UNITS = {60: "gfx906", 64: "gfx906", 104: "gfx90a", 110: "gfx90a", 120: "gfx908"}


class Hardware(Record):
    """The device's matrix unit. None and "" are unknown values; ``missing`` says why."""

    kind: DeviceKind
    name: str = ""
    matrix_unit: str = ""
    sixteen_bit: SixteenBit | None = None
    tile: Tile | None = None
    peak_flop_s: float | None = None  # dense, in the fastest 16-bit type
    bandwidth_bytes_s: float | None = None
    cores: float | None = None  # that the run may use, on the host
    missing: str = ""
    float32: Float32Time = FLOAT32  # what float32 saves of the time in float64
    reached: float = 1.0  # share of the peak above which no matmul was measured; 1 where none was
    without_unit: bool = False  # known to have none; else "" in matrix_unit stands for unknown
    float32_flop_s: float | None = None  # of a GPU without one that computes float16 no faster

    @classmethod
    def measure(cls, device: Device, recording: Recording, framework: Framework) -> Self:
        """Read the device's plane, or the manifest's CPU."""
        host = recording.manifest.host if recording.manifest else None
        cores = (host.cores_usable or None) if host else None
        stats = device.busiest.stats if device.busiest else {}
        if device.kind == DeviceKind.CPU:
            return cls._cpu(host, cores, framework)
        if device.kind == DeviceKind.GPU:
            return (cls._amd if stats.get("device_vendor") == "AMD" else cls._nvidia)(stats, cores)
        name = str(stats.get("device_type_string") or "TPU")
        peak = float(stats.get("peak_teraflops_per_second") or 0) * 1e12 or None
        hbm = float(stats.get("peak_hbm_bw_gigabytes_per_second") or 0) * 1e9 or None
        wide = any(generation in name for generation in ("v6", "v7", "7x"))
        why = "half the bytes; the MXU multiplies in bfloat16 either way"
        sixteen_bit = SixteenBit("bfloat16", 0.5, Bound.AT_MOST, why)
        return cls(
            DeviceKind.TPU, name, "MXU", sixteen_bit, Tile(256 if wide else 128, TPU_GUIDE), peak, hbm, cores
        )

    @classmethod
    def _cpu(cls, host: HostMachine | None, cores: float | None, framework: Framework) -> Self:
        if host is None or not host.cpu_model:
            more = framework.with_tfdoctor or f" (traces of {framework.title} never do)"
            return cls(DeviceKind.CPU, cores=cores, missing=f"the trace does not name the CPU{more}")
        name, flags = host.cpu_model, host.cpu_flags
        tile = ONEDNN_TILE if "avx512f" in flags else None
        tile = AMX_TILE if tile and "amx_bf16" in flags else tile
        for flag, unit, sixteen_bit, float32 in CPU_UNITS:
            if flag in flags:
                return cls(DeviceKind.CPU, name, unit, sixteen_bit, tile, cores=cores, float32=float32)
        why = f"{name} has no 16-bit matrix instructions (avx512_bf16 or amx_bf16)"
        return cls(DeviceKind.CPU, name, tile=tile, cores=cores, missing=why)

    @classmethod
    def _nvidia(cls, stats: Stats, cores: float | None) -> Self:
        name = str(stats.get("gpu_device_name") or _unnamed(stats, SM))
        bandwidth = float(stats.get("memory_bandwidth") or 0) or None
        unknown = cls(DeviceKind.GPU, name, bandwidth_bytes_s=bandwidth, cores=cores)
        if "compute_cap_major" not in stats:
            return replace(unknown, missing="the trace does not name the GPU (no compute capability)")
        capability = (int(stats["compute_cap_major"]), int(stats.get("compute_cap_minor", 0)))
        full, half, dtype = GPU_RATES.get(capability, (0, 0, ""))
        float32 = None if capability in FAST_FLOAT16 else _peak(stats, full)
        if not half:
            before = capability < FIRST_TENSOR_CORES
            why = "have no Tensor Cores" if before else "are unknown to tfdoctor"
            why = f"GPUs of compute capability {'.'.join(map(str, capability))} {why}"
            return replace(unknown, missing=why, without_unit=before, float32_flop_s=float32)
        if capability == (7, 5) and PLAIN_TURING.search(name):
            why = f"{name} has no Tensor Cores"
            return replace(unknown, missing=why, without_unit=True, float32_flop_s=float32)
        now, then = float(full), float(half)
        if "GeForce" in name and capability >= (7, 5):  # before 8.0 float32 does not run on Tensor Cores
            now, then = now / 2 if capability >= (8, 0) else now, then / 2
        source = f"{now:g} FLOP per SM and clock now, {then:g} in {dtype}"
        scalar = SCALAR_RATES.get(capability)
        return replace(
            unknown, matrix_unit="Tensor Core", tile=Tile(8, NVIDIA_GUIDE, faster_above=True),
            sixteen_bit=SixteenBit(dtype, now / then, Bound.AT_MOST, source, scalar and scalar / then),
            peak_flop_s=_peak(stats, then), reached=REACHED.get(capability, 1.0),
        )  # fmt: skip

    @classmethod
    def _amd(cls, stats: Stats, cores: float | None) -> Self:
        name = str(stats.get("gpu_device_name") or "")
        # The instruction set ("gfx942"), "" where neither name nor numbers tell it.
        version = (stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0))
        chip = AMD_BY_VERSION.get(version, "")
        if version == (9, 0):
            chip = AMD_BY_UNITS.get(int(stats.get("core_count") or 0), "")
        chip = next((of_board for board, of_board in AMD_BOARDS if board in name), "") or chip
        if named := re.search(r"gfx[0-9a-f]{3,4}", name):
            chip = named[0]
        name = name or " ".join(filter(None, ("AMD", chip, _unnamed(stats, "compute units"))))
        bandwidth = float(stats.get("memory_bandwidth") or 0) or None
        if chip not in AMD_RATES:
            why = f"tfdoctor does not know the matrix unit of this AMD GPU ({chip or name})"
            return cls(DeviceKind.GPU, name, bandwidth_bytes_s=bandwidth, cores=cores, missing=why)
        full, half, transfers, dtype = AMD_RATES[chip]
        if not half:
            return cls(DeviceKind.GPU, name, cores=cores, missing=f"{chip} has no matrix cores", without_unit=True)
        source = f"{full:g} FLOP per compute unit and clock now, {half:g} in {dtype}"
        return cls(
            DeviceKind.GPU, name, "Matrix Core", SixteenBit(dtype, full / half, Bound.AT_MOST, source), None,
            _peak(stats, half), bandwidth * transfers if bandwidth else None, cores,
        )  # fmt: skip


def _peak(stats: Stats, rate: float) -> float | None:
    """Return clock x units x ``rate`` FLOP per unit and clock; None when the plane lacks one, or the rate is 0."""
    clock, units = float(stats.get("clock_rate") or 0) * 1e3, float(stats.get("core_count") or 0)
    return clock * units * rate or None


def _unnamed(stats: Stats, units: str) -> str:
    """Describe a GPU whose plane has no name (TensorFlow 2.3 and 2.4, ROCm); "" where nothing is known."""
    major, minor = stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0)
    count = str(stats.get("core_count") or "")
    parts = [f"compute capability {major!s}.{minor!s}"] if major and units == SM else []
    return " ".join([*parts, *([f"with {count} {units}"] if count else [])])
