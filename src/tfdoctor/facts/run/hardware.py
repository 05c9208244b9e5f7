"""The machine's matrix unit, and how fast it is in each precision.

Every entry names its source; hardware that is not in the tables is unknown, never "like" another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.run import matrix_units as units
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.matrix_units import FLOAT32, Float32Time, SixteenBit, Tile
from tfdoctor.recording import HostMachine, Recording
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound
from tfdoctor.trace import Plane
from tfdoctor.trace.stats import Value

Stats = Mapping[str, Value]

SM = "multiprocessors"

NVIDIA_GUIDE = "NVIDIA, Matrix Multiplication Background User's Guide, table 1"

TPU_GUIDE = "Google Cloud, Cloud TPU performance guide; TPU v6e for units of 256 by 256"


@dataclass(frozen=True, slots=True)
class Hardware:
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
    multiplies: frozenset[str] = frozenset()  # types that a GPU's unit takes, as tensors have them
    strict: bool = False  # whether old libraries leave it unused for dimensions off the tile
    float32: Float32Time = FLOAT32  # what float32 saves of the time in float64
    reached: float = 1.0  # share of the peak above which no matmul was measured; 1 where none was
    without_unit: bool = False  # known to have none; else "" in matrix_unit stands for unknown
    float32_flop_s: float | None = None  # of a GPU without one that computes float16 no faster

    @classmethod
    def measure(cls, device: Device, recording: Recording, framework: Framework) -> Self:
        """Read the device's plane, or the manifest's CPU."""
        host = recording.manifest.host if recording.manifest else None
        cores = (host.cores_usable or None) if host else None
        if device.kind == DeviceKind.CPU:
            return cls._cpu(host, cores, framework)
        if device.kind == DeviceKind.TPU:
            return cls._tpu(device.busiest, cores)
        stats = device.busiest.stats if device.busiest else {}
        return (cls._amd if stats.get("device_vendor") == "AMD" else cls._nvidia)(stats, cores)

    @classmethod
    def _cpu(cls, host: HostMachine | None, cores: float | None, framework: Framework) -> Self:
        if host is None or not host.cpu_model:
            more = framework.with_tfdoctor or f" (traces of {framework.title} never do)"
            why = f"the trace does not name the CPU{more}"
            return cls(DeviceKind.CPU, cores=cores, missing=why)
        name, flags = host.cpu_model, host.cpu_flags
        tile = units.ONEDNN_TILE if "avx512f" in flags else None
        tile = units.AMX_TILE if tile and "amx_bf16" in flags else tile
        for flag, unit, sixteen_bit in units.CPU_UNITS:
            if flag in flags:
                known = cls(DeviceKind.CPU, name, unit, sixteen_bit, tile, cores=cores)
                return replace(known, float32=units.FLOAT32_ON_CPU[unit])
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
        why = "half the bytes; the MXU multiplies in bfloat16 either way"
        sixteen_bit = SixteenBit("bfloat16", 0.5, Bound.AT_MOST, why)
        return cls(DeviceKind.TPU, name, "MXU", sixteen_bit, tile, peak, hbm, cores)

    @classmethod
    def _nvidia(cls, stats: Stats, cores: float | None) -> Self:
        name = str(stats.get("gpu_device_name") or _unnamed(stats, SM))
        bandwidth = float(stats.get("memory_bandwidth") or 0) or None
        unknown = cls(DeviceKind.GPU, name, bandwidth_bytes_s=bandwidth, cores=cores)
        if "compute_cap_major" not in stats:
            return replace(unknown, missing="the trace does not name the GPU (no compute capability)")
        capability = (int(stats["compute_cap_major"]), int(stats.get("compute_cap_minor", 0)))
        full, half, dtype = units.GPU_RATES.get(capability, (0, 0, ""))
        float32 = None if capability in units.FAST_FLOAT16 else _peak(stats, full)
        if not half:
            before = capability < units.FIRST_TENSOR_CORES
            why = "have no Tensor Cores" if before else "are unknown to tfdoctor"
            why = f"GPUs of compute capability {'.'.join(map(str, capability))} {why}"
            return replace(unknown, missing=why, without_unit=before, float32_flop_s=float32)
        if capability == (7, 5) and units.PLAIN_TURING.search(name):
            why = f"{name} has no Tensor Cores"
            return replace(unknown, missing=why, without_unit=True, float32_flop_s=float32)
        now, then = float(full), float(half)
        if "GeForce" in name and capability >= (7, 5):  # before 8.0 float32 does not run on Tensor Cores
            now, then = now / 2 if capability >= (8, 0) else now, then / 2
        source = f"{now:g} FLOP per SM and clock now, {then:g} in {dtype}"
        scalar = units.SCALAR_RATES.get(capability)
        types = {dtype for dtype, first in units.TENSOR_CORE_TYPES.items() if capability >= first}
        types |= {"float64"} if capability in units.FP64_CORES else set()
        return replace(
            unknown, matrix_unit="Tensor Core", tile=Tile(8, NVIDIA_GUIDE, faster_above=True),
            sixteen_bit=SixteenBit(dtype, now / then, Bound.AT_MOST, source, scalar and scalar / then),
            peak_flop_s=_peak(stats, then), multiplies=frozenset(types),
            strict=capability < (8, 0), reached=units.REACHED.get(capability, 1.0),
        )  # fmt: skip

    @classmethod
    def _amd(cls, stats: Stats, cores: float | None) -> Self:
        chip, name = _amd_chip(stats), str(stats.get("gpu_device_name") or "")
        name = name or " ".join(filter(None, ("AMD", chip, _unnamed(stats, "compute units"))))
        bandwidth = float(stats.get("memory_bandwidth") or 0) or None
        if chip not in units.AMD_RATES:
            why = f"tfdoctor does not know the matrix unit of this AMD GPU ({chip or name})"
            return cls(DeviceKind.GPU, name, bandwidth_bytes_s=bandwidth, cores=cores, missing=why)
        full, half, transfers, dtype = units.AMD_RATES[chip]
        if not half:
            return cls(DeviceKind.GPU, name, cores=cores, missing=f"{chip} has no matrix cores", without_unit=True)
        source = f"{full:g} FLOP per compute unit and clock now, {half:g} in {dtype}"
        return cls(
            DeviceKind.GPU, name, "Matrix Core", SixteenBit(dtype, full / half, Bound.AT_MOST, source), None,
            _peak(stats, half), bandwidth * transfers if bandwidth else None, cores,
            multiplies=units.AMD_TYPES - (set() if chip != "gfx908" else {"float64"}),
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


def _amd_chip(stats: Stats) -> str:
    """Return the instruction set of an AMD GPU ("gfx942"), "" when neither name nor numbers tell it."""
    name = str(stats.get("gpu_device_name", ""))
    if named := re.search(r"gfx[0-9a-f]{3,4}", name):
        return named[0]
    if marketed := next((chip for board, chip in units.AMD_BOARDS if board in name), ""):
        return marketed
    version = (stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0))
    if version == (9, 0):
        return units.AMD_BY_UNITS.get(int(stats.get("core_count") or 0), "")
    return units.AMD_BY_VERSION.get(version, "")
