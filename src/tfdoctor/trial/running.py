"""One run of a variant: a process of its own, which sees its files changed and ends when it has its figures."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from tfdoctor.capture.agent.process.masking import MASK
from tfdoctor.capture.agent.timing import TIMING
from tfdoctor.capture.environment import agent_environment
from tfdoctor.capture.plan import Kind
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.trial import program as programs
from tfdoctor.trial.counters import EnergyCounters
from tfdoctor.trial.program import RecordedProgram
from tfdoctor.trial.run_length import Enough
from tfdoctor.trial.times import NoTimes, Timing, TrainedState, TrialTimes, times_of
from tfdoctor.trial.variants import Variant

PREFIX = "tfdoctor-try-"
"""Of the folders of trials; the number of tfdoctor's process follows, and where that number holds."""

LAYER_SHARE = 0.5
"""Share of the free memory that what a run writes may take."""

GRACE_S = 5.0
"""Time for a program to end by itself after it was asked to."""


@dataclass(frozen=True, slots=True)
class TrialRun:
    """What one run of a variant has measured."""

    times: TrialTimes | NoTimes
    state: TrainedState | None = None
    finite: bool | None = None
    exit_code: int = 0
    error: str = ""  # the last line that a crashed program printed
    seconds: float = 0.0
    foreign: float = 0.0  # share of the machine's cores that other programs took meanwhile
    ineffective: str = ""  # why the variant changed nothing
    energy_j: Mapping[EnergySource, float] = field(
        default_factory=dict
    )  # of an update, by counters


@dataclass(frozen=True, slots=True)
class Runner:
    """Where the runs of a trial happen: the program, and whether its writes are thrown away."""

    program: RecordedProgram
    folder: Path  # of the trial: logs and what the agent writes
    layer: bool
    check: Callable[[], None] = lambda: None  # before and after each run; raises to end the trial

    @classmethod
    @contextmanager
    def of(
        cls, program: RecordedProgram, *, layer: bool, check: Callable[[], None] = lambda: None
    ) -> Iterator[Self]:
        """Make the folder for the runs, and remove it at the end."""
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=folder_prefix(os.getpid()))).resolve()
        try:
            yield cls(program, folder, layer, check)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, variant: Variant, enough: Enough, number: int) -> TrialRun:
        """Run the program once, changed as the variant says.

        Raises:
            OSError: the folder for the runs cannot be written.
            InputError: a file of the program changed meanwhile.
        """
        self.check()
        own = self.folder / f"run{number}"
        processes = own / "processes"
        processes.mkdir(parents=True)
        texts = _write_texts(own, variant)
        plan = _agent_plan(processes, enough, {} if self.layer else texts, variant)
        environment = agent_environment(
            programs.variables(self.program, variant.environment), plan, hidden=self.program.hidden
        )
        command = [*_launcher(self._layer(own, texts)), *self.program.command]
        before = _cpu_seconds()
        started = time.monotonic()
        counters = EnergyCounters(own / "energy.jsonl")
        code, own_cpu = _wait(
            command, environment, self.program.folder, own / "log", enough, counters
        )
        seconds = time.monotonic() - started
        foreign_cpu = _cpu_seconds() - before - own_cpu
        foreign = max(0.0, foreign_cpu / ((os.cpu_count() or 1) * max(seconds, 1e-3)))
        self.check()
        run = _hiding(_read(own, code, seconds, foreign), variant.credentials)
        if not isinstance(run.times, TrialTimes):
            return run
        return replace(run, energy_j=counters.per_update(run.times))

    def _layer(self, own: Path, texts: Mapping[str, str]) -> dict[str, object] | None:
        if not self.layer:
            return None
        mount = own / "layer"
        mount.mkdir()
        return {
            "changed": texts,
            "keep": [str(own / "processes")],
            "bytes": int(_free_memory() * LAYER_SHARE),
            "folder": str(self.program.folder),
            "mount": str(mount),
        }


