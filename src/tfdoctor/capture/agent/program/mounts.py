"""The type of the file system that holds a path, from the kernel's table of mounts; never where it comes from."""

from __future__ import annotations

import re

from ..process.kept import io, os

# A line a mount (proc_pid_mountinfo(5)): its folder is the fifth field, type and source follow a hyphen.
MOUNTS = "/proc/self/mountinfo"
ESCAPED = re.compile(r"\\([0-7]{3})")  # How the kernel writes spaces, tabs, line feeds and backslashes in a folder
FUSE = "fuse"  # The type of mounts whose program names itself in the source at best
# A source that is the name of a program, such as mountpoint-s3, and no path, bucket or host.
PROGRAM = re.compile(r"[a-z][a-z0-9-]*")


def file_system(path: str, table: str = MOUNTS) -> str:
    """Return "ext4", "nfs4", "fuse.gcsfuse"; "" is unknown."""
    try:
        with io.open(table, encoding="utf-8", errors="surrogateescape") as lines:
            mounts = [_mount(line) for line in lines if " - " in line]
    except OSError:  # not Linux
        return ""
    real = os.path.join(os.path.realpath(path), "")
    holding = [(len(folder), kind) for folder, kind in mounts if real.startswith(folder)]
    # A later mount of a folder hides an earlier one.
    return max(reversed(holding), key=lambda mount: mount[0], default=(0, ""))[1]


def _mount(line: str) -> tuple[str, str]:
    """Return the folder of a mount, with a slash at its end, and its type."""
    place, _, origin = line.partition(" - ")
    folder = ESCAPED.sub(lambda found: chr(int(found[1], 8)), place.split(" ")[4])
    kind, source = origin.split(" ")[:2]
    if kind == FUSE and PROGRAM.fullmatch(source):
        kind = f"{FUSE}.{source}"
    return os.path.join(folder, ""), kind
