"""Trace a job with collectives without the crash that TensorFlow's profiler has there.

A collective starts in one thread and ends in another, and leaves an event for either. When the profiler
stops, TensorFlow (`TraceMeRecorder::Consume`, up to 2.21 at least) notes the address of each end, copies the
events to a larger vector, frees the old ones, and then writes through the noted addresses. In a job of two
workers this ends one process in every 20 to 40 traces with SIGSEGV or SIGABRT.

TensorFlow records no end for an activity of number 0. While a trace is open, the function that numbers these
activities (`TraceMeRecorder::NewActivityId`) is therefore replaced by one that returns 0: its entry in the
table of functions that libtensorflow_framework calls. All other events, the collectives' own among them, stay.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

CONTEXT = "tensorflow.python.eager.context"
LIBRARY = "libtensorflow_framework.so"
NUMBERING = b"15TraceMeRecorder13NewActivityIdEv\0"
"""How its name in the library ends; the namespace before differs between versions."""

RETURNS_0 = "pthread_getconcurrency"
"""Returns what `pthread_setconcurrency` has set, which has no effect on Linux and is 0 without it."""

STRTAB, SYMTAB, STRSZ, JMPREL, PLTRELSZ = 5, 6, 10, 23, 2
"""Tags of the dynamic section (elf.h)."""

DYNAMIC = 2
"""The type of its program header."""


class UnsafeError(RuntimeError):
    """A trace could end the run."""

    def __init__(self) -> None:
        super().__init__(
            "TensorFlow's profiler can crash a job with collectives, and tfdoctor cannot prevent it "
            "in this build of TensorFlow: profile a single worker"
        )


def present() -> bool:
    """Say whether this process exchanges tensors with other workers, or between devices of one kind."""
    if not sys.platform.startswith("linux"):
        return False  # other standard libraries move the events, and free none
    context = getattr(sys.modules.get(CONTEXT), "_context", None)
    if getattr(context, "_collective_ops_server_def", None) is not None:
        return True
    kinds = [device.device_type for device in getattr(context, "_logical_devices", None) or ()]
    return len(kinds) > len(set(kinds))


class Unnumbered:
    """The time of a trace; in a job with collectives no activity gets a number in it."""

    def __init__(self) -> None:
        self.slot: int | None = None
        self.before = 0

    def begin(self) -> None:
        """Replace the function that numbers.

        Raises:
            UnsafeError: this TensorFlow has no such entry, or protects it.
        """
        if not present():
            return
        import ctypes

        function = getattr(ctypes.CDLL(None), RETURNS_0, None)
        slot = _slot()
        if slot is None or function is None or function() != 0:
            raise UnsafeError
        self.before = _read(slot)
        _write(slot, ctypes.cast(function, ctypes.c_void_p).value or 0)
        self.slot = slot

    def end(self) -> None:
        """Bring the function back."""
        if self.slot is not None:
            _write(self.slot, self.before)
            self.slot = None


def _slot() -> int | None:
    """Return the address of the entry, or None."""
    base = _base()
    if base is None:
        return None
    import ctypes
    import struct

    tags = dict(_dynamic(base))
    names = ctypes.string_at(tags[STRTAB], tags[STRSZ])
    end = names.find(NUMBERING)
    if end < 0:
        return None
    name = names.rfind(b"\0", 0, end) + 1
    table = ctypes.string_at(tags[JMPREL], tags[PLTRELSZ])
    for offset, info, _ in struct.iter_unpack("<QQq", table):
        if ctypes.c_uint32.from_address(tags[SYMTAB] + 24 * (info >> 32)).value == name:
            return base + int(offset)
    return None


def _base() -> int | None:
    """Return where TensorFlow's library begins in memory."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if LIBRARY in line and line.split()[2] == "00000000":
                return int(line.partition("-")[0], 16)
    return None


def _dynamic(base: int) -> Iterator[tuple[int, int]]:
    """Return the tags of a library's dynamic section; addresses are those in memory."""
    import ctypes
    import struct

    header = ctypes.string_at(base, 64)
    start, size, count = (
        struct.unpack_from("<Q", header, 32)[0],
        *struct.unpack_from("<HH", header, 54),
    )
    for number in range(count):
        kind, _, _, address, _, _, length, _ = struct.unpack(
            "<IIQQQQQQ", ctypes.string_at(base + start + number * size, 56)
        )
        if kind == DYNAMIC:
            for tag, value in struct.iter_unpack("<qQ", ctypes.string_at(base + address, length)):
                relative = tag in (STRTAB, SYMTAB, JMPREL) and value < base
                yield tag, value + base if relative else value


def _read(slot: int) -> int:
    import ctypes

    return ctypes.c_uint64.from_address(slot).value


def _write(slot: int, value: int) -> None:
    """Write an entry; builds that protect the table get it writable (`mprotect`)."""
    import ctypes
    import mmap

    page = slot - slot % mmap.PAGESIZE
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, protection):
        raise UnsafeError
    ctypes.c_uint64.from_address(slot).value = value
