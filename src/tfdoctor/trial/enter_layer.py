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
import re
import shutil
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE, MS_NOSUID, MS_NODEV = 0x1000, 0x4000, 1 << 18, 2, 4
MS_RDONLY, MS_NOEXEC, MS_REMOUNT = 1, 8, 32
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # Values of linux/sched.h, sys/mount.h and linux/prctl.h
# Folders of devices and of the kernel, which the program sees without a layer.
AS_THEY_ARE = ("/dev", "/proc", "/sys", "/run")
# The one folder below those that gets a layer.
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where programs share memory, and some keep files
# Size in bytes up to which a file outside of any overlay is copied into the layer; a larger one is read-only.
COPIED = 2**24
# How often an entry of a folder is looked for that other programs remove and make again. Ten looks were seen to be
# too few beside a program that does nothing else.
LOOKS = 100
NO_LAYER = 78  # Exit code: the kernel does not allow it (EX_CONFIG of sysexits.h)

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


def children() -> list[int]:
    """Return the processes whose parent this one is: also those that have outlived their own parent."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                status = Path(entry.path, "stat").read_bytes()
            except OSError:  # it has ended
                continue
            if int(status.rpartition(b")")[2].split()[1]) == os.getpid():
                found.append(int(entry.name))
    return found


def end_children() -> None:
    """End all that the program has left behind, also what entered a session of its own."""
    while left := children():
        for number in left:
            os.kill(number, signal.SIGKILL)
        for number in left:
            os.waitpid(number, 0)


def end_all(_number: int, _frame: object) -> None:
    """End the program and all that it has started: tfdoctor is gone."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    end_children()
    os.killpg(0, signal.SIGKILL)


def run(command: list[str]) -> int:
    """Run the program in a process group, end what it leaves behind, and return its exit code."""
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # the program may signal its group
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the program, whose end is waited for
    signal.signal(signal.SIGHUP, end_all)
    end_with_parent(signal.SIGHUP)
    call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
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
    ended = 0
    while ended != child:  # of what the program leaves behind, nobody else learns the end
        ended, status = os.waitpid(-1, 0)
    code = os.waitstatus_to_exitcode(status)
    end_children()
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


def privileged() -> bool:
    """Say whether this is root outside of any user namespace, for whom overlays have no limits."""
    numbers = Path("/proc/self/uid_map").read_text("ascii").split()
    return os.getuid() == 0 and numbers[:3] == ["0", "0", str(2**32 - 1)]


