"""The sizes of stored images, from the headers of their files."""

from __future__ import annotations

import struct

from ..process.kept import io, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8"

# A PNG file begins with its signature and the head of the first chunk, then width and height.
PNG_HEAD = struct.Struct(">16xII")
# A segment of a JPEG file: 0xFF, what it is, and the bytes of the segment, these two included.
MARKER = struct.Struct(">BBH")

MARKER_BEGINS = 0xFF

LENGTH_BYTES = 2

FRAME = struct.Struct(">xHH")  # A frame begins with the bits of a sample, then height and width
# JPEG's markers of a frame, which contains the size; the others among them are tables.
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
MOST_MARKERS = 64  # A JPEG file has some ten before its frame


def median(paths: Sequence[str]) -> list[int] | None:
    """Return [height, width] in pixels, the median of each; None unless all files are JPEG or PNG, and readable."""
    sizes = []
    for path in paths:
        try:
            with io.open(path, "rb") as file:
                size = _size(file)
        except OSError:  # a file that is gone, or that the user may not read
            return None
        if size is None:
            return None
        sizes.append(size)
    middle = len(sizes) // 2
    return [sorted(size[side] for size in sizes)[middle] for side in (0, 1)] if sizes else None


def _size(file: BinaryIO) -> tuple[int, int] | None:
    start = file.read(PNG_HEAD.size)
    if start.startswith(PNG) and len(start) == PNG_HEAD.size:
        width, height = PNG_HEAD.unpack(start)
        return height, width
    return _jpeg(file) if start.startswith(JPEG) else None


def _jpeg(file: BinaryIO) -> tuple[int, int] | None:
    """Go from marker to marker until a frame's."""
    file.seek(2)
    for _ in range(MOST_MARKERS):
        head = file.read(MARKER.size)
        if len(head) < MARKER.size:
            return None
        begins, marker, length = MARKER.unpack(head)
        if begins != MARKER_BEGINS:
            return None
        if marker in FRAMES:
            size = file.read(FRAME.size)
            return FRAME.unpack(size) if len(size) == FRAME.size else None
        file.seek(length - LENGTH_BYTES, os.SEEK_CUR)
    return None
