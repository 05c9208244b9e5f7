"""The agent reads the size of an image from the header of its file."""

import struct
from pathlib import Path

import pytest

from tfdoctor.capture.agent.program import image_sizes


def png(height: int, width: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def jpeg(height: int, width: int, frame: int = 0xC0) -> bytes:
    """Return a file with a thumbnail's bytes in a segment before the frame."""
    thumbnail = b"\xff\xd8\xff\xc0" + bytes(100)
    before = struct.pack(">BBH", 0xFF, 0xE1, len(thumbnail) + 2) + thumbnail
    return b"\xff\xd8" + before + struct.pack(">BBHBHH", 0xFF, frame, 17, 8, height, width)


def sizes(folder: Path, *contents: bytes) -> list[int] | None:
    paths = [folder / str(at) for at in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return image_sizes.median([str(path) for path in paths])


@pytest.mark.parametrize("content", [png(30, 40), jpeg(30, 40), jpeg(30, 40, 0xC2)])
def test_height_and_width(tmp_path: Path, content: bytes) -> None:
    assert sizes(tmp_path, content) == [30, 40]


def test_the_median_of_several(tmp_path: Path) -> None:
    assert sizes(tmp_path, png(10, 90), jpeg(30, 40), png(50, 10)) == [30, 40]


@pytest.mark.parametrize(
    "content", [b"", b"text", b"\xff\xd8", png(3, 4)[:20], jpeg(3, 4)[:-2], b"\xff\xd8" + bytes(99)]
)
def test_other_and_damaged_files_have_none(tmp_path: Path, content: bytes) -> None:
    assert sizes(tmp_path, content, png(3, 4)) is None
