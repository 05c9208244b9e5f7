"""Files that anybody may have made: regular ones alone, within limits, and behind no link that leads elsewhere."""

import socket
import threading

from tests.kit import *
from tfdoctor.terms.files import MOST_BYTES, NotReadableError, content, is_below, opened, unpacked


def bound(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@each(os.mkfifo, bound, Path.mkdir, device)
def test_what_is_no_regular_file_is_not_read(make: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "tfdoctor.json"
    make(path)
    ended = threading.Event()

    def reads() -> None:
        for read in (opened, content, unpacked):
            with pytest.raises(NotReadableError):
                read(path)
        ended.set()

    threading.Thread(target=reads, daemon=True).start()
    assert ended.wait(10)  # opening a pipe would wait for a writer


def test_a_file_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(NotReadableError, match="more than 64 MB"):
        content(path)


@each(1, 3)
def test_what_a_file_unpacks_to_is_limited(members: int, tmp_path: Path) -> None:
    path = tmp_path / "report.json.gz"
    path.write_bytes(gzip.compress(b" " * (MOST_BYTES // members + 1)) * members)
    with pytest.raises(NotReadableError, match="more than 64 MB"):
        unpacked(path)
    path.write_bytes(gzip.compress(b"ab") * members)
    assert unpacked(path) == b"ab" * members
    with pytest.raises(NotReadableError):
        unpacked(path, most=2 * members - 1)


def test_links_are_followed_within_their_folder(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    folder = tmp_path / "recording"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "file").write_text("own")
    (folder / "inner").symlink_to("below/file")
    (folder / "outer").symlink_to(tmp_path / "outside")
    (folder / "twice").symlink_to("outer")
    (folder / "loop").symlink_to("loop")

    assert content(folder / "inner") == b"own"
    for name in ("outer", "twice"):
        with pytest.raises(NotReadableError, match="link"):
            content(folder / name)
        assert not is_below(folder / name, folder)
    with pytest.raises(OSError, match="loop"):
        content(folder / "loop")


@each("nu\0l", "x" * 5000, ids=["NUL", "long"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_system(name: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"No such file|too long"):
        content(tmp_path / name)
