"""The time of a trial: how much is left, and how many runs still fit into it."""

import math
import time
from dataclasses import dataclass, field

from tfdoctor.terms.humanize import counted

SPARE = 1.25  # Of an estimated time, as advice: variants and machines become slower
# Weight of the last run in how long a run usually takes: variants and machines become slower and faster.
RECENT = 0.3


@dataclass(slots=True)
class TrialClock:
    """The time of a trial; no run begins after its end."""

    minutes: float
    usual_s: float = 0.0  # of a run
    share: float | None = None  # of the minutes that the user allowed
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

    def shortage(self, what: str, runs: int, fewest: int) -> str:
        """Return how many minutes would do, where what is planned needs more runs than fit; "" where all fit.

        Below the ``fewest`` runs there is no result. Nothing is told where it is unknown which share this is of the
        time that the user allowed.
        """
        fit = max(0, self.affordable())
        if fit >= runs or not self.usual_s or not self.share:
            return ""
        spent_s = 60 * self.minutes - self.left_s
        needed = SPARE * (spent_s + runs * self.usual_s) / 60 / self.share
        given, unlikely = self.minutes / self.share, "a clear result" if fit >= fewest else "a result"
        return (
            f"{given:g} {'minute allows' if given == 1 else 'minutes allow'} {counted(fit, 'more run')}, "
            f"and {what} need {runs}, so "
            f"{unlikely} is unlikely: --minutes {math.ceil(2 * needed) / 2:g} would do"
        )

    def took(self, seconds: float) -> None:
        """A run has ended."""
        self.usual_s = (1 - RECENT) * self.usual_s + RECENT * seconds
