"""Describes this machine: its processor, its memory, and the cores that a process may use."""

import os
from pathlib import Path

from tfdoctor.capture.cgroup import cpu_quota
from tfdoctor.recording.manifest import HostMachine

# CPU features that decide how fast a data type computes.
FLAGS = (
    *("avx2", "avx_vnni", "avx512f", "avx512_bf16", "avx512_fp16", "avx512_vnni"),
    *("amx_bf16", "amx_fp16", "amx_tile", "amx_int8"),
)


def host() -> HostMachine:
    """Return the CPU, the usable cores and the memory in bytes of the machine that this process runs on."""
    model, flags = _cpu()
    return HostMachine(
        name=os.uname().nodename,
        cpu_model=model,
        cpu_flags=tuple(flag for flag in FLAGS if flag in flags),
        cores_logical=os.cpu_count() or 1,
        cores_usable=usable_cores(),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    )


def _cpu() -> tuple[str, frozenset[str]]:
    """Return the processor's name and flags from /proc/cpuinfo."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return os.uname().machine, frozenset()
    entries: dict[str, str] = {}
    for line in lines:
        key, _, value = line.partition(":")
        entries.setdefault(key.strip(), value.strip())
    flags = entries.get("flags") or entries.get("Features") or ""
    return entries.get("model name") or os.uname().machine, frozenset(flags.split())


def usable_cores() -> float:
    """Return the smaller of the affinity and the cgroup's quota; TensorFlow sees the first only."""
    affinity, quota = float(len(os.sched_getaffinity(0))), cpu_quota()
    return affinity if quota is None else min(affinity, quota)
