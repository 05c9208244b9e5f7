"""What the agent tells of the files of a pipeline: the sizes of images, and the file system."""

from tests.capture.kit import *

files = agent.load("program.input_files")


def png(height: int, width: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)


def jpeg(height: int, width: int, frame: int = 0xC0) -> bytes:
    """Return a file with a thumbnail's bytes in a segment before the frame."""
    thumbnail = b"\xff\xd8\xff\xc0" + bytes(100)
    before = struct.pack(">BBH", 0xFF, 0xE1, len(thumbnail) + 2) + thumbnail
    return b"\xff\xd8" + before + struct.pack(">BBHBHH", 0xFF, frame, 17, 8, height, width)


@cases(
    ([png(30, 40)], [30, 40]),
    ([jpeg(30, 40)], [30, 40]),
    ([jpeg(30, 40, 0xC2)], [30, 40]),
    ([png(10, 90), jpeg(30, 40), png(50, 10)], [30, 40]),  # the median of each
    *(
        ([content, png(3, 4)], None)  # other and damaged files
        for content in (b"", b"text", b"\xff\xd8", png(3, 4)[:20], jpeg(3, 4)[:-2], b"\xff\xd8" + bytes(99))
    ),
)
def test_height_and_width_of_images(contents: list[bytes], size: list[int] | None, tmp_path: Path) -> None:
    paths = [tmp_path / str(at) for at in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    assert files.median_image([str(path) for path in paths]) == size


TABLE = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /data rw,relatime shared:7 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /data/local rw - xfs /dev/nvme0n1 rw
32 22 0:42 / /with\040space rw - fuse.gcsfuse bucket rw
33 22 0:43 / /s3 rw - fuse mountpoint-s3 ro
34 22 0:44 / /other rw - fuse /home/me/secret rw
35 22 0:45 / /twice rw - ext4 /dev/vdb rw
36 22 0:46 / /twice rw - lustre 10.0.0.1@tcp:/fs rw
"""


def test_the_innermost_and_latest_mount_holds_a_file(tmp_path: Path) -> None:
    """Without the table none is known; by default it is that of this machine."""
    table = tmp_path / "mountinfo"
    assert files.file_system("/data/a", str(table)) == ""
    table.write_text(TABLE)
    mounted = {"/home/me": "ext4", "/data": "nfs4", "/data/local": "xfs", "/database": "ext4", "/other": "fuse"}
    mounted |= {"/with space": "fuse.gcsfuse", "/s3": "fuse.mountpoint-s3", "/twice": "lustre"}
    assert {path: files.file_system(f"{path}/a.tfrecord", str(table)) for path in mounted} == mounted
    assert files.file_system("/proc/self") == "proc"
