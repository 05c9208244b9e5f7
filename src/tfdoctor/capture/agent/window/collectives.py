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

from ..process.kept import io, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTEXT = "tensorflow.python.eager.context"
LIBRARY = "libtensorflow_framework.so"
# How its name in the library ends; the namespace before differs between versions.
NUMBERING = b"15TraceMeRecorder13NewActivityIdEv\0"
# Returns what `pthread_setconcurrency` has set, which has no effect on Linux and is 0 without it.
RETURNS_0 = "pthread_getconcurrency"
STRTAB, SYMTAB, STRSZ, JMPREL, PLTRELSZ = 5, 6, 10, 23, 2  # Tags of the dynamic section (elf.h)
LOAD, DYNAMIC = 1, 2  # Types of program headers: a part of the file in memory, and the dynamic section
# A program header of a 64-bit library: type, flags, offset, address, physical address, size in the file and in
# memory, alignment.
HEADER = "<IIQQQQQQ"


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
            UnsafeError: this TensorFlow has no such entry, or it cannot be found or written.
        """
        if not present():
            return
        try:
            self._replace()
        except Exception as error:  # whatever this build of TensorFlow or this kernel is like
            raise UnsafeError from error

    def _replace(self) -> None:
        import ctypes

        function, slot = getattr(ctypes.CDLL(None), RETURNS_0), _slot()
        if function() != 0:
            raise UnsafeError
        self.before = ctypes.c_uint64.from_address(slot).value
        _write(slot, ctypes.cast(function, ctypes.c_void_p).value or 0)
        self.slot = slot

    def end(self) -> None:
        """Bring the function back."""
        if self.slot is not None:
            _write(self.slot, self.before)
            self.slot = None


def _loaded() -> tuple[int, list[tuple[int, ...]]]:
    """Ask the dynamic linker where TensorFlow's library begins, and for its program headers."""
    import ctypes
    import struct

    class Info(ctypes.Structure):
        _fields_ = (
            ("address", ctypes.c_uint64), ("name", ctypes.c_char_p),
            ("headers", ctypes.c_void_p), ("number", ctypes.c_uint16),
        )  # fmt: skip

    found: list[tuple[int, list[tuple[int, ...]]]] = []

    def visit(info: Any, _size: int, _data: int | None) -> int:  # noqa: ANN401  # a pointer of ctypes
        entry = info.contents
        if LIBRARY.encode() not in os.path.basename(entry.name or b""):
            return 0
        table = ctypes.string_at(entry.headers, entry.number * struct.calcsize(HEADER))
        found.append((entry.address, list(struct.iter_unpack(HEADER, table))))
        return 1

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(callback(visit), None)
    if not found or sys.maxsize < 2**32:
        raise UnsafeError
    return found[0]


def _slot() -> int:
    """Return the address of the entry; every address is checked to lie in the library before it is read."""
    import ctypes
    import struct

    base, headers = _loaded()

    def memory(address: int, size: int) -> bytes:
        for kind, _, _, start, _, _, length, _ in headers:
            if kind == LOAD and base + start <= address and address + size <= base + start + length:
                return ctypes.string_at(address, size)
        raise UnsafeError

    start, length = next((base + header[3], header[6]) for header in headers if header[0] == DYNAMIC)
    tags = dict(struct.iter_unpack("<qQ", memory(start, length)))
    for tag in (STRTAB, SYMTAB, JMPREL):
        if tags[tag] < base:  # some linkers leave the addresses of the file there
            tags[tag] += base
    names = memory(tags[STRTAB], tags[STRSZ])
    name = names.rfind(b"\0", 0, names.index(NUMBERING)) + 1
    for offset, info, _ in struct.iter_unpack("<QQq", memory(tags[JMPREL], tags[PLTRELSZ])):
        symbol = memory(tags[SYMTAB] + 24 * (info >> 32), 4)
        if struct.unpack("<I", symbol)[0] == name:
            memory(base + offset, 8)  # it must lie in the library
            return base + int(offset)
    raise UnsafeError


def _write(slot: int, value: int) -> None:
    """Write an entry; a protected table is writable for just that time."""
    import ctypes
    import mmap

    libc, page = ctypes.CDLL(None), ctypes.c_void_p(slot - slot % mmap.PAGESIZE)
    protected = not _is_writable(slot)
    if protected and libc.mprotect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE):
        raise UnsafeError
    ctypes.c_uint64.from_address(slot).value = value
    if protected:
        libc.mprotect(page, mmap.PAGESIZE, mmap.PROT_READ)


def _is_writable(address: int) -> bool:
    with io.open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            begin, _, rest = line.partition("-")
            end, permissions, *_ = rest.split()
            if int(begin, 16) <= address < int(end, 16):
                return "w" in permissions
    raise UnsafeError
