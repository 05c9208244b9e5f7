"""Real processes under the recorder do as they would alone, with whatever threads, signals and forks."""

from concurrent.futures import ThreadPoolExecutor

from tests.capture.run.kit import *
from tests.capture.running import fake_tensorflow, line_of, shell
from tests.cases import sure
from tfdoctor.recording.files import Notes, run_log
from tfdoctor.recording.worker_log import Worker

SITE = Path(__file__).parents[3] / "src" / "tfdoctor" / "capture" / "site"

BUSY = """
import _thread, gc, os, signal, sys, threading, time
def work(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
def sampled():  # what changes with each sample, however rarely a busy machine lets one be taken
    return sys.modules['_tfdoctor_agent']._begun[0][1].family[0].pace.thread_s
def shown(samples=20):
    for _ in range(samples):
        before = sampled()
        while sampled() == before:
            sum(range(1000))  # until then
def after(act, *args, samples=20):
    def look():
        for _ in range(samples):
            before = sampled()
            while sampled() == before:
                time.sleep(0.01)
        act(*args)
    _thread.start_new_thread(look, ())  # of no class of threading, as threads that wait are looked at
"""
WORKING = {5, 6, 11, 12, 13}
"""The lines of it that work."""


def recorder(folder: Path) -> dict[str, str]:
    """Return an environment in which the processes that we start are recorded."""
    plan = json.dumps({"processes": str(folder), "warmup": 10, "steps": 20})
    return environment(PYTHONPATH=str(SITE), TFDOCTOR_PLAN=f"{os.getpid()} visible {plan}")


