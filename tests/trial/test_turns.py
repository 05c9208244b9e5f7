"""Runs by turns, with real processes: one computes at a time, and their clocks stand meanwhile."""

from tests.trial.kit import *

TURN_S = 0.25

BUSY = """
import sys, threading, time
end = time.process_time() + float(sys.argv[2])
def work():
    while time.process_time() < end:
        sum(range(5_000))
threading.Thread(target=work).start()
with open(sys.argv[1], "w") as file:
    while time.process_time() < end:
        print(time.monotonic(), file=file)
        sum(range(5_000))
"""


def starting(*words: str) -> Callable[[], subprocess.Popen[bytes]]:
    """Return what starts Python below the process that ends it when tfdoctor is gone."""
    command = [*LEASH, sys.executable, *words]
    return lambda: subprocess.Popen(command, start_new_session=True)


def stamps(path: Path) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([float(line) for line in path.read_text().split()])


def test_one_computes_at_a_time(tmp_path: Path) -> None:
    """Each of them has two threads, and stands whole while the other computes."""
    paths = [tmp_path / name for name in ("a", "b")]
    runs = [TurningRun(starting("-c", BUSY, str(path), "0.8"), 60.0) for path in paths]
    take_turns(runs, TURN_S)
    assert [run.code for run in runs] == [0, 0]
    a, b = map(stamps, paths)
    assert min(a[-1], b[-1]) - max(a[0], b[0]) > TURN_S  # they ran at the same time
    holder = np.concatenate([np.zeros(len(a)), np.ones(len(b))])[np.argsort(np.concatenate([a, b]))]
    assert np.count_nonzero(np.diff(holder)) <= 2 * max(len(run.turns) for run in runs)
    for run, times in zip(runs, (a, b), strict=True):
        assert np.diff(times).max() > TURN_S / 2  # it stood
        own = run.own_ms(1e3 * times)
        assert 1e-3 * (own[-1] - own[0]) < run.seconds < times[-1] - times[0] + 5


def test_a_run_alone_is_never_stopped(tmp_path: Path) -> None:
    run = TurningRun(starting("-c", BUSY, str(tmp_path / "a"), "0.3"), 60.0)
    take_turns([run])
    assert (run.code, len(run.turns)) == (0, 1)
    at = stamps(tmp_path / "a")
    assert np.allclose(run.own_ms(1e3 * at), 1e3 * at)


def test_the_limit_is_of_its_own_time(tmp_path: Path) -> None:
    """A second run computes meanwhile, which counts for that one."""
    endless = TurningRun(starting("-c", "while True: pass"), 2.5 * TURN_S)
    other = TurningRun(starting("-c", BUSY, str(tmp_path / "a"), "0.6"), 60.0)
    take_turns([endless, other], TURN_S)
    assert (endless.code, other.code) == (None, 0)
    *others, _ = endless.turns
    assert sum(end - begin for begin, end in others) < 2.5 * TURN_S <= endless.seconds


def test_an_error_between_turns_ends_stopped_processes(tmp_path: Path) -> None:
    """Ctrl-C, while one of them stands."""

    def failing() -> subprocess.Popen[bytes]:
        raise KeyboardInterrupt

    run = TurningRun(starting("-c", BUSY, str(tmp_path / "a"), "60"), 60.0)
    with pytest.raises(KeyboardInterrupt):
        take_turns([run, TurningRun(failing, 60.0)], TURN_S)
    assert sure(run.child).poll() is not None
    assert not left(tmp_path)


def test_stopped_processes_end_with_tfdoctor(tmp_path: Path) -> None:
    """However it ends: what watches the runs is not stopped with them."""
    script = f"""
import subprocess, sys
from tfdoctor.trial.turns import TurningRun, take_turns
command = {[*LEASH, sys.executable, "-c", BUSY]!r}
runs = [TurningRun(lambda name=name: subprocess.Popen([*command, name, "60"], start_new_session=True), 60.0)
        for name in sys.argv[1:]]
take_turns(runs, {TURN_S})
"""
    paths = [str(tmp_path / name) for name in ("a", "b")]
    tfdoctor = subprocess.Popen([sys.executable, "-c", script, *paths])
    assert until(lambda: all(map(os.path.exists, paths)))
    tfdoctor.kill()
    tfdoctor.wait()
    assert until(lambda: not left(tmp_path))


def left(folder: Path) -> bool:
    """Say whether there is a process with this folder in its arguments."""
    return any(str(folder) in " ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"]))


@given(st.lists(st.floats(0.001, 10), min_size=2, max_size=20).filter(lambda one: len(one) % 2 == 0))
def test_the_clock_of_a_run_goes_on_in_its_turns_alone(lengths: Sequence[float]) -> None:
    """Lengths of turns and of pauses, in s."""
    edges = np.cumsum([5.0, *lengths])
    turns = list(zip(edges[:-1:2], edges[1::2], strict=True))
    run = TurningRun(starting("-c", ""), 60.0, turns=turns)
    own = run.own_ms(1e3 * edges[:-1])
    assert own[0] == pytest.approx(5e3)
    for number, (before, after) in enumerate(pairwise(own)):
        passed = 1e3 * lengths[number] if number % 2 == 0 else 0.0
        assert after - before == pytest.approx(passed, abs=1e-6)
    assert own[-1] - own[0] == pytest.approx(1e3 * run.seconds)


PROGRAM = """
import os, time
while not os.path.exists("go"):
    time.sleep(0.01)
print("done")
"""

TURNS = f"""
import subprocess, sys, threading, time
from tfdoctor.trial.turns import TurningRun, take_turns
words = ["sh", "-c", '"$0" -c "$1"; exit 3', sys.executable, {PROGRAM!r}]
run = TurningRun(lambda: subprocess.Popen(words, start_new_session=True), 60.0)
def ready():
    while not run.child:
        time.sleep(0.01)
    print("ready")
threading.Thread(target=ready).start()
began = time.monotonic()
take_turns([run])
print(run.code, run.seconds < time.monotonic() - began - 0.8, len(run.turns) > 1)
"""


def test_runs_stop_with_tfdoctor(tmp_path: Path) -> None:
    """Ctrl-Z stops the runs of a trial too, and the time in which they were stopped is none of theirs."""
    env, command = environment(PYTHONPATH=str(SOURCES), PYTHONUNBUFFERED="1"), [sys.executable, "-c", TURNS]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=env, process_group=0)
    assert sure(process.stdout).readline() == "ready\n"
    os.killpg(process.pid, signal.SIGTSTP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    (tmp_path / "go").touch()
    time.sleep(0.9)
    os.killpg(process.pid, signal.SIGCONT)
    shown, _ = process.communicate(timeout=60)
    assert shown == "done\n3 True True\n"
