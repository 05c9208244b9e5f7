"""Whatever the standard streams are, the files and the exit code are the same."""

from io import StringIO

from tests.cli.kit import *
from tfdoctor.cli.streams import Unread, draw


@each("stdout", "stderr")
def test_a_reader_who_leaves_changes_nothing(which: str, tmp_path: Path) -> None:
    """The read end of the pipe is closed before the command writes."""
    words = ["report", str(SLOW), "--out", str(tmp_path), "--fail-on", "note"]
    words += ["--write-baseline", str(tmp_path / "b.json")] if which == "stderr" else []
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, which: subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-m", "tfdoctor", *words], **streams) as command:
        pipe = command.stdout or command.stderr
        assert pipe is not None
        pipe.close()
        code = command.wait(timeout=120)
    assert code == (0 if which == "stderr" else 3)  # --write-baseline accepts what is there
    assert (tmp_path / "report.html").stat().st_size > 0
    assert (tmp_path / "b.json").exists() == (which == "stderr")


def shell(redirected: str, cwd: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    """Run `python -m tfdoctor WORDS` with its streams redirected by a shell."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "tfdoctor", *words],
        cwd=cwd,
        env=environment(PYTHONPATH=str(SOURCES), **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_what_is_printed_commands_nothing_but_what_is_ours() -> None:
    printed = StringIO()
    stream: Any = Unread(printed, lost=False)
    print("tfdoctor: a\x1b[31m\n ::error::x\u202e\ud800", file=stream)
    draw("\x1b[1mbold\x1b[0m\n::notice title=tfdoctor::x", stream)
    assert printed.getvalue() == (
        "tfdoctor: a\\x1b[31m\n \\::error::x\\u202e\\ud800\n\x1b[1mbold\x1b[0m\n::notice title=tfdoctor::x\n"
    )


@each(">&-", "2>&-", "<&-", "<&- >&- 2>&-", "2>/dev/full")
def test_the_script_has_the_same_streams_and_gives_the_exit_code(closed: str, tmp_path: Path) -> None:
    """A closed stream is closed for the script too, and no file gets its number."""
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\nopen('seen', 'w').write(str([sys.stdin, sys.stdout, sys.stderr].count(None)))\n"
        "sys.exit(5)\n"
    )
    done = shell(closed, tmp_path, "profile", "--no-report", "--out", "rec", "train.py")
    assert done.returncode == 5
    assert (tmp_path / "seen").read_text() == str(closed.count("&-"))


@each(">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full")
def test_a_command_does_without_its_streams(closed: str, tmp_path: Path) -> None:
    assert shell(closed, tmp_path, "explain", "zero-factor").returncode == 0


def test_output_to_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    done = shell(">/dev/full", tmp_path, "explain", "zero-factor")
    assert (done.returncode, done.stderr) == (2, b"tfdoctor: output: No space left on device.\n")


@each("ascii", "latin-1", "utf-8")
def test_characters_that_the_output_lacks_are_replaced(encoding: str) -> None:
    text = "4.0\N{MULTIPLICATION SIGN} \N{FULL BLOCK} \udce4"
    code = f"import typer; from tfdoctor.cli.streams import prepare; prepare(); typer.echo({text!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(PYTHONPATH=str(SOURCES), PYTHONIOENCODING=encoding),
        capture_output=True,
        check=True,
    )
    # A surrogate is told by its number, as all that shows nothing.
    assert done.stdout.strip() == text.replace("\udce4", r"\udce4").encode(encoding, "replace")