def recorded(
    source: str, tmp_path: Path, python: str = sys.executable, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a script that is recorded."""
    script = tmp_path / "script.py"
    script.write_text(BUSY + source)
    return subprocess.run(
        [python, "-W", "always", str(script)],
        capture_output=True,
        text=True,
        env=recorder(tmp_path),
        timeout=300,
        check=False,
        **options,
    )


def written(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def lines(tmp_path: Path, *kinds: str) -> list[Any]:
    """Return the lines of the script's account, or those of some kinds."""
    file = Path(state(tmp_path)["folder"], "run.jsonl")
    return [line for line in written(file) if line["kind"] in kinds or not kinds]


def states(tmp_path: Path, worker: str = "") -> list[Any]:
    """Return what is told of the script's own process, or of workers that were started so."""
    told = [json.loads(file.read_text()) | {"folder": file.parent} for file in tmp_path.glob("*/agent.json")]
    return [one for one in told if one.get("worker", "") == worker]


def state(tmp_path: Path) -> Any:
    (one,) = states(tmp_path)
    return one


def ok(done: subprocess.CompletedProcess[str], tmp_path: Path, stdout: str = "") -> None:
    """The program does as it would alone, and its account ends without a fault."""
    assert (done.returncode, done.stdout, done.stderr) == (0, stdout, "")
    end = lines(tmp_path)[-1]
    assert (end["kind"], end["why"]) == ("end", "exit")
    assert state(tmp_path)["errors"] == []
    told_ms = sum(sum(bucket["stacks"].values()) for bucket in lines(tmp_path, "bucket"))
    assert told_ms <= 1e3 * end["end"] + 1  # no moment is told twice


def users_lines(tmp_path: Path) -> set[tuple[str, int]]:
    """Return the lines of the user's that stacks were seen at."""
    return {tuple(line["at"]) for line in lines(tmp_path, "stack") if line["at"]}


def path_of(python: str) -> str | None:
    """Return the program itself that a name stands for: it may be a script that chooses one."""
    found = shutil.which(python)
    if found is None:
        return None
    words = [found, "-c", "import sys; print(sys.executable)"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip() or None


PROGRAMS = [
    pytest.param(
        "work(0.2)\nprint([t.name for t in threading.enumerate()], threading.active_count())\n",
        "['MainThread'] 1\n",
        id="our thread is none that it can see",
    ),
    pytest.param(
        "gc.disable(); gc.freeze(); sys.setswitchinterval(0.01)\ntime.sleep(1.2)\n"
        "print(gc.isenabled(), gc.get_freeze_count() > 100, sys.getswitchinterval())\n"
        "gc.enable(); gc.set_threshold(5, 6, 7); work(0.3)\nprint(gc.isenabled(), gc.get_threshold())\n"
        "print(signal.getsignal(signal.SIGTERM), signal.pthread_sigmask(signal.SIG_BLOCK, []))\n"
        "print(threading.settrace.__name__, sys.gettrace(), sys.getprofile())\n",
        "False True 0.01\nTrue (5, 6, 7)\n0 set()\nsettrace None None\n",
        id="settings of the interpreter are its own",
    ),
    # Sent to the process, it goes to any thread that does not block it: its default would be the end
    pytest.param(
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
        "for _ in range(5):\n    os.kill(os.getpid(), signal.SIGUSR1)\n    time.sleep(0.02)\n"
        "    print(signal.sigwait([signal.SIGUSR1]).name)\n",
        "SIGUSR1\n" * 5,
        id="a signal that it waits for reaches it",
    ),
    pytest.param(
        "class Alarm(Exception): pass\ndef ring(*_): raise Alarm\n"
        "signal.signal(signal.SIGALRM, ring)\nrung = 0\nend = time.monotonic() + 1.0\n"
        "while rung < 100 or time.monotonic() < end:\n    try:\n"
        "        signal.setitimer(signal.ITIMER_REAL, 0.003)\n        work(60)\n"
        "    except Alarm:\n        rung += 1\nprint(rung >= 100)\n",
        "True\n",
        id="a handler may raise at any moment",
    ),
    pytest.param(
        "def fork():\n    for _ in range(15):\n        pid = os.fork()\n"
        "        if not pid:\n            os._exit(0)\n        os.waitpid(pid, 0)\n"
        "recorder, ended = sys.modules['_tfdoctor_agent']._begun[0][1], []\nstop = recorder._stop\n"
        "def stopped(patience):\n    ended.append(stop(patience))\n    return ended[-1]\n"
        "recorder._stop = stopped\n"
        "threads = [threading.Thread(target=fork) for _ in range(4)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\nshown(3)\n"
        "print(len(os.listdir('/proc/self/task')), 2 * sum(ended) > len(ended))\n",
        "2 True\n",
        id="forks of several threads leave one recorder",
    ),
    pytest.param(
        "for _ in range(3):\n    work(0.1)\n    pid = os.fork()\n    if not pid:\n        time.sleep(0.1)\n"
        "        print(threading.active_count(), len(os.listdir('/proc/self/task')), flush=True)\n"
        "        os._exit(0)\n    os.wait()\n",
        "1 2\n" * 3,
        id="a fork has a thread of ours that it cannot see",
    ),
]


@pytest.mark.parametrize(("source", "stdout"), PROGRAMS)
def test_a_program_does_as_it_would_alone_and_leaves_an_account(source: str, stdout: str, tmp_path: Path) -> None:
    ok(recorded(source, tmp_path), tmp_path, stdout)


# What the script waits for


def seen(tmp_path: Path, text: str, *, children: bool | None = None) -> int:
    """Return the samples at lines of the script with a text, where the process waited for children or not."""
    source = (tmp_path / "script.py").read_text().splitlines()
    numbers = [number for number, line in enumerate(source, start=1) if text in line]
    stacks = [line for line in lines(tmp_path, "stack") if line["at"] and line["at"][1] in numbers]
    wanted = {str(line["id"]) for line in stacks if children in (None, line["children"])}
    parts = (part for line in lines(tmp_path, "bucket") for part in line["samples"].items())
    return sum(count for key, count in parts if key in wanted)


CHILD = """
import itertools, subprocess
UNTIL = "import os, sys, time\\nwhile not os.path.exists(sys.argv[1]) and os.getppid() > 1: time.sleep(0.01)"
names = map("{}.{}".format, itertools.repeat(__file__), itertools.count())
def child():
    name = next(names)
    after(lambda: open(name, "w").close())
    return [sys.executable, "-I", "-c", UNTIL, name]
def ended():
    process = subprocess.Popen([sys.executable, "-I", "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    return process
"""
"""A child that runs until its parent was sampled so often, and one that has ended."""


def test_a_wait_for_a_child_is_told_whatever_the_call(tmp_path: Path) -> None:
    source = f"""{CHILD}
import socket
def started(): return subprocess.Popen(child(), stdout=subprocess.PIPE)
p = started()
p.stdout.read()  # pipe
p = started()
for _ in p.stdout: pass  # lines
a, b = socket.socketpair()
name = child()[-1]
if not os.fork():
    while not os.path.exists(name): time.sleep(0.01)
    b.send(b'x'); os._exit(0)
a.recv(1)  # socket
t = threading.Thread(target=lambda: subprocess.run(child()))
t.start()
t.join()  # thread
other = ended()
p = started()
p.stdout.read()  # next to one that has ended
"""
    ok(recorded(f"import warnings\nwarnings.simplefilter('ignore')\n{source}", tmp_path), tmp_path)
    for wait in ("pipe", "lines", "socket", "thread", "next to one"):
        told = seen(tmp_path, f"# {wait}", children=True)
        assert told > 10, wait
        assert 2 * told > seen(tmp_path, f"# {wait}"), wait


def test_other_waits_are_not_for_children(tmp_path: Path) -> None:
    source = f"""{CHILD}
r, w = os.pipe(); after(os.write, w, b'x')
os.read(r, 1)  # no child
other, lock = ended(), _thread.allocate_lock(); lock.acquire(); after(lock.release)
lock.acquire()  # one that has ended
p = subprocess.Popen(child())
shown()
p.wait()
"""
    recorded(source, tmp_path)
    for wait in ("# no child", "# one that has ended", "# until then"):
        assert seen(tmp_path, wait) > 10, wait
        assert 4 * seen(tmp_path, wait, children=True) < seen(tmp_path, wait), wait


def test_a_thread_that_works_is_seen_while_the_main_thread_waits(tmp_path: Path) -> None:
    """The other threads rest: it is not one of those that is shown."""
    source = """
import asyncio, concurrent.futures
def rest(): time.sleep(600)
def started():
    t = threading.Thread(target=shown)
    t.start()
    return t
threading.Thread(target=rest, daemon=True).start()
t = started(); t.join()  # join
concurrent.futures.ThreadPoolExecutor(1).submit(shown).result()  # pool
asyncio.run(asyncio.to_thread(shown))  # asyncio
t = started()
while t.is_alive(): time.sleep(0.05)  # poll
"""
    ok(recorded(source, tmp_path), tmp_path)
    works = seen(tmp_path, "# until then")
    assert works > 4 * 10
    for wait in ("join", "pool", "asyncio", "poll"):  # until the recorder has seen that the thread waits
        assert 3 * seen(tmp_path, f"# {wait}") < works / 4, wait


def test_python_warns_of_no_threads_at_a_fork(tmp_path: Path) -> None:
    python = path_of("python3.12")
    if python is None:
        pytest.skip("there is no python3.12 here")
    source = (
        "for _ in range(20):\n    work(0.03)\n    if not os.fork():\n        os._exit(0)\n    os.wait()\n"
        "work(0.6)\nprint('done')\n"
    )
    ok(recorded(source, tmp_path, python), tmp_path, "done\n")


# Processes that do a part of the work

POOL = """
import concurrent.futures, multiprocessing, numpy, pathlib, subprocess
def told(): return [
    file.stat().st_mtime for file in pathlib.Path(__file__).parent.glob("*/run-now.json")
    if '"worker"' in file.with_name("agent.json").read_text()]
def part(n):
    work(0.3); work(0.1)
    return n, threading.active_count()
if __name__ == '__main__':
    os.mkdir('gone'); os.chdir('gone')
    {0}
    over = time.time() + 0.4
    while (len(told()) < 2 or min(told()) < over) and time.time() < over + 100: time.sleep(0.1)
    {1}
    assert done == [(n, 1) for n in range(8)], done
    subprocess.run(['true'], preexec_fn=os.getpid, check=True)
"""
MAP, SHUT = "pool.map(part, range(8))", "pool.shutdown()"
CONTEXT = "pool = multiprocessing.get_context({!r}).Pool(2); done = {}"


@cases(
    ("fork", CONTEXT.format("fork", MAP), "os.rmdir('../gone'); pool.terminate()"),
    ("fork", CONTEXT.format("forkserver", MAP), "pool.close(); pool.join()"),
    ("fork", f"pool = concurrent.futures.ProcessPoolExecutor(2); done = list({MAP})", SHUT),
    ("spawn", CONTEXT.format("spawn", MAP), "pool.terminate()"),
    ("loky", "import joblib; done = joblib.Parallel(2)(joblib.delayed(part)(n) for n in range(8))", ""),
)
def test_a_worker_has_an_account_of_its_own(how: str, begin: str, end: str, tmp_path: Path) -> None:
    if how == "loky":
        pytest.importorskip("joblib")
    ok(recorded(POOL.format(begin, end), tmp_path, cwd=tmp_path), tmp_path)
    told = states(tmp_path, how)
    assert [one["errors"] for one in told] == [[], []]
    workers = [Worker.of(sure(run_log(one["folder"], Notes())), how, one["parent"]) for one in told]
    assert sum(one.working_ms for one in workers) > 1800  # of 3.2 s
    assert sum(one.waiting_ms for one in workers) > 200  # of 0.8 s and more
    assert all(one.importing_ms > 50 for one in workers if how != "fork")
    lines = [line for one in workers for line in one.lines if line.ms > 300 and line.time == "working"]
    # joblib sends a function of the script without the name of its file
    assert {line.at[1] if line.at else line.calls for line in lines} >= {6 if how != "loky" else "__main__.work"}


def test_brief_workers_and_those_beyond_a_number_leave_nothing(tmp_path: Path) -> None:
    source = (
        "recorder = sys.modules['_tfdoctor_agent.run.recorder']\ndef fork(seconds):\n    if not os.fork():\n"
        "        work(seconds)\n        os._exit(0)\n    os.wait()\n"
        "brief, recorder.BRIEF_S = recorder.BRIEF_S, 60.0\nfor _ in range(5): fork(0.0)\n"
        "recorder.BRIEF_S = brief\nfork(0.6)\nrecorder.MOST_WORKERS = 1\nfork(0.6)\n"
    )
    ok(recorded(source, tmp_path), tmp_path)
    assert len(states(tmp_path, "fork")) == 1


# Ends


def test_an_exit_at_any_moment_of_the_sampler_is_quiet(tmp_path: Path) -> None:
    def run(number: int) -> tuple[str, str]:
        done = recorded(f"time.sleep({number * 0.04})\n", tmp_path / str(number))
        return done.stdout, done.stderr

    for number in range(16):
        (tmp_path / str(number)).mkdir()
    with ThreadPoolExecutor(5) as pool:
        assert set(pool.map(run, range(16))) == {("", "")}
    assert [lines(tmp_path / str(number))[-1]["kind"] for number in range(16)] == ["end"] * 16


def test_ctrl_c_while_the_account_ends_says_nothing(tmp_path: Path) -> None:
    source = (
        "import atexit\nours = sys.modules['_tfdoctor_agent']\nrecorder = ours._begun[0][1]\n"
        "stop = recorder._stop\ndef slow(patience):\n    time.sleep(0.1)\n    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return stop(patience)\nrecorder._stop = slow\nprint('over')\n"
    )
    done = recorded(source, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")


def test_a_hard_end_is_told(tmp_path: Path) -> None:
    assert recorded("work(0.3)\nos._exit(5)\n", tmp_path).returncode == 5
    assert (lines(tmp_path)[-1]["kind"], lines(tmp_path)[-1]["why"]) == ("end", "exit")


def test_a_killed_process_leaves_what_was_written(tmp_path: Path) -> None:
    source = """
import pathlib, re
def told():
    texts = [file.read_text() for file in pathlib.Path(__file__).parent.glob("*/run.jsonl")]
    return re.findall('"bucket","start":[^,]*,"end":([^,]*)', "".join(texts))
while not told() or float(told()[-1]) < 0.8: time.sleep(0.1)
os.kill(os.getpid(), 9)
"""
    done = recorded(source, tmp_path)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    assert {line["kind"] for line in lines(tmp_path)} >= {"process", "stack", "bucket"}
    assert lines(tmp_path, "bucket")[-1]["end"] >= 0.8
    (now,) = tmp_path.glob("*/run-now.json")
    assert all(written(now))


def test_an_exception_whose_message_fails_is_told_without(tmp_path: Path) -> None:
    source = "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd\n"
    done, end = recorded(source, tmp_path), lines(tmp_path)[-1]
    assert done.returncode == 1
    assert "tfdoctor" not in done.stderr.replace(str(tmp_path), "")
    assert (end["why"], end["error"], end["message"]) == ("exception", "Odd", "")


def test_threads_that_end_leave_the_account_to_the_main_thread(tmp_path: Path) -> None:
    source = (
        "for _ in range(10):\n    t = threading.Thread(target=work, args=(0.05,))\n    t.start()\n    t.join()\n"
        "shown(3)\n"
    )
    ok(recorded(source, tmp_path), tmp_path)
    assert {line for _, line in users_lines(tmp_path)} & WORKING


def test_a_program_that_replaced_another_begins_anew(tmp_path: Path) -> None:
    source = (
        "if len(sys.argv) == 1:\n    time.sleep(1.0)\n"
        "    os.execv(sys.executable, [sys.executable, __file__, 'again'])\nwork(0.4)\n"
    )
    done = recorded(source, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    first, second = (
        written(file)[0] for file in sorted(tmp_path.glob("*/run.jsonl"), key=lambda file: len(file.parent.name))
    )
    assert (second["pid"], second["began"]) == (first["pid"], 0)
    assert second["started_monotonic_ns"] - first["started_monotonic_ns"] > 1.0e9


# Programs without a file


@cases((["-c", f"{BUSY}shown()\n"], "<string>"), ([], "<stdin>"))
def test_the_code_of_a_program_without_a_file_is_the_users(words: list[str], name: str, tmp_path: Path) -> None:
    env = {**recorder(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, *words], input=f"{BUSY}shown()\n", text=True, env=env, timeout=60, check=True)
    found = users_lines(tmp_path)
    assert {file for file, _ in found} == {name}
    assert {line for _, line in found} & WORKING


def test_code_without_a_file_is_not_the_users_in_any_other_program(tmp_path: Path) -> None:
    source = "exec('def generated():\\n    shown(5)\\n')\ngenerated()\n"
    ok(recorded(source, tmp_path), tmp_path)
    assert {file for file, _ in users_lines(tmp_path)} == {str(tmp_path / "script.py")}


# Frameworks

TRAINER = """
import time
class JAXTrainer:
    def fit(self): self.rest("train")
    def evaluate(self): self.rest("evaluate")
    def rest(self, name):
        began = time.perf_counter()
        time.sleep(0.1)
        self.took[name] = time.perf_counter() - began
"""


def test_a_fit_of_another_backend_is_told_as_training(tmp_path: Path) -> None:
    folder = tmp_path / "keras" / "src" / "backend" / "jax"
    folder.mkdir(parents=True)
    for package in ("keras", "keras/src", "keras/src/backend", "keras/src/backend/jax"):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "jax.py").write_text("__version__ = '0.10.2'\n")
    (folder / "trainer.py").write_text(TRAINER)
    source = (
        "import jax, json, pathlib\nfrom keras.src.backend.jax.trainer import JAXTrainer\nshown(3)\n"
        "model, whole = JAXTrainer(), {}\nmodel.took = {}\n"
        "whole['train'] = time.perf_counter()\nmodel.fit()\nwhole['train'] -= time.perf_counter()\n"
        "whole['evaluate'] = time.perf_counter()\nmodel.evaluate()\nwhole['evaluate'] -= time.perf_counter()\n"
        "pathlib.Path(__file__).with_name('times.json').write_text(json.dumps([model.took, whole]))\n"
    )
    ok(recorded(source, tmp_path), tmp_path)
    calls = {(one["call"], one["name"], tuple(one["at"])) for one in lines(tmp_path, "call") if one.get("at")}
    fit, evaluate = (tuple(line_of(tmp_path / "script.py", f"model.{name}()")) for name in ("fit", "evaluate"))
    assert calls == {("train", "Model.fit", fit), ("evaluate", "Model.evaluate", evaluate)}
    kinds = {one["id"]: one["call"] for one in lines(tmp_path, "call")}
    spans = {kinds[one["call"]]: one["end"] - one["start"] for one in lines(tmp_path, "span")}
    inner, whole = json.loads((tmp_path / "times.json").read_text())  # by the script's own clock
    assert spans.keys() == inner.keys()
    assert all(inner[name] - 1e-4 < span < -whole[name] + 1e-4 for name, span in spans.items())
    frameworks = {(one["name"], one["version"], one["keras"]) for one in lines(tmp_path, "framework")}
    assert frameworks == {("jax", "0.10.2", keras) for keras in (False, True)}
    told = state(tmp_path)
    assert (told["backend"], told["versions"]["jax"]) == ("jax", "0.10.2")


# Programs of others


def test_a_script_of_a_shell_is_sampled_from_before_it_imports_tensorflow(tmp_path: Path) -> None:
    fake_tensorflow(tmp_path)
    begins = "import time\nprint(time.perf_counter_ns())"
    (tmp_path / "train.py").write_text(f"{begins}{BUSY}shown(5)\nimport tensorflow\nshown(5)\n")
    (tmp_path / "run.sh").write_text(f"echo start\n{sys.executable} -c pass\n{sys.executable} train.py\n")
    run = shell(["bash", "run.sh"], tmp_path / "out", tmp_path)
    said, first_ns = run.stdout.split()
    assert (run.code, said) == (0, "start")
    process = run.log.process
    assert process.started_monotonic_ns + 1e9 * process.began < int(first_ns)
    calls = {stack.caller[1] for stack in run.log.stacks.values() if stack.caller}
    assert calls >= {begins.count("\n") + BUSY.count("\n") + number for number in (1, 3)}
    assert run.log.end is not None


def test_gevent_may_replace_the_locks_of_threading(tmp_path: Path) -> None:
    """What it replaces is `threading.Lock` and `time.sleep`; here by ones that fail."""
    source = (
        "import _thread\ndef no(*_, **__): raise RuntimeError('replaced')\n"
        "threading.Lock = threading.Event = threading.Condition = time.sleep = no\n"
        "_thread.start_new_thread = _thread.allocate_lock = no\n"
        "shown(2)\nif not os.fork():\n    os._exit(0)\nos.wait()\nshown(4)\nprint('done')\n"
    )
    ok(recorded(source, tmp_path), tmp_path, "done\n")
    assert sum(lines(tmp_path, "bucket")[-1]["samples"].values()) > 3
