"""What the machine's matrix unit is, and how fast it is in which precision.

Every entry carries its source; hardware that is not in the tables is unknown, never "like" another.
"""

import re
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.device import Device
from tfdoctor.facts.framework import Framework
from tfdoctor.recording import Host, Recording
from tfdoctor.trace import Plane
from tfdoctor.verdict import Bound

NVIDIA_GUIDE = "NVIDIA, Matrix Multiplication Background User's Guide, table 1"
TPU_GUIDE = "Google Cloud, Cloud TPU performance guide"


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What 16 bit does to the time of a matmul or convolution that runs in float32 now.

    ``scales`` is the time afterwards over the time now.
    """

    dtype: str  # "bfloat16" or "float16"
    scales: float
    bound: Bound
    source: str


@dataclass(frozen=True, slots=True)
class Tile:
    """What the matrix unit pads the channels of a product to.

    ``faster_above`` says that the next multiple above is faster too, because whole tiles take other
    kernels; elsewhere it costs what the padded width costs now.
    """

    multiple: int
    source: str
    faster_above: bool = False


@dataclass(frozen=True, slots=True)
class Hardware:
    """The device's matrix unit. None and "" stand for what is unknown; ``missing`` says why."""

    kind: str
    name: str
    matrix_unit: str = ""
    narrowing: Narrowing | None = None
    tile: Tile | None = None
    peak_flop_s: float | None = None  # dense, in the fastest 16-bit type
    bandwidth_bytes_s: float | None = None
    cores: float | None = None  # that the run may use, on the host
    missing: str = ""

    @classmethod
    def measure(cls, device: Device, recording: Recording, framework: Framework) -> Self:
        """Read the device's plane, or the manifest's CPU."""
        host = recording.manifest.host if recording.manifest else None
        cores = (host.cores_usable or None) if host else None
        if device.kind == "CPU":
            return cls._cpu(host, cores, framework)
        if device.kind == "TPU":
            return cls._tpu(device.busiest, cores)
        return cls._gpu(device.busiest, cores)

    @classmethod
    def _cpu(cls, host: Host | None, cores: float | None, framework: Framework) -> Self:
        if host is None or not host.cpu_model:
            why = "the trace does not say which CPU it ran on"
            if framework.foreign:
                why = f"{why}, as traces of {framework.title} do not"
            else:
                why = f"{why}; record it with `tfdoctor profile`"
            return cls("CPU", "CPU", cores=cores, missing=why)
        name, flags = host.cpu_model, host.cpu_flags
        tile = ONEDNN_TILE if "avx512f" in flags else None
        for flag, unit, narrowing in CPU_UNITS:
            if flag in flags:
                return cls("CPU", name, unit, narrowing, tile, cores=cores)
        why = f"{name} has no 16-bit matrix instructions (avx512_bf16 or amx_bf16)"
        return cls("CPU", name, tile=tile, cores=cores, missing=why)

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
        return cls("TPU", name, "MXU", narrowing, tile, peak, hbm, cores)

    @classmethod
    def _gpu(cls, plane: Plane | None, cores: float | None) -> Self:
        stats = plane.stats if plane else {}
        name = str(stats.get("gpu_device_name") or "GPU")
        bandwidth = float(stats.get("memory_bandwidth") or 0) or None
        if "compute_cap_major" not in stats or stats.get("device_vendor") == "AMD":
            why = "tfdoctor knows the matrix units of NVIDIA GPUs only, by compute capability"
            return cls("GPU", name, bandwidth_bytes_s=bandwidth, cores=cores, missing=why)
        capability = (int(stats["compute_cap_major"]), int(stats.get("compute_cap_minor", 0)))
        rates = GPU_RATES.get(capability)
        if rates is None or not rates[1]:
            number = ".".join(map(str, capability))
            why = f"tfdoctor knows no Tensor Cores of GPUs of compute capability {number}"
            return cls("GPU", name, bandwidth_bytes_s=bandwidth, cores=cores, missing=why)
        if capability == (7, 5) and PLAIN_TURING.search(name):
            why = f"{name} has no Tensor Cores"
            return cls("GPU", name, bandwidth_bytes_s=bandwidth, cores=cores, missing=why)
        full, half, dtype = _of_board(rates, name, capability)
        clock, units = (
            float(stats.get("clock_rate") or 0) * 1e3,
            float(stats.get("core_count") or 0),
        )
        source = f"{full:g} FLOP per SM and clock now, {half:g} in {dtype}"
        return cls(
            "GPU", name, "Tensor Core", Narrowing(dtype, full / half, Bound.AT_MOST, source),
            Tile(8, NVIDIA_GUIDE, faster_above=True), clock * units * half or None, bandwidth, cores,
        )  # fmt: skip


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
    "benchmarks/channels.py: 33 channels cost 1.6 times what 32 cost, per direction one side is padded",
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

GPU_RATES: dict[tuple[int, int], tuple[int, int, str]] = {
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
"""FLOP per SM and clock by compute capability: float32 matmuls as TensorFlow runs them (TF32 from
8.0 on), 16 bit with float32 accumulation (dense), and the type. 0: no Tensor Cores. NVIDIA's
architecture white papers; GeForce boards halve both Tensor Core rates from 8.6 on."""

PLAIN_TURING = re.compile(r"GTX 16|MX[45]50|\bT(?:400|500|600|1000|1200|2000)\b")
"""Boards of compute capability 7.5 on NVIDIA's TU116 and TU117, which have no Tensor Cores."""
