"""Long steps of one cause among the traced ones."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Self

from tfdoctor.facts.phases.run_steps import OCCASIONS
from tfdoctor.facts.step_time.breakdown import UNKNOWN, Breakdown
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.verdict import Stage

MINORITY = 3  # At most one step in three is long: steady steps are at least two in three
# Of the smallest growth of a part in steps with samples of a callback: others that grew as much have it, too.
ALIKE = 0.75


@dataclass(frozen=True, slots=True)
class OutlierStep:
    """A long step, and the part that grew most compared with steady steps."""

    number: int
    total_ms: float
    part: str
    growth_ms: float


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
        usual = {part: median(row[part] for row in rows) for part in breakdown.steps[0]}
        grown, causes = {}, set()
        for at in long:
            row = breakdown.steps[at]
            more, part = max(((row[part] - usual[part], part) for part in row), key=lambda one: one[0])
            grown[at] = part, more
            causes.add(part if more * 2 >= sum(row.values()) - sum(usual.values()) else "")
        steady_ms = median(step.total_ms for step in steps.steady_steps)
        beyond = {at: steps.steps[at].total_ms - steady_ms for at in long}
        return cls._of(steps, grown, causes.pop() if len(causes) == 1 else "", steady_ms, beyond)

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
        others = median(step.total_ms for at, step in enumerate(steps.steps) if at not in beyond)
        return cls._of(steps, {at: (part, more) for at, more in beyond.items()}, part, others, beyond)

    @classmethod
    def _of(
        cls,
        steps: Steps,
        grown: Mapping[int, tuple[str, float]],
        cause: str,
        steady_ms: float,
        beyond_ms: Mapping[int, float],
    ) -> Self:
        every = steps.steps
        whole = sum(step.total_ms * step.calls for step in every)
        beyond = sum(more * every[at].calls for at, more in beyond_ms.items())
        found = tuple(OutlierStep(every[at].number, every[at].total_ms, *growth) for at, growth in grown.items())
        occasions = sum(at - 1 not in beyond_ms for at in beyond_ms)
        return cls(found, cause, steady_ms, beyond / whole if whole else 0.0, len(every), occasions)

    @property
    def summary(self) -> str:
        """How many steps are long: "3 of 30 steps took much longer than the others"."""
        return f"{len(self.steps)} of {self.of} steps took much longer than the others"

    @property
    def period(self) -> str:
        """A clause with the distance of the long steps, where it is always the same; else ""."""
        distances = {after.number - before.number for before, after in pairwise(self.steps)}
        regular = len(self.steps) >= OCCASIONS and len(distances) == 1
        return f", every {distances.pop()} steps" if regular else ""

    @property
    def unclear(self) -> str:
        """Where much of the time went although no pattern shows, as at the end of an epoch."""
        parts = " and ".join(dict.fromkeys(NAMES[step.part] for step in self.steps))
        return (
            f" because of {parts}, on {counted(self.occasions, 'occasion')}: {percent(self.share)} of the traced "
            "time. The end of an epoch may be the cause (a validation, a checkpoint, a shuffle buffer that fills); "
            "trace more with --steps to see whether it recurs"
        )

    def because(self, line: str) -> str:
        """Return the cause, with a clause that names its line, and the durations."""
        longest = milliseconds(max(step.total_ms for step in self.steps))
        durations = f"up to {longest} instead of {milliseconds(self.steady_ms)}"
        return f" because of {NAMES[self.cause]}{line}: {durations}{self.period}"


NAMES = {
    Stage.INPUT: "a wait for input",
    Stage.TRANSFER: "copies",
    Stage.HOST: "host work",
    Stage.DEVICE: "device work",
    Stage.COLLECTIVE: "collectives",
    Stage.BETWEEN: "work between steps",
    UNKNOWN: "an unknown cause",
}
