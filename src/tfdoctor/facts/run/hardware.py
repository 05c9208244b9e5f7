"""The machine's matrix unit, and how fast it is in each precision.

Every entry names its source; hardware that is not in the tables is unknown, never "like" another.
"""

from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.gpu_chips import SM, Stats, amd_chip, board_rates, peak_rate, tensor_core_types, unnamed_gpu
from tfdoctor.facts.run.gpu_rates import (
    AMD_RATES,
    AMD_TYPES,
    FAST_FLOAT16,
    FIRST_TENSOR_CORES,
    GPU_RATES,
    PLAIN_TURING,
    REACHED,
    SCALAR_RATES,
)
from tfdoctor.facts.run.matrix_units import (
    AMX_TILE,
    CPU_UNITS,
    FLOAT32,
    FLOAT32_ON_CPU,
    ONEDNN_TILE,
    Float32Time,
    SixteenBit,
    Tile,
)
from tfdoctor.recording import HostMachine, Recording
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound
from tfdoctor.trace import Plane

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
        if stats.get("device_vendor") == "AMD":
            return cls._amd(stats, cores)
        return cls._nvidia(stats, cores)

    @classmethod
    def _cpu(cls, host: HostMachine | None, cores: float | None, framework: Framework) -> Self:
        if host is None or not host.cpu_model:
            more = framework.with_tfdoctor or f" (traces of {framework.title} never do)"
            why = f"the trace does not name the CPU{more}"
            return cls(DeviceKind.CPU, cores=cores, missing=why)
        name, flags = host.cpu_model, host.cpu_flags
        tile = ONEDNN_TILE if "avx512f" in flags else None
        tile = AMX_TILE if tile and "amx_bf16" in flags else tile
        for flag, unit, sixteen_bit in CPU_UNITS:
            if flag in flags:
                known = cls(DeviceKind.CPU, name, unit, sixteen_bit, tile, cores=cores)
                return replace(known, float32=FLOAT32_ON_CPU[unit])
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
        sixteen_bit = SixteenBit(
            "bfloat16", 0.5, Bound.AT_MOST, "half the bytes; the MXU multiplies in bfloat16 either way"
        )
        return cls(DeviceKind.TPU, name, "MXU", sixteen_bit, tile, peak, hbm, cores)

    @classmethod
    def _nvidia(cls, stats: Stats, cores: float | None) -> Self:
        name = str(stats.get("gpu_device_name") or unnamed_gpu(stats, SM))
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
            return replace(
                unknown_unit,
                missing=why,
                without_unit=before_tensor_cores,
                float32_flop_s=_float32_rate(stats, capability),
            )
        if capability == (7, 5) and PLAIN_TURING.search(name):
            return replace(
                unknown_unit,
                missing=f"{name} has no Tensor Cores",
                without_unit=True,
                float32_flop_s=peak_rate(stats, rates[0]),
            )
        full, half, dtype = board_rates(rates, name, capability)
        source = f"{full:g} FLOP per SM and clock now, {half:g} in {dtype}"
        scalar = SCALAR_RATES.get(capability)
        return replace(
            unknown_unit, matrix_unit="Tensor Core", tile=Tile(8, NVIDIA_GUIDE, faster_above=True),
            sixteen_bit=SixteenBit(dtype, full / half, Bound.AT_MOST, source, scalar and scalar / half),
            peak_flop_s=peak_rate(stats, half), multiplies=tensor_core_types(capability),
            strict=capability < (8, 0), reached=REACHED.get(capability, 1.0),
        )  # fmt: skip

    @classmethod
    def _amd(cls, stats: Stats, cores: float | None) -> Self:
        chip = amd_chip(stats)
        name = str(stats.get("gpu_device_name") or "")
        name = name or " ".join(filter(None, ("AMD", chip, unnamed_gpu(stats, "compute units"))))
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
            DeviceKind.GPU, name, "Matrix Core", SixteenBit(dtype, full / half, Bound.AT_MOST, source), None,
            peak_rate(stats, half), bandwidth * transfers if bandwidth else None, cores,
            multiplies=AMD_TYPES - (set() if chip != "gfx908" else {"float64"}),
        )  # fmt: skip


def _float32_rate(stats: Stats, capability: tuple[int, int]) -> float | None:
    """Return the peak in float32 of a GPU without Tensor Cores; None where it is unknown or float16 is faster."""
    if capability in FAST_FLOAT16 or capability not in GPU_RATES:
        return None
    return peak_rate(stats, GPU_RATES[capability][0])
