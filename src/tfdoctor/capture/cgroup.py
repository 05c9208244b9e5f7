"""Control groups: how many cores and how much memory a container may use, and how long its quota throttled it."""

from collections.abc import Callable, Iterator
from pathlib import Path

SELF = Path("/proc/self")

NO_LIMIT = 2.0**60  # Bytes: version 1 writes a number near 2**63 where there is no limit
Mount = tuple[str, str]  # Where a cgroup hierarchy is mounted, and which of its folders is the root of the mount
ReadLimit = Callable[[Path], float | None]  # Reads the limit that a folder of a hierarchy sets, if it sets one


def cpu_quota() -> float | None:
    """Return the smallest quota/period on the way to the root of the cgroups; None: no limit, or unknown."""
    return _smallest("cpu", _cores_v2, _cores_v1)


def memory_limit() -> int | None:
    """Return the smallest limit in bytes on the way to the root of the cgroups; None: no limit, or unknown."""
    limit = _smallest("memory", _memory_v2, _memory_v1)
    return None if limit is None else int(limit)


def statistics_file() -> Path | None:
    """Return the nearest cpu.stat of this process's cgroups, or None."""
    path2, _ = _cgroup_paths()
    mount2, _ = _cgroup_mounts()
    return _nearest(mount2, path2, "cpu.stat")


def oom_kills() -> int | None:
    """Return how often the kernel killed a process of this cgroup for want of memory; None if it does not say."""
    try:
        (path2, paths1), (mount2, mounts1) = _cgroup_paths(), _cgroup_mounts()
        places = (
            _nearest(mount2, path2, "memory.events"),
            _nearest(mounts1.get("memory"), paths1.get("memory"), "memory.oom_control"),
        )
        counts = (_count(file, "oom_kill") for file in places if file is not None)
        return next((count for count in counts if count is not None), None)
    except (OSError, ValueError):
        return None


def _nearest(mount: Mount | None, path: str | None, name: str) -> Path | None:
    """Return the first file of a name on the way from a cgroup to the root, or None."""
    if mount is None or path is None:
        return None
    files = (folder / name for folder in _up(mount, path))
    return next((file for file in files if file.is_file()), None)


def throttled_us(statistics: Path) -> int | None:
    """Return the total time for which the quota throttled the cgroup; None if cpu.stat does not say."""
    return _count(statistics, "throttled_usec")


def _count(file: Path, name: str) -> int | None:
    """Return a number of a file that has a name and a number on each line; None if it is not there."""
    for line in file.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    return None


def _cgroup_paths() -> tuple[str | None, dict[str, str]]:
    """Return the v2 path of this process and {v1 controller: path}."""
    v2, v1 = None, {}
    for line in (SELF / "cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            v2 = path
        else:
            v1.update(dict.fromkeys(controllers.split(","), path))
    return v2, v1


def _cgroup_mounts() -> tuple[Mount | None, dict[str, Mount]]:
    """Return the v2 mount and {v1 controller: mount}; a mount is (where, which root)."""
    v2: Mount | None = None
    v1: dict[str, Mount] = {}
    for line in (SELF / "mountinfo").read_text().splitlines():
        left, right = line.split(" - ", 1)
        root, where = left.split()[3:5]
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2":
            v2 = (where, root)
        elif kind == "cgroup":
            for controller in options.split(" ")[-1].split(","):
                v1.setdefault(controller, (where, root))
    return v2, v1


def _up(mount: Mount, path: str) -> Iterator[Path]:
    """Yield the folders from a cgroup up to its mount."""
    where, root = mount
    below = path[len(root) :] if root != "/" and path.startswith(root) else path
    folder = Path(where, below.strip("/"))
    while True:
        yield folder
        if len(str(folder)) <= len(where):
            return
        folder = folder.parent


def _smallest(controller: str, of_v2: ReadLimit, of_v1: ReadLimit) -> float | None:
    """Return the smallest limit that a controller has on the way to the root; None: no limit, or unknown."""
    try:
        (path2, paths1), (mount2, mounts1) = _cgroup_paths(), _cgroup_mounts()
        limits = _limits(mount2, path2, of_v2)
        limits += _limits(mounts1.get(controller), paths1.get(controller), of_v1)
    except (OSError, ValueError):
        return None
    return min(limits, default=None)


def _limits(mount: Mount | None, path: str | None, read: ReadLimit) -> list[float]:
    """Return the limits that are set from a cgroup up to its mount."""
    limits = []
    for folder in _up(mount, path) if mount is not None and path is not None else ():
        try:
            limit = read(folder)
        except OSError:  # not every level has a controller
            continue
        if limit is not None:
            limits.append(limit)
    return limits


def _cores_v2(folder: Path) -> float | None:
    quota, period = (folder / "cpu.max").read_text().split()
    return None if quota == "max" else int(quota) / int(period)


def _cores_v1(folder: Path) -> float | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    return quota / int((folder / "cpu.cfs_period_us").read_text()) if quota > 0 else None


def _memory_v2(folder: Path) -> float | None:
    limit = (folder / "memory.max").read_text().strip()
    return None if limit == "max" else float(limit)


def _memory_v1(folder: Path) -> float | None:
    limit = float((folder / "memory.limit_in_bytes").read_text())
    return limit if limit < NO_LIMIT else None
