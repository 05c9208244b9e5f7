"""How long the steps outside of the traced window took, relative to those in it and together with them."""

from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording
from tfdoctor.recording.agent import UntracedSteps


@dataclass(frozen=True, slots=True)
class UntracedPace:
    """The median untraced step relative to the median traced one; tracing alone makes it less than 1."""

    ratio: float
    step_ms: float  # the median untraced step
    untraced: UntracedSteps = field(default_factory=UntracedSteps)
    traced: int = 0  # steps
    tracing_ms: float = 0.0  # of the run's calls that traced a tf.function, which some untraced steps are

    @classmethod
    def measure(cls, recording: Recording, steps: Steps) -> Self:
        """Read the untraced steps' time from the manifest.

        Raises:
            Unavailable: no whole steps were timed outside of the window, or they are short and long in turn.
        """
        untraced = recording.manifest.steps.untraced if recording.manifest else None
        if untraced is None or not untraced.median_ms or untraced.of != "steps":
            raise Unavailable("the steps outside of the traced window were not timed")
        if steps.in_bursts:
            raise Unavailable("steps are short and long in turn, so their median is of either kind")
        if not steps.median_ms:
            raise Unavailable("the traced steps have no duration")
        tracing_ms = recording.run.tracing_ms if recording.run else 0.0
        return cls(untraced.median_ms / steps.median_ms, untraced.median_ms, untraced, len(steps.steps), tracing_ms)

    def contradicts(self, share: float) -> bool:
        """Return whether the untraced steps lack what long ones add to the traced time: a share of it, 0 to 1."""
        return self.untraced.contradict(share, self.traced, self.step_ms / self.ratio, self.tracing_ms)

    @property
    def beyond_ms(self) -> float | None:
        """What long untraced steps add to the mean step, without those that trace a function; None is unknown."""
        if self.untraced.beyond is None or not self.untraced.total_ms:
            return None
        beyond = self.untraced.beyond * self.untraced.total_ms - self.tracing_ms
        return max(0.0, beyond / self.untraced.count)


# Share of the time of all timed steps from which slow steps are what the run pays for, not the typical step.
MOST = 0.5
KNOWN = 40  # Long untraced steps that a recording has at most (see UntracedSteps)


@dataclass(frozen=True, slots=True)
class SlowSteps:
    """The traced steps that are outliers, and the untraced ones of twice the median or more; times in ms.

    Of the untraced ones at most the 40 longest are known. ``timed`` and ``timed_ms`` are of all steps.
    """

    number: int
    ms: float
    timed: int
    timed_ms: float
    at_least: bool = False  # more untraced ones may be slow

    @classmethod
    def measure(cls, steps: Steps, recording: Recording) -> Self:
        """Add up the traced steps and those that the recording timed outside of the window."""
        untraced = recording.manifest.steps.untraced if recording.manifest else None
        long = untraced.long if untraced and untraced.total_ms else ()
        times = [(step.total_ms * step.calls, step.calls) for step in steps.steps]
        slow = [time for time, steady in zip(times, steps.steady, strict=True) if not steady]
        total_ms = untraced.total_ms or 0.0 if untraced else 0.0
        return cls(
            number=sum(calls for _, calls in slow) + len(long),
            ms=sum(ms for ms, _ in slow) + sum(ms for _, ms in long),
            timed=steps.count + (untraced.count if untraced and total_ms else 0),
            timed_ms=sum(ms for ms, _ in times) + total_ms,
            at_least=len(long) >= KNOWN,
        )

    @property
    def prevail(self) -> bool:
        """Whether they take most of the time, so that the typical step says little about the run."""
        return self.ms >= MOST * self.timed_ms

    @property
    def mean_ms(self) -> float:
        """The mean of all timed steps, in ms."""
        return self.timed_ms / self.timed
