"""The machine's matrix unit, and how fast it is in each precision.

Every entry names its source; hardware that is not in the tables is unknown, never "like" another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.gpu_rates import (
    AMD_BOARDS,
    AMD_BY_UNITS,
    AMD_BY_VERSION,
    AMD_RATES,
    AMD_TYPES,
    FIRST_TENSOR_CORES,
    FP64_CORES,
    GPU_RATES,
    PLAIN_TURING,
    SCALAR_RATES,
)
from tfdoctor.kinds import DeviceKind
from tfdoctor.recording import HostMachine, Recording
from tfdoctor.trace import Plane
from tfdoctor.trace.model import Value
from tfdoctor.verdict import Bound

Stats = Mapping[str, Value]

SM = "multiprocessors"
NVIDIA_GUIDE = "NVIDIA, Matrix Multiplication Background User's Guide, table 1"
TPU_GUIDE = "Google Cloud, Cloud TPU performance guide; TPU v6e for units of 256 by 256"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """How 16 bit changes the time of a matmul or convolution that runs in float32 now.

    ``scales`` is the time in 16 bit relative to float32; ``scalar_scales`` the same for matmuls that
    avoid the matrix unit although float32 could use it (as TF32), else None.
    """

    dtype: str  # "bfloat16" or "float16"
    scales: float
    bound: Bound
    source: str
    scalar_scales: float | None = None


@dataclass(frozen=True, slots=True)
class Tile:
    """The multiple to which the matrix unit pads the channels of a matmul.

    ``faster_above`` says that the next multiple above is faster too, because whole tiles use other
    kernels; elsewhere it costs as much as the padded width does now.
    """

    multiple: int
    source: str
    faster_above: bool = False


@dataclass(frozen=True, slots=True)
class Hardware:
    """The device's matrix unit. None and "" are unknown values; ``missing`` says why."""

    kind: DeviceKind
    name: str
    matrix_unit: str = ""
    narrowing: Narrowing | None = None
    tile: Tile | None = None
    peak_flop_s: float | None = None  # dense, in the fastest 16-bit type
    bandwidth_bytes_s: float | None = None
    cores: float | None = None  # that the run may use, on the host
    missing: str = ""
    multiplies: frozenset[str] = frozenset()  # types that a GPU's unit takes, as tensors have them
    strict: bool = False  # whether old libraries leave it unused for dimensions off the tile
    without_unit: bool = False  # known to have none; else "" in matrix_unit stands for unknown

    @classmethod
    def measure(cls, device: Device, recording: Recording, framework: Framework) -> Self:
        """Read the device's plane, or the manifest's CPU."""
        host = recording.manifest.host if recording.manifest else None
        cores = (host.cores_usable or None) if host else None
        if device.kind == DeviceKind.CPU:
            return cls._cpu(host, cores, framework)
        if device.kind == DeviceKind.TPU:
            return cls._tpu(device.busiest, cores)
        return cls._gpu(device.busiest, cores)

    @classmethod
    def _cpu(cls, host: HostMachine | None, cores: float | None, framework: Framework) -> Self:
        if host is None or not host.cpu_model:
            why = "the trace does not name the CPU"
            if framework.foreign:
                why = f"{why} (traces of {framework.title} never do)"
            else:
                why = f"{why}; record with `tfdoctor profile`"
            return cls(DeviceKind.CPU, "of unknown model", cores=cores, missing=why)
        name, flags = host.cpu_model, host.cpu_flags
        tile = ONEDNN_TILE if "avx512f" in flags else None
        for flag, unit, narrowing in CPU_UNITS:
            if flag in flags:
                return cls(DeviceKind.CPU, name, unit, narrowing, tile, cores=cores)
        why = f"{name} has no 16-bit matrix instructions (avx512_bf16 or amx_bf16)"
        return cls(DeviceKind.CPU, name, tile=tile, cores=cores, missing=why)

    @classmethod
    def _tpu(cls, plane: Plane | None, cores: float | None) -> Self:
        stats = plane.stats if plane else {}
        name = str(stats.get("device_type_string") or "TPU")
        peak = float(stats.get("peak_teraflops_per_second") or 0) * 1e12 or None
        hbm = float(stats.get("peak_hbm_bw_gigabytes_per_second") or 0) * 1e9 or None
        wide = any(generation in name for generation in ("v6", "v7", "7x"))
        tile = Tile(256 if wide else 128, TPU_GUIDE)
        narrowing = Narrowing(
            "bfloat16",
            0.5,
            Bound.AT_MOST,
            "half the bytes; the MXU multiplies in bfloat16 either way",
        )
        return cls(DeviceKind.TPU, name, "MXU", narrowing, tile, peak, hbm, cores)

    @classmethod
    def _gpu(cls, plane: Plane | None, cores: float | None) -> Self:
        stats = plane.stats if plane else {}
        make = cls._amd if stats.get("device_vendor") == "AMD" else cls._nvidia
        return make(stats, cores)

    @classmethod
    def _nvidia(cls, stats: Stats, cores: float | None) -> Self:
        name = str(stats.get("gpu_device_name") or _unnamed(stats, SM))
        bandwidth = float(stats.get("memory_bandwidth") or 0) or None
        unknown_unit = cls(DeviceKind.GPU, name, bandwidth_bytes_s=bandwidth, cores=cores)
        if "compute_cap_major" not in stats:
            why = "the trace does not name the GPU (no compute capability)"
            return replace(unknown_unit, missing=why)
        capability = (int(stats["compute_cap_major"]), int(stats.get("compute_cap_minor", 0)))
        rates = GPU_RATES.get(capability)
        if rates is None or not rates[1]:
            number = ".".join(map(str, capability))
            before_tensor_cores = capability < FIRST_TENSOR_CORES
            why_none = "have no Tensor Cores" if before_tensor_cores else "are unknown to tfdoctor"
            why = f"GPUs of compute capability {number} {why_none}"
            return replace(unknown_unit, missing=why, without_unit=before_tensor_cores)
        if capability == (7, 5) and PLAIN_TURING.search(name):
            return replace(unknown_unit, missing=f"{name} has no Tensor Cores", without_unit=True)
        full, half, dtype = _of_board(rates, name, capability)
        source = f"{full:g} FLOP per SM and clock now, {half:g} in {dtype}"
        scalar = SCALAR_RATES.get(capability)
        return replace(
            unknown_unit, matrix_unit="Tensor Core", tile=Tile(8, NVIDIA_GUIDE, faster_above=True),
            narrowing=Narrowing(dtype, full / half, Bound.AT_MOST, source, scalar and scalar / half),
            peak_flop_s=_peak(stats, half), multiplies=_types(capability),
            strict=capability < (8, 0),
        )  # fmt: skip

    @classmethod
    def _amd(cls, stats: Stats, cores: float | None) -> Self:
        chip = amd_chip(stats)
        name = str(stats.get("gpu_device_name") or "")
        name = name or " ".join(filter(None, ("AMD", chip, _unnamed(stats, "compute units"))))
        bandwidth = float(stats.get("memory_bandwidth") or 0) or None
        if chip not in AMD_RATES:
            why = f"tfdoctor does not know the matrix unit of this AMD GPU ({chip or name})"
            return cls(DeviceKind.GPU, name, bandwidth_bytes_s=bandwidth, cores=cores, missing=why)
        full, half, transfers, dtype = AMD_RATES[chip]
        if not half:
            why = f"{chip} has no matrix cores"
            return cls(DeviceKind.GPU, name, cores=cores, missing=why, without_unit=True)
        source = f"{full:g} FLOP per compute unit and clock now, {half:g} in {dtype}"
        return cls(
            DeviceKind.GPU, name, "Matrix Core", Narrowing(dtype, full / half, Bound.AT_MOST, source), None,
            _peak(stats, half), bandwidth * transfers if bandwidth else None, cores,
            multiplies=AMD_TYPES - (set() if chip != "gfx908" else {"float64"}),
        )  # fmt: skip


