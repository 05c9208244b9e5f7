"""Files are written completely or not at all, never through a link of somebody else, and nothing is left over."""

import errno
import resource

from tests.capture.running import SOURCES, environment
from tests.kit import *
from tfdoctor.terms.replacement import replace_file, replaced, unwritten


@each("home/bashrc", "home/missing", "rec/report.html")
def test_a_link_out_of_the_folder_is_replaced_by_the_file(outside: str, tmp_path: Path) -> None:
    """Also one that leads nowhere, or to itself."""
    link, home = tmp_path / "rec" / "report.html", tmp_path / "home"
    for folder in (link.parent, home):
        folder.mkdir()
    (home / "bashrc").write_text("precious")
    link.symlink_to(tmp_path / outside)
    replace_file(link, "page")
    assert (link.is_symlink(), link.read_text()) == (False, "page")
    assert {path.name: path.read_text() for path in home.iterdir()} == {"bashrc": "precious"}


def test_a_link_that_the_user_has_named_stays_one(tmp_path: Path) -> None:
    link, shared = tmp_path / "own" / "baseline.json", tmp_path / "shared" / "baseline.json"
    for path in (link, shared):
        path.parent.mkdir()
    link.symlink_to(shared)
    replace_file(link, "after", named=True)
    assert (link.is_symlink(), shared.read_text()) == (True, "after")


def test_a_link_in_its_folder_stays_one_and_a_file_keeps_its_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("before")
    real.chmod(0o640)
    link.symlink_to(real)
    replace_file(link, "after")
    assert (link.is_symlink(), real.read_text(), real.stat().st_mode & 0o777) == (True, "after", 0o640)


def test_what_is_no_file_is_not_replaced() -> None:
    with pytest.raises(OSError, match="not a file"):
        replace_file(Path("/dev/null"), "text")


def test_a_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    replace_file(tmp_path / "out" / "report.json", b"{}")
    assert (tmp_path / "real" / "report.json").read_bytes() == b"{}"


def write_half(path: Path, error: BaseException) -> None:
    with replaced(path) as temporary:
        temporary.write_text("half")
        raise error


@each(OSError(errno.ENOSPC, "full"), KeyboardInterrupt())
def test_nothing_is_left_of_what_was_not_written(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / f"{'n' * 250}.json"
    path.write_text("before")
    with pytest.raises(type(error)):
        write_half(path, error)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "before"


def test_a_limit_of_the_size_of_files_is_named(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tfdoctor.terms.replacement import replace_file, unwritten\n"
        "try: replace_file(Path(sys.argv[1], 'report.html'), 'x' * 9000)\n"
        "except OSError as error: print(unwritten('out', error))\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, str(tmp_path)],  # -B: its bytecode would be cut too
        env=environment(PYTHONPATH=str(SOURCES)),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        "out cannot be written: it is larger than the limit of 4,096 bytes for a file (`ulimit -f`); raise that, "
        "or make a smaller recording with fewer --steps or --no-trace.\n"
    )
    assert not list(tmp_path.iterdir())


def test_any_other_reason_has_the_cure_of_its_place() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert unwritten("out", full) == ("out cannot be written (No space left on device): choose another folder.")
