"""Runs whose writes are thrown away, in bubblewrap; and what is said where they cannot be.

Bubblewrap gives the program a mount namespace of its own, in which nothing of this machine can be written. Folders
are shown through overlays whose upper layer lies in memory: what the program writes there is gone with its last
process, however that ends.
"""

import glob
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tfdoctor.recording.manifest import WrittenFiles
from tfdoctor.terms.text import counted, prose

BWRAP, SINCE = "bwrap", "0.11"  # Its first version with overlays
# Folders of devices and of the kernel, which the program sees without a layer.
AS_THEY_ARE = tuple(map(Path, ("/dev", "/proc", "/sys", "/run")))
# The one folder below those that gets a layer.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where programs share memory, and some keep files
SHOWN = 3  # Names of written files in the sentence
WRITES = 'probe=.tfdoctor-$$ && : > "$probe" && rm "$probe"'  # Fails in a folder that cannot be written


def why_not(folder: Path) -> str:
    """Return "" where the writes of a program in this folder can be thrown away, otherwise why not."""
    if shutil.which(BWRAP) is None:
        return f"bubblewrap {SINCE} or newer is not installed"
    probe = WRITES if os.access(folder, os.W_OK) else ":"
    command = [*entering(folder, os.environ), "sh", "-c", probe]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if "--overlay-src" in done.stderr:
        return f"bubblewrap {SINCE} or newer is needed, and an older one is installed"
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return said[-1].removeprefix("bwrap: ") if done.returncode else ""


def entering(
    folder: Path,
    environment: Mapping[str, str],
    texts: Mapping[Path, Path] | None = None,
    keep: Sequence[Path] = (),
) -> list[str]:
    """Return what to write before a command, so that it runs in this folder and its writes are thrown away.

    Files are shown with other ``texts``; what is written into folders to ``keep`` stays.
    """
    words = [BWRAP, "--die-with-parent", *_of("--ro-bind", Path("/"))]
    for place in sorted(_places(folder, environment)):  # a folder before what is mounted inside
        words += _overlay(place) if place.is_dir() else _of("--ro-bind", place)
    for path in filter(Path.exists, AS_THEY_ARE):
        words += _of("--dev-bind", path)
    words += _overlay(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else []
    for path in keep:
        words += _of("--bind", path)
    for path, text in (texts or {}).items():
        words += ["--bind", str(text), str(path)]
        # Of the bytecode that Python has stored of it, some is used without a look at the source.
        for stored in path.with_name("__pycache__").glob(f"{glob.escape(path.stem)}.*"):
            words += ["--ro-bind", os.devnull, str(stored)]
    return [*words, "--chdir", str(folder), "--"]


def _of(option: str, path: Path) -> list[str]:
    return [option, str(path), str(path)]


def _overlay(folder: Path) -> list[str]:
    return ["--overlay-src", str(folder), "--tmp-overlay", str(folder)]


def _places(folder: Path, environment: Mapping[str, str]) -> set[Path]:
    """Return the folders that are shown through overlays, each without what is mounted inside, and mounted files.

    An unprivileged process may put no overlay over a folder with mounts inside: of such a folder, those inside get
    one, and itself stays as it is. Nor can it write below a folder whose owner has no number in its namespace, but
    into the topmost one of an overlay. So each folder on the way to what the program is likely to write gets one.
    """
    mounts = {Path(one.mountpoint) for one in psutil.disk_partitions(all=True)}
    numbers = Path("/proc/self/uid_map").read_text("ascii").split()
    if os.getuid() == 0 and numbers[:3] == ["0", "0", str(2**32 - 1)]:  # root outside of any user namespace
        return {Path("/"), *(place for place in mounts if place.exists() and not _as_it_is(place))}
    homes = (folder, environment.get("HOME", "/"), environment.get("TMPDIR", "/tmp"))  # noqa: S108
    own = [_largest_own(Path(os.path.realpath(home))) for home in homes]
    above = (parent for one in own for parent in (one, *one.parents))
    return {place for one in (Path("/"), *above) for place in _without_mounts(one, mounts)}


def _without_mounts(folder: Path, mounts: set[Path]) -> Iterator[Path]:
    if not any(place != folder and place.is_relative_to(folder) for place in mounts):
        yield folder
        return
    with suppress(OSError):  # not ours to read
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink() and not _as_it_is(path):
                yield from _without_mounts(path, mounts)


def _as_it_is(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in AS_THEY_ARE)


def _largest_own(folder: Path) -> Path:
    """Return the folder, or the highest above it on whose way all are of this user and group."""
    while folder != folder.parent:
        status = folder.parent.stat()
        if (status.st_uid, status.st_gid) != (os.getuid(), os.getgid()):
            break
        folder = folder.parent
    return folder


def warning(why: str, folder: Path, runs: int, minutes: float, written: WrittenFiles | None) -> str:
    """Return why writes stay, how often and how long the program will run, and what it wrote when recorded."""
    elsewhere = "which files outside of the folder it writes is not recorded."
    if written is None:
        wrote = "Which files it writes is not recorded."
    elif not written.count:
        wrote = f"While it was recorded, no file in this folder changed; {elsewhere}"
    else:
        names = [prose(name) for name in written.names[:SHOWN]]
        more = f" and {written.count - len(names)} more" if written.count > len(names) else ""
        files = f"{counted(written.count, 'file')} in this folder changed ({', '.join(names)}{more})"
        wrote = f"While it was recorded, {files}; {elsewhere}"
    return (
        f"what the runs write cannot be thrown away here ({why}). The program will run in {folder} {runs} times or "
        f"more, as far as {minutes:g} minutes allow, and write its files again each time. {wrote}"
    )
