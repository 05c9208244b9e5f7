"""Before runs whose writes stay: what is said, and what each answer does, at a real terminal and without one."""

import pty
import select

from tests.cli.kit import *

CTRL_C = b"\x03"
QUESTION = b"Run it? [y/N]: "


OPTIONS = ("--no-layer", "--env", "A=1", "--minutes", "2")


def command(recording: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "tfdoctor", "try", str(recording), *OPTIONS, *options]


def answered(recording: Path, answer: bytes) -> tuple[int, str]:
    """Run the command at a terminal of its own and type an answer; return its exit code and what it showed."""
    words = command(recording)
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


def test_it_says_what_will_happen_before_anything_does(tmp_path: Path) -> None:
    recording = made(tmp_path)
    before = content(tmp_path)
    code, shown = answered(recording, b"n\n")
    assert code == 2
    assert "cannot be thrown away here (--no-layer)" in shown
    assert f"will run in {tmp_path} 10 times or more, as far as 2 minutes allow" in shown
    assert "four files in this folder changed (a.ckpt, b.ckpt, c.ckpt and 1 more)" in shown
    assert shown.endswith("tfdoctor: Nothing was run.")
    assert content(tmp_path) == before


def test_ctrl_c_at_the_question_runs_nothing(tmp_path: Path) -> None:
    recording = made(tmp_path, written=None)
    before = content(tmp_path)
    code, shown = answered(recording, CTRL_C)
    assert code == 130
    assert "Which files it writes is not recorded." in shown
    assert "Traceback" not in shown
    assert content(tmp_path) == before


def test_yes_runs_the_program(tmp_path: Path) -> None:
    recording = made(tmp_path, written={"count": 0, "names": []})
    code, shown = answered(recording, b"y\n")
    assert "no file in this folder changed" in shown
    assert (tmp_path / "ran.txt").read_text() == "ran\n"
    assert code == 2  # this program has no steps
    assert "no loop of training steps was seen" in shown


@pytest.mark.parametrize("target", ["recording", "script"])
def test_without_a_terminal_it_stops_with_a_sentence(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = made(tmp_path)
    before = content(tmp_path)
    monkeypatch.chdir(tmp_path)
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        words = [str(recording)] if target == "recording" else []
        done = tfdoctor("try", *words, *OPTIONS, *([] if words else ["train.py"]))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("tfdoctor: Nothing was run, because")
    assert "--yes" in done.stderr
    assert content(tmp_path) == before


def test_yes_in_advance_asks_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        command(made(tmp_path), "--yes"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert "10 times or more" in done.stderr
    assert (tmp_path / "ran.txt").read_text() == "ran\n"
