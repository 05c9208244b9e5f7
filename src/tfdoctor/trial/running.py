"""One run of a variant: a process of its own, which sees its files changed and ends when it has its figures."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

import psutil

from tfdoctor.capture.plan import agent_environment
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
        return max(1, int(MEMORY_SHARE * psutil.virtual_memory().available / self.run_bytes))

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
            TurningRun(partial(self._start, variant, own, enough.beside(len(variants)), began), enough.limit_s)
            for variant, own in zip(variants, folders, strict=True)
        ]
        before = _others_s()
        take_turns(processes)
        seconds = sum(one.seconds for one in processes)
        foreign = max(0.0, (_others_s() - before) / ((os.cpu_count() or 1) * max(seconds, 1e-3)))
        self.check()
        runs = read_runs(folders, processes, foreign)
        return tuple(hiding(run, one.credentials) for one, run in zip(variants, runs, strict=True))

    def _start(
        self, variant: Variant, own: Path, enough: Enough, began: Callable[[int], None]
    ) -> subprocess.Popen[bytes]:
        """Start a run in its folder."""
        processes, program = own / "processes", self.program
        processes.mkdir(parents=True)
        texts = _write_texts(own, variant)
        plan = _agent_plan(processes, enough, {} if self.layer else texts, variant)
        variables = programs.variables(program, variant.environment)
        entering = layers.entering(program.folder, texts, [processes]) if self.layer else []
        with (own / "log").open("wb") as output:
            child = subprocess.Popen(  # noqa: S603 - the user's program
                [*LEASH, *entering, *program.command],
                env=agent_environment(variables, plan, hidden=program.hidden),
                cwd=program.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        began(child.pid)
        return child


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
    for process in psutil.process_iter(["environ"]):
        if any(f"{folder}/run" in value for value in (process.info["environ"] or {}).values()):
            with suppress(psutil.Error):  # it has ended
                process.kill()


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
    part = variant.without
    without = part and {"part": str(part.part), "name": part.name, "at": part.line, "length": part.length}
    plan: dict[str, object] = {
        "processes": str(processes),
        "steps": enough.steps,
        "warmup": enough.compare_at,
        "seconds": None,
        "stop_after": True,
        "watch_s": enough.limit_s,
        "trial": enough.for_agent(),
        "variant": {"settings": dict(variant.runner), "environment": dict(variant.environment), "without": without},
    }
    return plan | ({"changed": {str(path): str(text) for path, text in changed.items()}} if changed else {})


def _others_s() -> float:
    """Return the CPU time in s that all programs but those of the trial have used since the machine started."""
    all_of, own = psutil.cpu_times(), os.times()
    busy = all_of.user + all_of.nice + all_of.system + all_of.irq + all_of.softirq
    return float(busy) - own.children_user - own.children_system
