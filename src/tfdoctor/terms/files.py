"""Reads files that anybody may have made: only regular ones, and no more of one than its kind can need.

A recording may come from a stranger. In place of a file it may have a pipe or a device, which never ends, a packed
file that unpacks to gigabytes, or a link to a file of the reader's.
"""

import errno
import gzip
import mmap
import os
import stat
from io import BufferedReader
from pathlib import Path

from tfdoctor.terms.limits import MB, ROOM

MOST_BYTES = 64 * MB  # Of a file that one JSON object fills, also unpacked: a report has 1 MB, a manifest 0.1 MB
# Of a file with a line for each sample: one of 300 bytes every 200 ms for a week is 900 MB.
MOST_ROWS_BYTES = 1024 * MB
# Of a block as `stat` counts them, and how far a file system packs a file at most.
BLOCK_BYTES, PACKED_BY_DISK = 512, 8
PACKED_BY_GZIP = 25  # How much more room a packed file gets: programs shrink to a twentieth


class NotReadableError(OSError):
    """What has the name of a file is no regular file, or is larger than such a file can be."""


def opened(path: Path) -> BufferedReader:
    """Return a regular file, opened for reading.

    Raises:
        NotReadableError: it is a folder, a pipe, a device or a socket, of which nothing is read, or a link that
            leads out of the link's folder.
        OSError: it cannot be opened; also where its name is none that a file can have.
    """
    try:
        if path.is_symlink() and not is_below(path, path.parent):
            raise NotReadableError(errno.ELOOP, "it is a link to another folder", str(path))
        # The kind is known before and after it is opened: a device may act on being opened, and a pipe wait.
        if stat.S_ISREG(path.stat().st_mode):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
            file = os.fdopen(descriptor, "rb")
            known = os.fstat(descriptor)
            if stat.S_ISREG(known.st_mode):
                # Of a file of holes, what is on the disk counts; a file system may pack the others.
                ROOM.add(min(known.st_size, PACKED_BY_DISK * BLOCK_BYTES * known.st_blocks))
                return file
            file.close()
    except ValueError as error:  # a NUL in the name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    raise NotReadableError(errno.EINVAL, "it is not a regular file", str(path))


def content(path: Path, most: int | None = MOST_BYTES) -> bytes:
    """Return what is in a regular file of at most this many bytes.

    Raises:
        NotReadableError: it is something else, or larger.
        OSError: it cannot be read.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise _too_large(path, most)
        return file.read(size)  # and not what is added to it meanwhile


def in_pages(path: Path, padding: int) -> mmap.mmap:
    """Return what is in a regular file, and ``padding`` zeros, as memory that can be given back page by page.

    Raises:
        NotReadableError: it is something else.
        OSError: it cannot be read.
        MemoryError: there is less memory than that.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            pages = mmap.mmap(-1, size + padding, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:  # what allocates is told of memory, and not of the file
            raise MemoryError from error
        file.readinto(memoryview(pages)[:size])
    return pages


def unpacked(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return what is in a file packed with gzip: at most this many bytes.

    Raises:
        NotReadableError: it is no regular file, or what is in it is larger.
        OSError: it cannot be read, or is not packed.
        EOFError, zlib.error: it is cut off, or damaged.
    """
    with opened(path) as file, gzip.GzipFile(fileobj=file) as packed:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise _too_large(path, most)
        ROOM.add(PACKED_BY_GZIP * size)
        if packed.seek(most + 1) > most:  # reads it piece by piece, and keeps none
            raise _too_large(path, most)
        packed.seek(0)
        return packed.read()


def is_below(path: Path, folder: Path) -> bool:
    """Say whether a file is in a folder, or in one below it, after its links are followed."""
    # Other than Path.resolve, this raises nothing of links in a circle.
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _too_large(path: Path, most: int) -> NotReadableError:
    return NotReadableError(errno.EFBIG, f"it has more than {most // MB} MB", str(path))
