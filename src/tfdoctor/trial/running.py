"""One run of a variant: a process of its own, which sees its files changed and ends when it has its figures."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from tfdoctor.capture.environment import agent_environment
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.terms.record import Record
from tfdoctor.trial import layer as layers
from tfdoctor.trial import program as programs
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.times import TrialTimes
from tfdoctor.trial.trial_run import EnergyCounters, TrialRun, hiding, read_runs
from tfdoctor.trial.turns import TurningRun, take_turns

# Of the folders of trials; the number of tfdoctor's process follows, and where that number holds.
PREFIX = "tfdoctor-try-"
LEASH = (sys.executable, "-I", "-S", str(Path(__file__).with_name("leash.py")))
# Share of the free memory that runs which take turns may have: a variant may need more than the recorded run.
MEMORY_SHARE = 0.5


class Runner(Record):
    """Where the runs of a trial happen: the program, and whether its writes are thrown away."""

    program: RecordedProgram
    folder: Path  # of the trial: logs and what the agent writes
    layer: bool
    check: Callable[[], None] = lambda: None  # before and after each run; raises to end the trial
    run_bytes: float | None = None  # of memory; None of a run that may have to be alone

    @classmethod
    @contextmanager
    def of(
        cls,
        program: RecordedProgram,
        *,
        layer: bool,
        check: Callable[[], None] = lambda: None,
        run_bytes: float | None = None,
    ) -> Iterator[Self]:
        """Make the folder for the runs, and remove it at the end."""
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=folder_prefix(os.getpid()))).resolve()
        try:
            yield cls(program, folder, layer, check, run_bytes)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def at_once(self) -> int:
        """Return how many runs may go on at once: one where they would write into the same files."""
        if not self.layer or not self.run_bytes:
            return 1
        return max(1, int(MEMORY_SHARE * _free_memory() / self.run_bytes))

    def run(self, variant: Variant, enough: Enough, number: int) -> TrialRun:
        """Run the program once, changed as the variant says.

        Raises:
            OSError: the folder for the runs cannot be written.
            InputError: a file of the program changed meanwhile.
        """
        counters = EnergyCounters(self.folder / f"energy{number}.jsonl")
        try:
            (run,) = self.by_turns([variant], enough, number, counters.start)
        finally:
            counters.stop()
        if not isinstance(run.times, TrialTimes):
            return run
        return replace(run, energy_j=counters.per_update(run.times))

    def by_turns(
        self,
        variants: Sequence[Variant],
        enough: Enough,
        number: int,
        began: Callable[[int], None] = lambda _: None,
    ) -> tuple[TrialRun, ...]:
        """Run the program once for each variant, all at once: one computes while the others are stopped.

        ``number`` is that of the first run; ``began`` gets the number of the process of each.

        Raises:
            OSError: the folder for the runs cannot be written.
            InputError: a file of the program changed meanwhile.
        """
        self.check()
        folders = [self.folder / f"run{at}" for at in range(number, number + len(variants))]
        processes = [
            TurningRun(self._start(variant, own, enough, len(variants), began), enough.limit_s)
            for variant, own in zip(variants, folders, strict=True)
        ]
        with _foreign(processes) as foreign:
            take_turns(processes)
        self.check()
        runs = read_runs(folders, processes, foreign())
        return tuple(hiding(run, one.credentials) for one, run in zip(variants, runs, strict=True))

    def _start(
        self, variant: Variant, own: Path, enough: Enough, beside: int, began: Callable[[int], None]
    ) -> Callable[[], subprocess.Popen[bytes]]:
        """Return what starts a run in its folder, of as many at once."""

        def start() -> subprocess.Popen[bytes]:
            processes = own / "processes"
            processes.mkdir(parents=True)
            texts = _write_texts(own, variant)
            plan = _agent_plan(processes, enough.beside(beside), {} if self.layer else texts, variant)
            environment = agent_environment(
                programs.variables(self.program, variant.environment), plan, hidden=self.program.hidden
            )
            command = [*LEASH, *self._entering(own, texts), *self.program.command]
            child = _popen(command, environment, self.program.folder, own / "log")
            began(child.pid)
            return child

        return start

    def _entering(self, own: Path, texts: Mapping[Path, Path]) -> Sequence[str]:
        return layers.entering(self.program.folder, texts, [own / "processes"]) if self.layer else ()


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


def _write_texts(own: Path, variant: Variant) -> dict[Path, Path]:
    """Write the changed texts next to the run; return by file which one is shown in its place."""
    texts = {}
    for number, (path, data) in enumerate(variant.files.items()):
        texts[path] = own / f"text{number}.py"
        texts[path].write_bytes(data)
        shutil.copymode(path, texts[path])
    return texts


def _agent_plan(
    processes: Path, enough: Enough, changed: Mapping[Path, Path], variant: Variant
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
    return plan | ({"changed": {str(path): str(text) for path, text in changed.items()}} if changed else {})


def _without(part: RunPart | None) -> dict[str, object] | None:
    """Return the part that a variant takes out, as the agent gets it."""
    if part is None:
        return None
    return {"part": str(part.part), "name": part.name, "at": part.line, "length": part.length}


def _popen(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, log: Path
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - the user's program
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@contextmanager
def _foreign(processes: Sequence[TurningRun]) -> Iterator[Callable[[], float]]:
    """Give what returns, at the end, the share of the machine's cores that other programs took meanwhile."""
    before, started = os.times(), _cpu_seconds()

    def share() -> float:
        return max(0.0, others / ((os.cpu_count() or 1) * max(seconds, 1e-3)))

    yield share
    after = os.times()
    own = after.children_user + after.children_system - before.children_user - before.children_system
    others = _cpu_seconds() - started - own
    seconds = sum(one.seconds for one in processes)


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
