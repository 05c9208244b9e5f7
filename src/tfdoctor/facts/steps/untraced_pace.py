"""The steps outside of the traced window: how tracing slows steps, and slow ones."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps
from tfdoctor.recording.agent import MOST_TOLD, UntracedSteps
from tfdoctor.terms.run_time import SlowStepsSummary

DISTORTED = 1.5  # Slowdown by tracing beyond which a third of the step or more is the profiler's own cost
# Slowdown beyond which most of the step is the profiler's own cost. No saving is predicted then: a Keras fit of
# 1.03 ms that took 2.26 ms while traced was predicted to take 0.37 ms with several steps a call, and took 0.88 ms.
MOSTLY_TRACING = 2.0
# Share of the time of all timed steps from which slow steps are what the run pays for, not the typical step.
MOST = 0.5
FASTEST = 0.25  # Share of the traced steps that tells slow and fast steps mixed from steps that tracing slows


def slowdown(recording: Recording, steps: Steps) -> float:
    """Return how many times as long a step took while it was traced; 1.0 where unknown.

    The profiler slows every step. Where the fastest quarter of the traced steps takes no longer than an untraced
    one, or input comes in bursts, slow and fast steps are mixed, as where XLA compiles for every second shape: the
    medians say nothing of tracing.
    """
    untraced = recording.manifest.steps.untraced if recording.manifest else None
    if untraced is None or untraced.median_ms is None or steps.in_bursts:
        return 1.0
    whole, usual_ms = untraced.of == "steps", steps.median_ms
    if not whole:  # recordings made before 2026-11-21 know only the time inside the training call
        times = [(step.call_end_ps - step.start_ps) / PS_PER_MS / step.calls for step in steps.steps]
        usual_ms = float(np.median(times))
    traced = untraced.traced_ms or usual_ms  # of calls that contain several steps
    slower = traced / untraced.median_ms
    mixed = whole and traced * steps.percentile_ms(100 * FASTEST) / (usual_ms or 1.0) <= untraced.median_ms
    return 1.0 if mixed and slower > DISTORTED else slower


class UntracedPace(Record):
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


class SlowSteps(SlowStepsSummary):
    """The traced steps that are outliers, and the untraced ones of twice the median or more.

    Of the untraced ones at most the 40 longest are known.
    """

    @classmethod
    def measure(cls, steps: Steps, recording: Recording) -> Self:
        """Add up the traced steps and those that the recording timed outside of the window."""
        known = recording.manifest.steps.untraced if recording.manifest else None
        untraced = known if known and known.total_ms else UntracedSteps()
        times = [(step.total_ms * step.calls, step.calls) for step in steps.steps]
        slow = [time for time, steady in zip(times, steps.steady, strict=True) if not steady]
        return cls(
            number=sum(calls for _, calls in slow) + len(untraced.long),
            ms=sum(ms for ms, _ in slow) + sum(ms for _, ms in untraced.long),
            timed=steps.count + untraced.count,
            timed_ms=sum(ms for ms, _ in times) + (untraced.total_ms or 0.0),
            at_least=len(untraced.long) >= MOST_TOLD,
        )

    @property
    def prevail(self) -> bool:
        """Whether they take most of the time, so that the typical step says little about the run."""
        return self.ms >= MOST * self.timed_ms

    @property
    def mean_ms(self) -> float:
        """The mean of all timed steps, in ms."""
        return self.timed_ms / self.timed