def _peak(stats: Stats, rate: float) -> float | None:
    """Return clock x units x ``rate`` FLOP per unit and clock; None when the plane lacks one."""
    clock, units = float(stats.get("clock_rate") or 0) * 1e3, float(stats.get("core_count") or 0)
    return clock * units * rate or None


def _unnamed(stats: Stats, units: str) -> str:
    """Describe a GPU whose plane has no name (TensorFlow 2.3 and 2.4, ROCm)."""
    major, minor = stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0)
    count = str(stats.get("core_count") or "")
    parts = [f"compute capability {major!s}.{minor!s}"] if major and units == SM else []
    return " ".join([*parts, *([f"with {count} {units}"] if count else [])]) or "of unknown model"


def _types(capability: tuple[int, int]) -> frozenset[str]:
    """Return the types that an NVIDIA GPU's Tensor Cores multiply; float32 stands for TF32."""
    types = {"float16"} | ({"int8", "uint8"} if capability >= (7, 5) else set())
    types |= {"bfloat16", "float32"} if capability >= (8, 0) else set()
    return frozenset(types | ({"float64"} if capability in FP64_CORES else set()))


def amd_chip(stats: Stats) -> str:
    """Return the instruction set of an AMD GPU ("gfx942"), "" when neither name nor numbers tell it."""
    if named := re.search(r"gfx[0-9a-f]{3,4}", str(stats.get("gpu_device_name", ""))):
        return named[0]
    name = str(stats.get("gpu_device_name", ""))
    if marketed := next((chip for board, chip in AMD_BOARDS if board in name), ""):
        return marketed
    version = (stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0))
    if version == (9, 0):
        return AMD_BY_UNITS.get(int(stats.get("core_count") or 0), "")
    return AMD_BY_VERSION.get(version, "")


def _of_board(
    rates: tuple[int, int, str], name: str, capability: tuple[int, int]
) -> tuple[float, float, str]:
    """Halve the Tensor Cores' rates on GeForce boards; before 8.0 float32 does not run on them."""
    full, half, dtype = rates
    if "GeForce" not in name or capability < (7, 5):
        return full, half, dtype
    return (full / 2 if capability >= (8, 0) else full), half / 2, dtype


ONEDNN_TILE = Tile(
    16,
    "oneDNN's AVX-512 convolutions work on blocks of 16 channels; measured with "
    "benchmarks/channels.py: 33 channels take 1.6 times as long as 32 when one side is padded",
)

CPU_UNITS: tuple[tuple[str, str, Narrowing], ...] = (
    (
        "amx_bf16",
        "AMX",
        Narrowing(
            "bfloat16",
            1 / 16,
            Bound.AT_MOST,
            "AMX's 1024 against AVX-512's 64 FLOP per core and clock",
        ),
    ),
    (
        "avx512_bf16",
        "AVX512-BF16",
        Narrowing(
            "bfloat16",
            0.6,
            Bound.EXPECTED,
            "median of benchmarks/precision.py on an AMD EPYC with avx512_bf16, TensorFlow 2.21, 2026-11-21",
        ),
    ),
)
"""CPU flag, unit, narrowing; the first that the CPU has. Instruction sets by Intel's and AMD's manuals."""
