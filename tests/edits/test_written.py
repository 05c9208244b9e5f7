"""The files and messages of `--patch`."""

from tests.kit import *
from tests.report import diagnoses
from tfdoctor.cli.report import write_patch

PATCH = b"--- a/train.py\n+++ b/train.py\n@@ -1 +1 @@\n-caf\xe9\n+tea\n"


def test_a_file_gets_the_bytes_of_the_patch_and_a_dash_is_stdout(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """All else goes to stderr."""
    write_patch(diagnoses.full(), PATCH, str(tmp_path / "fixes.diff"))
    assert (tmp_path / "fixes.diff").read_bytes() == PATCH
    capfdbinary.readouterr()
    write_patch(diagnoses.full(), PATCH, "-")
    output = capfdbinary.readouterr()
    assert output.out == PATCH
    assert b"not in the patch: input-bound, 'Keep the decoded images in memory'" in output.err


@each(b" ::stop-commands::x", b"+\x1b]0;title\x07", b"-# ##[group]x")
def test_a_patch_that_commands_who_shows_it_goes_to_a_file_alone(
    line: bytes, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(OutputError, match="--patch FILE"):
        write_patch(diagnoses.full(), PATCH + line + b"\n", "-")
    assert not capfdbinary.readouterr().out
    write_patch(diagnoses.full(), PATCH + line, str(tmp_path / "fixes.diff"))


def test_without_a_change_nothing_is_written_and_a_file_stays_as_it_is(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    target = tmp_path / "fixes.diff"
    for name in (str(target), "-"):
        write_patch(diagnoses.full(), b"", name)
    output = capfdbinary.readouterr()
    assert output.err.count(b"no patch was written: no change can be applied automatically\n") == 2
    assert (output.out, target.exists()) == (b"", False)
    target.write_bytes(PATCH)
    write_patch(diagnoses.full(), b"", str(target))
    assert f"; {target} stays as it is".encode() in capfdbinary.readouterr().err
    assert target.read_bytes() == PATCH


@cases(
    ("", "--patch needs a file name"),
    ("no/fixes.diff", "choose another file for the patch"),
    ("train.py", "is not a patch"),  # a script
)
def test_a_name_that_is_none_of_a_patch_is_refused(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("import keras\n", "utf-8")
    with pytest.raises(OutputError, match=why):
        write_patch(diagnoses.full(), PATCH, name)
    assert Path("train.py").read_text("utf-8") == "import keras\n"
