"""The files and messages of `--patch`."""

from pathlib import Path

import pytest

from tests.report import diagnoses
from tfdoctor.cli.report import write_patch
from tfdoctor.terms.errors import OutputError

PATCH = b"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-caf\xe9\n+tea\n"


def test_a_file_gets_the_bytes_of_the_patch(tmp_path: Path) -> None:
    write_patch(diagnoses.full(), PATCH, str(tmp_path / "fixes.diff"))
    assert (tmp_path / "fixes.diff").read_bytes() == PATCH


def test_a_dash_is_stdout_and_all_else_goes_to_stderr(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_patch(diagnoses.full(), PATCH, "-")
    output = capfdbinary.readouterr()
    assert output.out == PATCH
    assert b"not in the patch: input-bound, 'Keep the decoded images in memory'" in output.err


@pytest.mark.parametrize("line", [b" ::stop-commands::x", b"+\x1b]0;title\x07", b"-# ##[group]x"])
def test_a_patch_that_commands_who_shows_it_goes_to_a_file_alone(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], line: bytes
) -> None:
    with pytest.raises(OutputError, match="--patch FILE"):
        write_patch(diagnoses.full(), PATCH + line + b"\n", "-")
    assert not capfdbinary.readouterr().out
    write_patch(diagnoses.full(), PATCH + line, str(tmp_path / "fixes.diff"))


def test_without_a_change_nothing_is_written(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    target = tmp_path / "fixes.diff"
    write_patch(diagnoses.full(), b"", str(target))
    write_patch(diagnoses.full(), b"", "-")
    output = capfdbinary.readouterr()
    assert output.err.count(b"no patch was written: no change can be applied automatically\n") == 2
    assert not output.out
    assert not target.exists()


def test_without_a_change_a_file_of_that_name_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "fixes.diff"
    target.write_bytes(PATCH)
    write_patch(diagnoses.full(), b"", str(target))
    assert f"; {target} stays as it is" in capsys.readouterr().err
    assert target.read_bytes() == PATCH


def test_a_patch_without_a_name_is_refused() -> None:
    with pytest.raises(OutputError, match="--patch needs a file name"):
        write_patch(diagnoses.full(), PATCH, "")


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "no" / "fixes.diff"
    with pytest.raises(OutputError, match="choose another file for the patch"):
        write_patch(diagnoses.full(), PATCH, str(target))


def test_a_script_is_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "train.py"
    target.write_text("import keras\n", "utf-8")
    with pytest.raises(OutputError, match="is not a patch"):
        write_patch(diagnoses.full(), PATCH, str(target))
    assert target.read_text("utf-8") == "import keras\n"
