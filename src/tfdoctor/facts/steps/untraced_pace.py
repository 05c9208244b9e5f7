"""How long the steps outside of the traced window took, relative to those in it."""

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

    @classmethod
    def measure(cls, recording: Recording, steps: Steps) -> Self:
        """Read the untraced steps' time from the manifest.

        Raises:
            Unavailable: no whole steps were timed outside of the window.
        """
        untraced = recording.manifest.steps.untraced if recording.manifest else None
        if untraced is None or not untraced.median_ms or untraced.of != "steps":
            raise Unavailable("the steps outside of the traced window were not timed")
        if not steps.median_ms:
            raise Unavailable("the traced steps have no duration")
        ratio = untraced.median_ms / steps.median_ms
        return cls(ratio, untraced.median_ms, untraced, len(steps.steps))

    def contradicts(self, share: float) -> bool:
        """Return whether the untraced steps lack what long ones add to the traced time: a share of it, 0 to 1."""
        return self.untraced.contradict(share, self.traced, self.step_ms / self.ratio)
