"""The files that a pipeline reads: how many, how large, whether they are remote, and on what; never their names."""

from __future__ import annotations

import re
import struct

from ..process.kept import io, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from ..process.declared import Foreign, Tensor, TfDataset

# Paths of TensorFlow's file systems that lie across a network.
REMOTE = re.compile(r"(gs|s3|s3a|http|https|hdfs|viewfs|abfs|abfss|az|oss|cns)://")
LONGEST = 1000  # Bytes of a text that may be a path
MOST_SIZES = 16  # Files whose size is read: training waits meanwhile

# A line a mount (proc_pid_mountinfo(5)): its folder is the fifth field, type and source follow a hyphen.
MOUNTS = "/proc/self/mountinfo"
ESCAPED = re.compile(r"\\([0-7]{3})")  # How the kernel writes spaces, tabs, line feeds and backslashes in a folder
FUSE = "fuse"  # The type of mounts whose program names itself in the source at best
# A source that is the name of a program, such as mountpoint-s3, and no path, bucket or host.
PROGRAM = re.compile(r"[a-z][a-z0-9-]*")

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
# A PNG file begins with its signature and the head of the first chunk, then width and height.
PNG_HEAD = struct.Struct(">16xII")
# A segment of a JPEG file: 0xFF, what it is, and the bytes of the segment, these two included.
MARKER, MARKER_BEGINS, LENGTH_BYTES = struct.Struct(">BBH"), 0xFF, 2
FRAME = struct.Struct(">xHH")  # A frame begins with the bits of a sample, then height and width
# JPEG's markers of a frame, which contains the size; the others among them are tables.
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
MOST_MARKERS = 64  # A JPEG file has some ten before its frame


def describe(dataset: TfDataset) -> dict[str, object] | None:
    """Return {count, scheme, bytes, image, file_system} of a list of paths, or None.

    bytes is the median of a few, image that of [height, width]; None where they are not images.

    A dataset that reads records has the files that it was given.
    """
    given = getattr(dataset, "_filenames", dataset)
    for tensor in getattr(given, "_tensors", None) or ():
        if getattr(tensor.dtype, "name", "") == "string" and tensor.shape.rank:
            found = _described(tensor)
            if found:
                return found
    return None


def _described(tensor: Tensor) -> dict[str, object] | None:
    rows, count = int(tensor.shape[0]), tensor.shape.num_elements()
    if not count or not hasattr(tensor, "numpy"):
        return None
    stride = max(1, rows // MOST_SIZES)
    read: Iterator[Foreign] = (tensor[at].numpy() for at in range(0, rows, stride)[:MOST_SIZES])
    texts: list[bytes] = [row if isinstance(row, bytes) else row.ravel()[0] for row in read]
    if any(len(text) > LONGEST or b"\0" in text for text in texts):
        return None
    paths = [text.decode("utf-8", "replace") for text in texts]
    remote = REMOTE.match(paths[0])
    if remote:
        return {"count": int(count), "scheme": remote[1], "bytes": None}
    if not all(map(os.path.isfile, paths)):
        return None
    sizes = sorted(map(os.path.getsize, paths))
    return {
        "count": int(count),
        "scheme": "",
        "bytes": sizes[len(sizes) // 2],
        "image": median_image(paths),
        "file_system": file_system(paths[0]),
    }


def file_system(path: str, table: str = MOUNTS) -> str:
    """Return the type of the file system that holds a path: "ext4", "nfs4", "fuse.gcsfuse"; "" is unknown."""
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


def median_image(paths: Sequence[str]) -> list[int] | None:
    """Return [height, width] in pixels, the median of each; None unless all files are JPEG or PNG, and readable."""
    sizes = []
    for path in paths:
        try:
            with io.open(path, "rb") as file:
                size = _image_size(file)
        except OSError:  # a file that is gone, or that the user may not read
            return None
        if size is None:
            return None
        sizes.append(size)
    middle = len(sizes) // 2
    return [sorted(size[side] for size in sizes)[middle] for side in (0, 1)] if sizes else None


def _image_size(file: BinaryIO) -> tuple[int, int] | None:
    start = file.read(PNG_HEAD.size)
    if start.startswith(PNG) and len(start) == PNG_HEAD.size:
        width, height = PNG_HEAD.unpack(start)
        return height, width
    return _jpeg_size(file) if start.startswith(JPEG) else None


def _jpeg_size(file: BinaryIO) -> tuple[int, int] | None:
    """Go from marker to marker until a frame's."""
    file.seek(len(JPEG))
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