def folder_prefix(number: int) -> str:
    """Return the beginning of the names of folders of the trials of a process, seen from here."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    where = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    return f"{PREFIX}{number}-{hashlib.sha256(where.encode()).hexdigest()[:12]}-"


def _sweep() -> None:
    """Remove what earlier trials of this user that were killed have left: processes, then folders.

    Containers and machines may share the folder for temporary files: of the trials of others, whose processes are
    not seen here, nothing is removed.
    """
    for folder in Path(tempfile.gettempdir()).resolve().glob(f"{PREFIX}*-*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        if not number.isdecimal() or not folder.name.startswith(folder_prefix(int(number))):
            continue
        if not Path("/proc", number).exists():
            _end_processes(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _end_processes(folder: Path) -> None:
    """End the processes of a killed trial that were in sessions of their own: their plan names its folder."""
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                if os.fsencode(f"{folder}/run") in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
            except (PermissionError, ProcessLookupError, FileNotFoundError):
                continue  # another user's, or it has ended


def layer_possible(folder: Path) -> str:
    """Return "" where a layer can be made for a program in this folder, otherwise why not."""
    program = RecordedProgram((sys.executable, "-c", ""), folder, Kind.COMMAND)
    with Runner.of(program, layer=True) as stage:
        own = stage.folder / "probe"
        (own / "processes").mkdir(parents=True)
        command = [*_launcher(stage._layer(own, {})), sys.executable, "-I", "-S", "-c", ""]  # noqa: SLF001
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode == 0:
        return ""
    return done.stderr.strip().rpartition("layer: ")[2] or f"exit code {done.returncode}"


def _write_texts(own: Path, variant: Variant) -> dict[str, str]:
    """Write the changed texts next to the run; return which file each stands for."""
    texts = {}
    for number, (path, data) in enumerate(variant.files.items()):
        text = own / f"text{number}.py"
        text.write_bytes(data)
        texts[str(path)] = str(text)
    return texts


def _agent_plan(
    processes: Path, enough: Enough, changed: Mapping[str, str], variant: Variant
) -> dict[str, object]:
    plan: dict[str, object] = {
        "processes": str(processes),
        "steps": enough.steps,
        "warmup": enough.compare_at,
        "seconds": None,
        "stop_after": True,
        "watch_s": enough.limit_s,
        "trial": enough.for_agent(),
        "variant": {
            "settings": dict(variant.runner),
            "environment": dict(variant.environment),
            "without": _without(variant.without),
        },
    }
    return plan | ({"changed": dict(changed)} if changed else {})


def _without(part: RunPart | None) -> dict[str, object] | None:
    """Return the part that a variant takes out, as the agent gets it."""
    if part is None:
        return None
    return {
        "part": str(part.part),
        "name": part.name,
        "at": part.line,
        "length": part.length,
    }


def _launcher(layer: Mapping[str, object] | None) -> list[str]:
    script = Path(__file__).with_name("enter_layer.py")
    return [sys.executable, "-I", "-S", str(script), json.dumps(layer)]


def _wait(
    command: list[str],
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    enough: Enough,
    counters: EnergyCounters,
) -> tuple[int | None, float]:
    """Run a command to its end or its time limit; return its code, None at the limit, and its CPU time in s."""
    before = os.times()
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: S603 - the user's program
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        counters.start(child.pid)
        try:
            code: int | None = child.wait(enough.limit_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(child)
            counters.stop()
    after = os.times()
    used = after.children_user + after.children_system
    return code, used - before.children_user - before.children_system


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the run's processes, all of them: a program may leave some behind."""
    for number, grace in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)):
        if child.poll() is None:
            os.killpg(child.pid, number)
            try:
                child.wait(grace)
            except subprocess.TimeoutExpired:
                continue
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # none was left


def _read(own: Path, code: int | None, seconds: float, foreign: float) -> TrialRun:
    """Return what a run gave, from what the agent of its training process wrote."""
    if code is None:
        why = NoTimes("the run took too long")
        return TrialRun(why, exit_code=-1, error="the run took too long", seconds=seconds)
    timings = [Timing.read(path) for path in sorted(own.glob(f"processes/*/{TIMING}"))]
    # The process that trained longest: others may evaluate, or try a step.
    loops = [(timing, n) for timing in timings if (n := timing.chosen()) is not None]
    best = max(loops, key=lambda one: one[0].loops[one[1]].covers_ms, default=None)
    # What fails after the agent has ended the run is the end of threads that are still at work:
    ended = best is not None and best[0].enough
    error = "" if code == 0 or ended else _error(code, own / "log")
    if best is None:
        why = NoTimes(error or _too_few(timings))
        idle = [timing.ineffective for timing in timings]
        return TrialRun(
            why,
            exit_code=code,
            error=error,
            seconds=seconds,
            foreign=foreign,
            ineffective=idle[0] if idle and all(idle) else "",
        )
    timing, chosen = best
    times = times_of(timing.loops[chosen])
    return TrialRun(
        NoTimes(timing.ineffective) if timing.ineffective else times,
        timing.states[chosen],
        timing.finite,
        code,
        error,
        seconds,
        foreign,
        timing.ineffective,
    )


def _hiding(run: TrialRun, credentials: Iterable[str]) -> TrialRun:
    """Return what a run gave, without these values in what the program printed."""
    for value in credentials:
        run = replace(run, error=run.error.replace(value, MASK))
        if isinstance(run.times, NoTimes):
            run = replace(run, times=NoTimes(run.times.why.replace(value, MASK)))
    return run


def _too_few(timings: Sequence[Timing]) -> str:
    """Return why no loop has enough steps."""
    loops = [loop for timing in timings for loop in timing.loops]
    longest = max(loops, key=lambda loop: len(loop.starts_ms), default=None)
    if longest is None:
        return "no loop of training steps was seen"
    needed = longest.warmup + longest.fewest
    return (
        f"its longest loop has {len(longest.starts_ms)} steps, and a figure needs {needed}; "
        "run more of them"
    )


def _error(code: int, log: Path) -> str:
    """Return why a program failed: the last line that it printed, or the signal that killed it."""
    if code == 128 + signal.SIGKILL:
        return "it was killed, as the kernel does where memory runs out"
    if code - 128 in set(signal.Signals):
        return f"it crashed with {signal.Signals(code - 128).name}; {_last_line(log)}"
    return _last_line(log)


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    errors = [line for line in lines if line and not line[0].isspace()]
    return errors[-1][:300] if errors else "it printed nothing"


def _free_memory() -> int:
    """Return the memory in bytes that programs may still take, as the kernel estimates it."""
    for line in Path("/proc/meminfo").read_text("ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cpu_seconds() -> float:
    """Return the CPU time in s that all programs have used since the machine started."""
    fields = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _iowait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