def mounted() -> list[Path]:
    """Return the places where something is mounted."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    return [Path(os.fsdecode(unescaped(line.split(b" ")[4]))) for line in lines]


def unescaped(path: bytes) -> bytes:
    """Return a path of mountinfo, which has blanks and backslashes as octal numbers."""
    return re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8)]), path)


class Overlay:
    """Everything below `root`, as it is, with what is written going to memory.

    Every file system gets an overlay of its own. An unprivileged process may put one only over a folder without
    mounts inside, and nobody writes below a folder whose owner has no number in the namespace. For it, such
    folders are made anew, entry by entry, on the way to what is mounted and to the folders that the program is
    likely to write to.
    """

    def __init__(self, root: Path, upper_bytes: int, written: list[Path]) -> None:
        self.mounts, self.number = mounted(), 0
        self.written, self.owner = written, (os.getuid(), os.getgid())
        self.privileged = privileged()
        self.memory, self.root = root, root / "root"
        mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, f"size={upper_bytes},mode=755")
        self.root.mkdir()
        self.empty = root / "empty"
        self.empty.touch()

    def cover_all(self) -> None:
        """Show every folder, and let nothing that is written there stay."""
        if not self.privileged:
            self.cover(Path("/"))
            return
        for place in sorted({Path("/"), *self.mounts}):  # a folder before what is mounted inside
            if not any(place.is_relative_to(folder) for folder in AS_THEY_ARE):
                self.cover_mount(place)

    def cover_mount(self, place: Path) -> None:
        """Show what is mounted at a place; nothing where another mount hides it."""
        if place.is_dir():
            self.overlay(place)
        elif place.exists():
            self.cover_file(place)

    def cover(self, folder: Path) -> None:
        """Show a folder to an unprivileged process."""
        if not self._made_anew(folder):
            self.overlay(folder)
            return
        shutil.copystat(folder, self.at(folder))
        for path in list(folder.iterdir()):
            self.cover_entry(path)

    def cover_entry(self, path: Path) -> None:
        """Show an entry of a folder that is made anew; nothing where another program removes it in each look.

        To raise would reach the folder's own entry, which is taken for removed then, and is not empty any more.
        """
        for _ in range(LOOKS):
            try:
                self.make(path)
            except (FileNotFoundError, NotADirectoryError):
                self.remove(path)
            else:
                break

    def make(self, path: Path) -> None:
        """Make an entry in the layer."""
        made, mode = self.at(path), path.lstat().st_mode
        if stat.S_ISLNK(mode):
            made.symlink_to(path.readlink())
        elif not stat.S_ISDIR(mode):
            made.touch()
            self.cover_file(path)
        else:
            made.mkdir()
            if str(path) not in AS_THEY_ARE:
                self.cover(path)

    def remove(self, path: Path) -> None:
        """Remove what was made for an entry that has gone: nothing is mounted there yet."""
        made = self.at(path)
        if made.is_dir() and not made.is_symlink():
            made.rmdir()
        else:
            made.unlink(missing_ok=True)

    def _made_anew(self, folder: Path) -> bool:
        status = folder.stat()
        foreign = self.owner[0] != 0 and (status.st_uid, status.st_gid) != self.owner
        inside = [*self.mounts, *(self.written if foreign else ())]
        return any(place != folder and place.is_relative_to(folder) for place in inside)

    def cover_file(self, path: Path) -> None:
        """Show a file that is below no overlay: a small one as a copy, a large one or a foreign one read-only."""
        status, target = path.stat(), self.at(path)
        if not stat.S_ISREG(status.st_mode):
            mount(str(path), target, None, MS_BIND)
        elif status.st_size <= COPIED and os.access(path, os.R_OK | os.W_OK):
            shutil.copy2(path, target)
        else:
            kept = os.statvfs(path).f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC)
            mount(str(path), target, None, MS_BIND)
            mount("none", target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)

    def overlay(self, folder: Path) -> None:
        """Show a folder through an overlay; as root, folders that are there already can be renamed."""
        self.number += 1
        upper = self.memory / "upper" / str(self.number)
        work = self.memory / "work" / str(self.number)
        for made in (upper, work):
            made.mkdir(parents=True)
        shutil.copystat(folder, upper)
        status = folder.stat()
        if self.privileged:
            os.chown(upper, status.st_uid, status.st_gid)
        layers = f"lowerdir={escaped(folder)},upperdir={upper},workdir={work}"
        own = "redirect_dir=on" if self.privileged else "userxattr"
        mount("overlay", self.at(folder), "overlay", 0, f"{layers},{own}")

    def change(self, path: str, text: bytes) -> None:
        """Show another text as this file."""
        self.number += 1
        changed = self.memory / f"changed{self.number}"
        changed.write_bytes(text)
        shutil.copymode(path, changed)
        mount(str(changed), self.at(Path(path)), None, MS_BIND)
        for stored in stored_bytecode(Path(path)):
            mount(str(self.empty), self.at(stored), None, MS_BIND)

    def keep(self, folder: str) -> None:
        """Show a folder as it is: what is written there stays."""
        if Path(folder).exists():
            mount(folder, self.at(Path(folder)), None, MS_BIND | MS_REC)

    def at(self, path: Path) -> Path:
        """Return where a path lies in the layer."""
        return self.root / path.relative_to("/")


def stored_bytecode(source: Path) -> Iterator[Path]:
    """Yield the bytecode that Python has stored of a source: some is used without a look at the source."""
    folder = source.with_name("__pycache__")
    if folder.is_dir():
        start = f"{source.stem}."
        yield from (path for path in folder.iterdir() if path.name.startswith(start))


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
    shown.cover_all()
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
