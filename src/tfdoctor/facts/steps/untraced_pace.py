"""How long the steps outside of the traced window took, relative to those in it."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.recording import Recording


@dataclass(frozen=True, slots=True)
class UntracedPace:
    """The median untraced step relative to the median traced one; tracing alone makes it less than 1."""

    ratio: float
    step_ms: float  # the median untraced step

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
        return cls(untraced.median_ms / steps.median_ms, untraced.median_ms)
