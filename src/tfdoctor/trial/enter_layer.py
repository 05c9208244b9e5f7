"""Starts a program whose writes are thrown away: ``python enter_layer.py LAYER-AS-JSON PROGRAM ARGUMENT ...``.

The process gets a mount namespace of its own. In it, every folder is shown through an overlay whose upper layer
lies in memory: what the program reads is what is there, what it writes is gone with its last
process, however that ends. Changed files are written into that layer, so the program sees them under
their own names. Only the standard library is imported, and only here, before the program takes over.

The layer: ``changed`` {file: file with its changed text}, ``keep`` [folders whose writes stay], ``bytes`` the
size of the upper layer, ``folder`` the working directory, ``mount`` an empty folder for the layer's root.
"""

import ctypes
import json
import os
import shutil
import signal
import sys
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x1000, 0x4000, 1 << 18, 2, 4
PR_SET_PDEATHSIG = 1
"""Values of linux/sched.h, sys/mount.h and linux/prctl.h."""

AS_THEY_ARE = ("/dev", "/proc", "/sys", "/run")
"""Folders of devices and of the kernel, which the program sees without a layer."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where programs share memory, and some keep files
"""The one folder below those that gets a layer."""

NO_LAYER = 78
"""Exit code: the kernel does not allow it (EX_CONFIG of sysexits.h)."""

LIBC = ctypes.CDLL(None, use_errno=True)


def call(name: str, *args: object) -> None:
    """Call a function of the C library.

    Raises:
        OSError: it failed.
    """
    if getattr(LIBC, name)(*args):
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source: str, target: Path, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount a file system, as the system call does."""
    texts = (text.encode() if text is not None else None for text in (source, str(target), kind))
    call("mount", *texts, flags, data.encode() if data is not None else None)


def end_with_parent(number: signal.Signals) -> None:
    """Get a signal when the parent ends, however that is."""
    parent = os.getppid()
    call("prctl", PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def end_all(_number: int, _frame: object) -> None:
    """End the program and all that it has started: tfdoctor is gone."""
    os.killpg(0, signal.SIGKILL)


def run(command: list[str]) -> int:
    """Run the program in a process group, and end the group when tfdoctor ends; return its exit code."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the program, whose end is waited for
    signal.signal(signal.SIGHUP, end_all)
    end_with_parent(signal.SIGHUP)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        end_with_parent(signal.SIGKILL)
        try:
            os.execvp(command[0], command)  # noqa: S606  # the user's program
        except OSError as error:
            print(f"tfdoctor: {command[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201  # to the run's log
            os._exit(127)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def own_namespace() -> None:
    """Enter a mount namespace: an unprivileged user needs a user namespace for it, with the same ids."""
    user, group = os.getuid(), os.getgid()
    if user == 0:
        call("unshare", CLONE_NEWNS)
    else:
        call("unshare", CLONE_NEWUSER | CLONE_NEWNS)
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    mount("none", Path("/"), None, MS_REC | MS_PRIVATE)


def mounted() -> list[Path]:
    """Return the places where something is mounted."""
    lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    return [Path(line.split()[4].encode().decode("unicode_escape")) for line in lines]


class Overlay:
    """Everything below `root`, as it is, with what is written going to memory.

    An unprivileged process may put an overlay only over a folder without mounts inside, and nobody writes below
    a folder whose owner has no number in the namespace. Such folders are made anew, entry by entry, on the way
    to what is mounted and to the folders that the program is likely to write to.
    """

    def __init__(self, root: Path, upper_bytes: int, written: list[Path]) -> None:
        self.mounts, self.number = mounted(), 0
        self.written, self.owner = written, (os.getuid(), os.getgid())
        self.memory, self.root = root, root / "root"
        mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, f"size={upper_bytes},mode=755")
        self.root.mkdir()

    def cover(self, folder: Path) -> None:
        """Show a folder, and let nothing that is written there stay."""
        if not self._made_anew(folder):
            self.overlay(folder)
            return
        shutil.copystat(folder, self.at(folder))
        for entry in os.scandir(folder):
            path = Path(entry.path)
            if entry.is_symlink():
                self.at(path).symlink_to(path.readlink())
            elif not entry.is_dir():
                self.at(path).touch()
                mount(entry.path, self.at(path), None, MS_BIND)
            else:
                self.at(path).mkdir()
                if entry.path not in AS_THEY_ARE:
                    self.cover(path)

    def _made_anew(self, folder: Path) -> bool:
        status = folder.stat()
        foreign = self.owner[0] != 0 and (status.st_uid, status.st_gid) != self.owner
        inside = [*self.mounts, *(self.written if foreign else ())]
        return any(place != folder and place.is_relative_to(folder) for place in inside)

    def overlay(self, folder: Path) -> None:
        """Show a folder without mounts inside through an overlay."""
        self.number += 1
        upper = self.memory / "upper" / str(self.number)
        work = self.memory / "work" / str(self.number)
        for made in (upper, work):
            made.mkdir(parents=True)
        shutil.copystat(folder, upper)
        layers = f"lowerdir={escaped(folder)},upperdir={upper},workdir={work}"
        mount("overlay", self.at(folder), "overlay", 0, layers)

    def change(self, path: str, text: bytes) -> None:
        """Show another text as this file."""
        self.number += 1
        changed = self.memory / f"changed{self.number}"
        changed.write_bytes(text)
        shutil.copymode(path, changed)
        mount(str(changed), self.at(Path(path)), None, MS_BIND)

    def keep(self, folder: str) -> None:
        """Show a folder as it is: what is written there stays."""
        if Path(folder).exists():
            mount(folder, self.at(Path(folder)), None, MS_BIND | MS_REC)

    def at(self, path: Path) -> Path:
        """Return where a path lies in the layer."""
        return self.root / path.relative_to("/")


def escaped(folder: Path) -> str:
    """Return a path as overlay's options take it."""
    return str(folder).replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def enter(layer: dict[str, object]) -> None:
    """Enter the layer that a trial describes, in its working directory."""
    root, folder = Path(str(layer["mount"])), str(layer["folder"])
    keep, changed = layer["keep"], layer["changed"]
    size = layer["bytes"]
    if not (isinstance(keep, list) and isinstance(changed, dict) and isinstance(size, int)):
        raise TypeError("the layer is not what a trial writes")
    texts = {path: Path(text).read_bytes() for path, text in changed.items()}
    own_namespace()
    homes = (folder, os.environ.get("HOME", "/"), os.environ.get("TMPDIR", "/tmp"))  # noqa: S108
    shown = Overlay(root, size, [Path(os.path.realpath(home)) for home in homes])
    shown.cover(Path("/"))
    for path in (*AS_THEY_ARE, *keep):
        shown.keep(path)
    if SHARED_MEMORY.is_dir():
        shown.overlay(SHARED_MEMORY)
    for path, text in texts.items():
        shown.change(path, text)
    os.chroot(shown.root)
    os.chdir(folder)
    if os.access(".", os.W_OK):  # an overlay cannot write where the group is not the user's own
        probe = Path(f".tfdoctor-{os.getpid()}")
        probe.touch()
        probe.unlink()


def main() -> None:
    """Enter the layer, if there is one, and run the program."""
    layer = json.loads(sys.argv[1])
    if layer is not None:
        try:
            enter(layer)
        except OSError as error:
            print(f"tfdoctor: no throw-away layer: {error}", file=sys.stderr)  # noqa: T201  # to the run's log
            sys.exit(NO_LAYER)
    sys.exit(run(sys.argv[2:]))


if __name__ == "__main__":
    main()
