"""Before runs whose writes stay: what is said, and what each answer does, at a real terminal and without one."""

import pty
import select

from tests.cli.kit import *

CTRL_C = b"\x03"
QUESTION = b"Run it? [y/N]: "
OPTIONS = ("--no-layer", "--env", "A=1", "--minutes", "2")


def answered(recording: Path, answer: bytes) -> tuple[int, str]:
    """Run the command at a terminal of its own and type an answer; return its exit code and what it showed."""
    words = [sys.executable, "-m", "tfdoctor", "try", str(recording), *OPTIONS]
    child, terminal = pty.fork()
    if not child:
        os.execve(words[0], words, environment())
    shown = b""
    while QUESTION not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, answer)
    try:
        while True:
            if select.select([terminal], [], [], 2.0)[0]:
                shown += os.read(terminal, 4096)
            elif answer == CTRL_C and sleeps(child):
                os.write(terminal, answer)  # came before Python waited for input, which does not look again
    except OSError:  # the terminal of a process that has ended
        pass
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), " ".join(shown.decode().split())


def sleeps(process: int) -> bool:
    """Say whether a process waits for something else than its turn on a busy machine."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@cases((b"n\n", 2, {}), (CTRL_C, 130, {"written": None}))
def test_nothing_is_run_without_a_yes(answer: bytes, code: int, changes: dict[str, Any], tmp_path: Path) -> None:
    recording = made(tmp_path, **changes)
    before = content(tmp_path)
    ended, shown = answered(recording, answer)
    assert (ended, "Traceback" in shown, content(tmp_path)) == (code, False, before)
    assert "cannot be thrown away here (--no-layer)" in shown
    assert f"will run in {tmp_path} 10 times or more, as far as 2 minutes allow" in shown
    if changes:
        assert "Which files it writes is not recorded." in shown
    else:
        assert "four files in this folder changed (a.ckpt, b.ckpt, c.ckpt and 1 more)" in shown
        assert shown.endswith("tfdoctor: Nothing was run.")


def test_yes_runs_the_program(tmp_path: Path) -> None:
    code, shown = answered(made(tmp_path, written={"count": 0, "names": []}), b"y\n")
    assert "no file in this folder changed" in shown
    assert (tmp_path / "ran.txt").read_text() == "ran\n"
    assert (code, "no loop of training steps was seen" in shown) == (2, True)  # this program has no steps


@each(["recording", *OPTIONS], [*OPTIONS, "train.py"])
def test_without_a_terminal_it_stops_with_a_sentence(
    words: list[str], alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(alone)
    before = content(alone)
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        done = tfdoctor("try", *words)
    assert (done.returncode, content(alone)) == (2, before)
    assert done.stderr.splitlines()[-1].startswith("tfdoctor: Nothing was run, because")
    assert "--yes" in done.stderr


def test_yes_in_advance_asks_nothing(tmp_path: Path) -> None:
    made(tmp_path)
    assert "10 times or more" in cli("try", "recording", *OPTIONS, "--yes", folder=tmp_path).stderr
    assert (tmp_path / "ran.txt").read_text() == "ran\n"
