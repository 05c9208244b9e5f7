"""The time of a trial: how much is left, and how many runs still fit into it."""

import time
from dataclasses import dataclass, field

RECENT = 0.3
"""Weight of the last run in how long a run usually takes: variants and machines become slower and faster."""


@dataclass(slots=True)
class TrialClock:
    """The time of a trial; no run begins after its end."""

    minutes: float
    usual_s: float = 0.0  # of a run
    began: float = field(init=False)

    def __post_init__(self) -> None:
        self.began = time.monotonic()

    @property
    def left_s(self) -> float:
        """The time that is left, negative when it is over."""
        return self.minutes * 60 - (time.monotonic() - self.began)

    def affordable(self) -> int:
        """Return how many more runs are likely to end in time."""
        return int(self.left_s / self.usual_s) if self.usual_s else 0

    def took(self, seconds: float) -> None:
        """A run has ended."""
        self.usual_s = (1 - RECENT) * self.usual_s + RECENT * seconds
