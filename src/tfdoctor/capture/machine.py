"""This machine: its processor and memory, and what its control groups let a process use, and say of it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tfdoctor.recording.manifest import HostMachine

SELF = Path("/proc/self")

NO_LIMIT = 2.0**60  # Bytes: version 1 of cgroups writes a number near 2**63 where there is no limit
# By controller and version of cgroups, the files with a limit and, of the cores, with the period that it is of.
LIMITS: dict[str, dict[int, tuple[str, ...]]] = {
    "cpu": {1: ("cpu.cfs_quota_us", "cpu.cfs_period_us"), 2: ("cpu.max",)},
    "memory": {1: ("memory.limit_in_bytes",), 2: ("memory.max",)},
}
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


def cpu_quota() -> float | None:
    """Return the smallest quota/period on the way to the root of the cgroups; None: no limit, or unknown."""
    return _smallest("cpu")


def memory_limit() -> int | None:
    """Return the smallest limit in bytes on the way to the root of the cgroups; None: no limit, or unknown."""
    limit = _smallest("memory")
    return None if limit is None else int(limit)


def statistics_file() -> Path | None:
    """Return the nearest cpu.stat of this process's cgroups, or None."""
    return next(_nearest("cpu", {2: "cpu.stat"}), None)


def throttled_us(statistics: Path) -> int | None:
    """Return the total time for which the quota throttled the cgroup; None if cpu.stat does not say."""
    return _count(statistics, "throttled_usec")


def oom_kills() -> int | None:
    """Return how often the kernel killed a process of this cgroup for want of memory; None if it does not say."""
    try:
        counts = (
            _count(file, "oom_kill") for file in _nearest("memory", {2: "memory.events", 1: "memory.oom_control"})
        )
        return next((count for count in counts if count is not None), None)
    except (OSError, ValueError):
        return None


def _folders(controller: str) -> Iterator[tuple[int, list[Path]]]:
    """Yield each version of cgroups that has this process, with the folders from its own up to the mount."""
    paths: dict[str, str] = {}  # by controller; "" is the whole of version 2
    for line in (SELF / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update(dict.fromkeys(controllers.split(","), path))
    mounts: dict[str, tuple[str, str]] = {}  # where it is mounted, and which of its folders is the mount's root
    for line in (SELF / "mountinfo").read_text().splitlines():
        left, right = line.split(" - ", 1)
        root, where = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2":
            mounts[""] = (where, root)
        elif kind == "cgroup":
            for one in options.split(" ")[-1].split(","):
                mounts.setdefault(one, (where, root))
    for version, name in ((2, ""), (1, controller)):
        if name in mounts and name in paths:
            (where, root), path = mounts[name], paths[name]
            below = path[len(root) :] if root != "/" and path.startswith(root) else path
            own = Path(where, below.strip("/"))
            yield version, [own, *(one for one in own.parents if len(str(one)) >= len(where))]


def _nearest(controller: str, names: Mapping[int, str]) -> Iterator[Path]:
    """Yield the first file of a name, by version, on the way from this process's cgroup to the root."""
    for version, folders in _folders(controller):
        files = [folder / names[version] for folder in folders] if version in names else []
        yield from [file for file in files if file.is_file()][:1]


def _count(file: Path, name: str) -> int | None:
    """Return a number of a file that has a name and a number on each line; None if it is not there."""
    rows = (line.partition(" ") for line in file.read_text().splitlines())
    return next((int(value) for key, _, value in rows if key == name), None)


def _smallest(controller: str) -> float | None:
    """Return the smallest limit that a controller has on the way to the root; None: no limit, or unknown."""
    limits = []
    try:
        for version, folders in _folders(controller):
            for folder in folders:
                try:
                    limits.append(_limit(folder, LIMITS[controller][version]))
                except OSError:  # not every level has a controller
                    continue
    except (OSError, ValueError):
        return None
    return min((limit for limit in limits if limit is not None), default=None)


def _limit(folder: Path, names: tuple[str, ...]) -> float | None:
    """Return the limit of a folder's files, "max" or below zero where there is none."""
    limit, *period = " ".join((folder / name).read_text() for name in names).split()
    unlimited = limit == "max" or not 0 <= float(limit) < NO_LIMIT
    return None if unlimited else float(limit) / float(period[0] if period else 1)
