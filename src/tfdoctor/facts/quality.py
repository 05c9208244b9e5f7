"""How far the recording itself can be trusted."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.device import Device
from tfdoctor.facts.framework import Framework
from tfdoctor.facts.samples import BUSY_CORES, Samples
from tfdoctor.facts.step_model import DISTORTED, slowdown
from tfdoctor.facts.steps import Steps
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.recording import Recording
from tfdoctor.trace import Trace

FEW_STEPS = 5
"""With fewer steps a median says little: one late callback moves it."""

UNEVEN = 0.25
"""Half of the steps differ by more than this share of the median: the figures are of a mixture."""

SLOWED = 0.10
"""Profiling made the steps this much slower than those before it: short operations are overstated."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """One reason to trust the figures less; a grave one spoils them, a light one blurs them."""

    what: str
    remedy: str
    grave: bool


@dataclass(frozen=True, slots=True)
class Quality:
    """What is wrong with the recording, gravest first."""

    steps: int
    doubts: tuple[Doubt, ...] = ()

    @classmethod
    def measure(
        cls,
        trace: Trace,
        device: Device,
        recording: Recording,
        steps: Steps | Unavailable,
        samples: Samples | None,
        framework: Framework,
    ) -> Self:
        """Collect all that speaks against the figures."""
        seen = steps if isinstance(steps, Steps) else None
        doubts = [
            *_of_profiler(trace, device, framework),
            *(
                _of_steps(steps, recording, framework)
                if isinstance(steps, Steps)
                else _of_none(steps)
            ),
            *_of_run(recording, seen),
            *_of_machine(samples if seen else None),
        ]
        return cls(
            seen.count if seen else 0, tuple(sorted(doubts, key=lambda doubt: not doubt.grave))
        )

    @property
    def level(self) -> str:
        """high, medium or low."""
        if any(doubt.grave for doubt in self.doubts):
            return "low"
        return "medium" if self.doubts else "high"


def _of_profiler(trace: Trace, device: Device, framework: Framework) -> Iterator[Doubt]:
    if device.missing:
        what, _, remedy = device.missing.partition("; ")
        yield Doubt(what, remedy or "record again", grave=True)
    for text in trace.warnings:
        if "dropped" in text:
            yield Doubt(
                f"the profiler dropped events: {text}",
                "trace fewer steps" if framework.foreign else "trace fewer steps (`--steps 5`)",
                grave=True,
            )
    for text in trace.errors:
        if not device.missing:
            yield Doubt(f"the profiler reported: {text}", "mend that and record again", grave=True)


def _of_none(why: Unavailable) -> Iterator[Doubt]:
    _, _, remedy = str(why).rpartition("; ")
    yield Doubt("no training step was found in the trace", remedy, grave=True)


def _of_steps(steps: Steps, recording: Recording, framework: Framework) -> Iterator[Doubt]:
    if steps.count < FEW_STEPS:
        number = "1 training step was" if steps.count == 1 else f"{steps.count} training steps were"
        start = ", which may be the start-up" if steps.count == 1 else ""
        what = f"only {number} traced{start}"
        yield Doubt(what, "trace a training loop of 20 steps or more", grave=steps.count == 1)
        return
    spread = (steps.percentile_ms(75) - steps.percentile_ms(25)) / steps.median_ms
    if spread > UNEVEN:
        what = f"the steps are uneven: the middle half of them spreads over {percent(spread)} of the median"
        yield Doubt(what, f"trace {_more(recording, framework)}", grave=False)


def _more(recording: Recording, framework: Framework) -> str:
    """Return how to trace more of a run like this."""
    if framework.foreign:
        return "more steps"
    plan = recording.manifest.plan if recording.manifest else None
    by_time = plan is not None and (plan.get("seconds") or not plan.get("steps"))
    return "for longer (`--for 10s`)" if by_time else "more steps (`--steps 100`)"


def _of_run(recording: Recording, steps: Steps | None) -> Iterator[Doubt]:
    for note in recording.notes:
        if "damaged" in note:
            yield Doubt(note, "record again", grave=False)
    manifest = recording.manifest
    if manifest is None:
        return
    if manifest.window and manifest.window.contains_warmup:
        what = "the traced window contains warm-up steps, because the first training loop is short"
        yield Doubt(
            what, "trace a loop with more steps than warm-up and window together", grave=False
        )
    if not manifest.finished:
        yield Doubt("the recording was cut off before it was finished", "record again", grave=False)
    times = slowdown(recording, steps) if steps else 1.0
    if steps and times > 1 + SLOWED:
        otherwise = milliseconds(steps.median_ms / times)
        what = (
            f"steps took {percent(times - 1)} longer while they were traced ({otherwise} otherwise)"
        )
        yield Doubt(what, _remedy_of_slowdown(times), grave=times > DISTORTED)


def _remedy_of_slowdown(times: float) -> str:
    if times <= DISTORTED:
        return "read shares rather than milliseconds"
    return (
        "what is shown is mostly the profiler's own cost, above all for many small operations; make "
        "sure with a timer before you change anything"
    )


def _of_machine(samples: Samples | None) -> Iterator[Doubt]:
    if samples and samples.other_cores is not None and samples.other_cores > BUSY_CORES:
        what = f"other programs kept {samples.other_cores:.1f} cores busy while steps were traced"
        yield Doubt(what, "record on a quiet machine", grave=False)
