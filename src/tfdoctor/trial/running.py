"""One run of a variant: a process of its own, which sees its files changed and ends when it has its figures."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Self

import psutil

from tfdoctor.capture.plan import Kind, agent_environment
from tfdoctor.terms.record import Record, field
from tfdoctor.trial import layer as layers
from tfdoctor.trial import program as programs
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.trial_run import EnergyCounters, TrialRun, read_runs
from tfdoctor.trial.turns import TurningRun, take_turns

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
    numbers: Iterator[int] = field(default_factory=count)  # of the runs: each has a folder of its own

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
        folder = Path(tempfile.mkdtemp(prefix="tfdoctor-try-")).resolve()
        try:
            yield cls(program, folder, layer, check, run_bytes)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def at_once(self) -> int:
        """Return how many runs may go on at once: one where they would write into the same files."""
        if not self.layer or not self.run_bytes:
            return 1
        return max(1, int(MEMORY_SHARE * psutil.virtual_memory().available / self.run_bytes))

    def runs(self, variants: Sequence[Variant], enough: Enough) -> tuple[TrialRun, ...]:
        """Run the program once for each variant, all at once: one computes while the others are stopped.

        The energy of a run alone is counted.

        Raises:
            OSError: the folder for the runs cannot be written.
            InputError: a file of the program changed meanwhile.
        """
        self.check()
        folders = [self.folder / f"run{next(self.numbers)}" for _ in variants]
        counters = EnergyCounters(folders[0].with_suffix(".jsonl")) if len(variants) == 1 else None
        began = counters.thread.start if counters else None
        processes = [
            TurningRun(partial(self._start, variant, own, enough.beside(len(variants)), began), enough.limit_s)
            for variant, own in zip(variants, folders, strict=True)
        ]
        before = _others_s()
        try:
            take_turns(processes)
        finally:
            if counters:
                counters.thread.stop()
        seconds = sum(one.seconds for one in processes)
        foreign = max(0.0, (_others_s() - before) / ((os.cpu_count() or 1) * max(seconds, 1e-3)))
        self.check()
        found = read_runs(folders, processes, foreign)
        runs = [run.hiding(one.credentials) for one, run in zip(variants, found, strict=True)]
        return tuple(
            replace(run, energy_j=counters.per_update(run.times)) if counters and run.times else run for run in runs
        )

    def _start(
        self, variant: Variant, own: Path, enough: Enough, began: Callable[[int], None] | None
    ) -> subprocess.Popen[bytes]:
        processes, program = own / "processes", self.program
        processes.mkdir(parents=True)
        texts = {path: own / f"text{number}.py" for number, path in enumerate(variant.files)}
        for path, text in texts.items():
            text.write_bytes(variant.files[path])
            shutil.copymode(path, text)
        plan = _agent_plan(processes, enough, {} if self.layer else texts, variant)
        variables = programs.variables(program, variant.environment)
        entering = layers.entering(program.folder, variables, texts, [processes]) if self.layer else []
        with (own / "log").open("wb") as output:
            child = subprocess.Popen(  # noqa: S603 - the user's program
                [*LEASH, *entering, *program.command],
                env=agent_environment(variables, plan, hidden=program.kind is not Kind.COMMAND),
                cwd=program.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if began:
            began(child.pid)
        return child


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
        "trial": asdict(enough),
        "variant": {"settings": dict(variant.runner), "environment": dict(variant.environment), "without": without},
    }
    return plan | ({"changed": {str(path): str(text) for path, text in changed.items()}} if changed else {})


def _others_s() -> float:
    """Return the CPU time in s that all programs but those of the trial have used since the machine started."""
    all_of, own = psutil.cpu_times(), os.times()
    busy = all_of.user + all_of.nice + all_of.system + all_of.irq + all_of.softirq
    return float(busy) - own.children_user - own.children_system
