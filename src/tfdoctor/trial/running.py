"""One run of a variant: a process of its own, which sees its files changed and ends when it has its figures.

What it has measured is read from what the agent of its training process wrote, and from counters.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Self

import psutil

from tfdoctor.capture.agent.process.masking import MASK, cleaned_begin
from tfdoctor.capture.agent.trial.timing import TIMING
from tfdoctor.capture.plan import Kind, agent_environment
from tfdoctor.capture.sampler import Sampler, SamplingThread
from tfdoctor.capture.sampler.nvml import NvmlSampler
from tfdoctor.capture.sampler.rapl import RaplSampler
from tfdoctor.facts.savings.energy import LEAST_S, counters_of
from tfdoctor.recording.files import Notes, samples
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.terms.record import Record, field
from tfdoctor.trial import layer as layers
from tfdoctor.trial import program as programs
from tfdoctor.trial.clock import Enough
from tfdoctor.trial.program import RecordedProgram, Variant
from tfdoctor.trial.times import MS_PER_S, Loop, Timing, TrainedState, TrialTimes, aligned, times_of
from tfdoctor.trial.turns import TurningRun, take_turns

PERIOD_MS = 250  # Of the samplers' own ticks: each reads its counters at the first one after a second


class TrialRun(Record):
    """What one run of a variant has measured."""

    times: TrialTimes | None = None
    why: str = ""  # it has no times
    state: TrainedState | None = None
    finite: bool | None = None
    error: str = ""  # the last line that a crashed program printed
    seconds: float = 0.0
    foreign: float = 0.0  # share of the machine's cores that other programs took meanwhile
    ineffective: str = ""  # why the variant changed nothing
    energy_j: Mapping[EnergySource, float] = field(default_factory=dict)  # of an update, by counters

    def hiding(self, credentials: Iterable[str]) -> Self:
        """Return it without these values in what the program printed."""
        run = self
        for value in credentials:
            run = replace(run, error=run.error.replace(value, MASK), why=run.why.replace(value, MASK))
        return run


Timed = tuple[Timing, Loop] | None  # Of the process that trained longest: others may evaluate, or try a step


def read_runs(folders: Sequence[Path], processes: Sequence[TurningRun], foreign: float) -> list[TrialRun]:
    """Return what runs gave that took turns; ``foreign`` is the share of the cores that other programs took."""
    written = [[Timing.read(path) for path in sorted(own.glob(f"processes/*/{TIMING}"))] for own in folders]
    timed: list[Timed] = []
    for timings in written:
        loops = [(timing, loop) for timing in timings if (loop := timing.chosen())]
        timed.append(max(loops, key=lambda one: one[1].covers_ms, default=None))
    steady = iter(aligned([one[1] for one in timed if one]))
    timed = [(one[0], next(steady)) if one else None for one in timed]
    return [
        replace(_run(*each), seconds=each[2].seconds, foreign=foreign)
        for each in zip(written, timed, processes, folders, strict=True)
    ]


def _run(timings: Sequence[Timing], timed: Timed, process: TurningRun, own: Path) -> TrialRun:
    if process.code is None:
        why = "the run took too long"
        return TrialRun(why=why, error=why)
    # What fails after the agent has ended the run is the end of threads that are still at work:
    ended = timed is not None and timed[0].enough
    error = "" if process.code == 0 or ended else _error(process.code, own / "log")
    if timed is None:
        idle = [timing.ineffective for timing in timings]
        ineffective = idle[0] if idle and all(idle) else ""
        return TrialRun(why=error or _too_few(timings), error=error, ineffective=ineffective)
    timing, loop = timed
    times, why = (None, timing.ineffective) if timing.ineffective else times_of(loop.on(process.own_ms))
    return TrialRun(times, why, loop.state, timing.finite, error, ineffective=timing.ineffective)


def _too_few(timings: Sequence[Timing]) -> str:
    loops = [loop for timing in timings for loop in timing.loops]
    longest = max(loops, key=lambda loop: len(loop.starts_ms), default=None)
    if longest is None:
        return "no loop of training steps was seen"
    needed = longest.warmup + longest.fewest
    return f"its longest loop has {len(longest.starts_ms)} steps, and a figure needs {needed}; run more of them"


def _error(code: int, log: Path) -> str:
    """Return why a program failed: the last line that it printed, or the signal that killed it."""
    if code == 128 + signal.SIGKILL:
        return "it was killed, as the kernel does where memory runs out"
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    errors = [line for line in lines if line and not line[0].isspace()]
    last = cleaned_begin(errors[-1], 300) if errors else "it printed nothing"
    return (
        f"it crashed with {signal.Signals(code - 128).name}; {last}" if code - 128 in set(signal.Signals) else last
    )


class EnergyCounters:
    """Reads the counters once a second while a run goes on, in threads of tfdoctor's own process.

    The environment of the process with which ``thread`` is started says which boards the run may use.
    """

    def __init__(self, path: Path, samplers: Sequence[Sampler] = ()) -> None:
        self.path = path
        self.thread = SamplingThread(path, PERIOD_MS, samplers or [NvmlSampler(), RaplSampler()])
        self.behind_s = (time.time_ns() - time.perf_counter_ns()) / 1e9

    def per_update(self, times: TrialTimes) -> Mapping[EnergySource, float]:
        """Return the joules of an update of the weights by source; of a source that counts too little, nothing.

        The steps' times are those of the system's monotonic clock, as `time.perf_counter` reads it on Linux.
        """
        begin, end = (at / MS_PER_S + self.behind_s for at in times.loop.steady_span_ms())
        found: dict[EnergySource, list[float | None]] = defaultdict(list)
        for counter in counters_of(samples(self.path, Notes())):
            joules, seconds = counter.within([(begin, end)]) if counter.counts else (0.0, 0.0)
            enough = seconds >= LEAST_S
            found[counter.source].append(joules / seconds * (end - begin) if enough else None)
        updates = times.steps * float(times.per)
        known = {source: [one for one in each if one is not None] for source, each in found.items()}
        return {source: sum(each) / updates for source, each in known.items() if len(each) == len(found[source])}


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
