"""What a run of a trial has measured, from what the agent of its training process wrote, and from counters."""

import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from tfdoctor.capture.agent.process.masking import MASK, cleaned_begin
from tfdoctor.capture.agent.trial.timing import TIMING
from tfdoctor.capture.sampler import Sampler, SamplingThread
from tfdoctor.capture.sampler.nvml import NvmlSampler
from tfdoctor.capture.sampler.rapl import RaplSampler
from tfdoctor.facts.savings.energy import LEAST_S, counters_of
from tfdoctor.recording.files import Notes, samples
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.terms.record import Record, field
from tfdoctor.trial.times import MS_PER_S, Loop, Timing, TrainedState, TrialTimes, aligned, times_of
from tfdoctor.trial.turns import TurningRun

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
