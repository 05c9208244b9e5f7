"""Long steps of one cause among the traced ones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Self

from tfdoctor.facts.phases.long_steps import OCCASIONS
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.step_time.line_work import SlowCall
from tfdoctor.facts.step_time.timed_line import TimedLine
from tfdoctor.facts.steps.steps import Step, Steps
from tfdoctor.terms.humanize import counted, location, milliseconds, percent
from tfdoctor.terms.verdict import Stage

MINORITY = 3
"""At most one step in three is long: steady steps are at least two in three."""


ALIKE = 0.75
"""Of the smallest growth of a part in steps with samples of a callback: others that grew as much have it, too."""


@dataclass(frozen=True, slots=True)
class OutlierStep:
    """A long step, and the part that grew most compared with steady steps."""

    number: int
    total_ms: float
    part: str
    growth_ms: float
    is_main: bool  # the part accounts for at least half of the step's growth

    @classmethod
    def of(cls, step: Step, parts: Mapping[str, float], steady: Mapping[str, float]) -> Self:
        """Compare the parts of a step with those of steady steps."""
        part = max(parts, key=lambda name: parts[name] - steady[name])
        growth_ms = parts[part] - steady[part]
        is_main = growth_ms * 2 >= sum(parts.values()) - sum(steady.values())
        return cls(step.number, step.total_ms, part, growth_ms, is_main)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Long steps of one cause among so many; ``share`` is what they add to the traced time, 0 to 1."""

    steps: tuple[OutlierStep, ...]
    cause: str  # the part that grew, and accounts for most of each long step's growth; "" where they differ
    steady_ms: float
    share: float
    of: int
    occasions: int  # runs of adjacent steps

    @classmethod
    def of_outliers(cls, steps: Steps, breakdown: Breakdown, long: Sequence[int]) -> Self:
        """Return the long steps, by their places, with their growth beyond steady steps."""
        rows = [row for row, steady in zip(breakdown.steps, steps.steady, strict=True) if steady]
        parts = {part: median(row[part] for row in rows) for part in breakdown.steps[0]}
        found = tuple(OutlierStep.of(steps.steps[at], breakdown.steps[at], parts) for at in long)
        causes = {step.part if step.is_main else "" for step in found}
        steady_ms = median(step.total_ms for step in steps.steady_steps)
        beyond = {at: steps.steps[at].total_ms - steady_ms for at in long}
        cause = causes.pop() if len(causes) == 1 else ""
        return cls(found, cause, steady_ms, _share(beyond, steps), len(steps.steps), _runs(long))

    @classmethod
    def of_callback(cls, part: Stage, shown: Collection[int], steps: Steps, breakdown: Breakdown) -> Self | None:
        """Return the steps whose part grew as it does where the callback is seen; None where these are no minority.

        Samples show only some of them. Other programs' work shows little in the part that the callback runs in.
        """
        times = [row[part] for row in breakdown.steps]
        if len(shown) * MINORITY > len(times):
            return None
        usual_ms = median(time for at, time in enumerate(times) if at not in shown)
        least_ms = ALIKE * min(times[at] - usual_ms for at in shown)
        beyond = {at: t - usual_ms for at, t in enumerate(times) if t - usual_ms >= least_ms}
        if least_ms <= 0.0 or len(beyond) * MINORITY > len(times):
            return None
        found = (
            OutlierStep(steps.steps[at].number, steps.steps[at].total_ms, part, more, is_main=True)
            for at, more in beyond.items()
        )
        others = (step.total_ms for at, step in enumerate(steps.steps) if at not in beyond)
        share, number_of = _share(beyond, steps), len(times)
        return cls(tuple(found), part, median(others), share, number_of, _runs(beyond))

    @property
    def summary(self) -> str:
        """How many steps are long: "3 of 30 steps took much longer than the others"."""
        return f"{len(self.steps)} of {self.of} steps took much longer than the others"

    @property
    def period(self) -> str:
        """A clause with the distance of the long steps, where it is always the same; else ""."""
        distances = {after.number - before.number for before, after in pairwise(self.steps)}
        if len(self.steps) < OCCASIONS or len(distances) != 1:
            return ""
        return f", every {distances.pop()} steps"

    @property
    def unclear(self) -> str:
        """Where much of the time went although no pattern shows, as at the end of an epoch."""
        parts = " and ".join(dict.fromkeys(NAMES[step.part] for step in self.steps))
        return (
            f" because of {parts}, on {counted(self.occasions, 'occasion')}: {percent(self.share)} of the traced "
            "time. The end of an epoch may be the cause (a validation, a checkpoint, a shuffle buffer that fills); "
            "trace more with --steps to see whether it recurs"
        )

    def because(self, main: TimedLine | None) -> str:
        """Return the cause and the durations as a clause."""
        longest = milliseconds(max(step.total_ms for step in self.steps))
        durations = f"up to {longest} instead of {milliseconds(self.steady_ms)}"
        line = f", mostly {work_of(main)} at {location(main.at)}" if main else ""
        return f" because of {NAMES[self.cause]}{line}: {durations}{self.period}"


def _share(beyond_ms: Mapping[int, float], steps: Steps) -> float:
    """Return the share of the traced time that long steps, by their places, take beyond other ones."""
    beyond = sum(more * steps.steps[at].calls for at, more in beyond_ms.items())
    whole = sum(step.total_ms * step.calls for step in steps.steps)
    return beyond / whole if whole else 0.0


def _runs(long: Collection[int]) -> int:
    """Return how many runs of adjacent steps there are."""
    return sum(at - 1 not in long for at in long)


def work_of(line: TimedLine) -> str:
    """Return the name of the function that a line calls, or of the callback that it is in."""
    return called(line) or line.callback or "Python"


def called(line: TimedLine) -> str:
    """Return the function that a line calls; "" for fit, which has called the line's callback."""
    within = line.callback and line.call is SlowCall.FIT
    return "" if within else line.main_call.rpartition(".")[2]


NAMES = {
    Stage.INPUT: "a wait for input",
    Stage.TRANSFER: "copies",
    Stage.HOST: "host work",
    Stage.DEVICE: "device work",
    Stage.COLLECTIVE: "collectives",
    Stage.BETWEEN: "work between steps",
    UNKNOWN: "an unknown cause",
}
