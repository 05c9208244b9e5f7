"""Which chip a GPU has, and the rates and types of its matrix unit."""

import re
from collections.abc import Mapping

from tfdoctor.facts.run.gpu_rates import AMD_BOARDS, AMD_BY_UNITS, AMD_BY_VERSION, FP64_CORES
from tfdoctor.trace.stats import Value

Stats = Mapping[str, Value]


SM = "multiprocessors"


def peak_rate(stats: Stats, rate: float) -> float | None:
    """Return clock x units x ``rate`` FLOP per unit and clock; None when the plane lacks one."""
    clock, units = float(stats.get("clock_rate") or 0) * 1e3, float(stats.get("core_count") or 0)
    return clock * units * rate or None


def unnamed_gpu(stats: Stats, units: str) -> str:
    """Describe a GPU whose plane has no name (TensorFlow 2.3 and 2.4, ROCm); "" where nothing is known."""
    major, minor = stats.get("compute_cap_major"), stats.get("compute_cap_minor", 0)
    count = str(stats.get("core_count") or "")
    parts = [f"compute capability {major!s}.{minor!s}"] if major and units == SM else []
    return " ".join([*parts, *([f"with {count} {units}"] if count else [])])


def tensor_core_types(capability: tuple[int, int]) -> frozenset[str]:
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


def board_rates(rates: tuple[int, int, str], name: str, capability: tuple[int, int]) -> tuple[float, float, str]:
    """Halve the Tensor Cores' rates on GeForce boards; before 8.0 float32 does not run on them."""
    full, half, dtype = rates
    if "GeForce" not in name or capability < (7, 5):
        return full, half, dtype
    return (full / 2 if capability >= (8, 0) else full), half / 2, dtype
