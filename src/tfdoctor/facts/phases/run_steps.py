"""The training steps of the whole run: how long each took, and which of them the traced window is like."""

from dataclasses import dataclass

from tfdoctor.verdict import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """A stretch of training calls: when it began, in s of the run, its calls' number and mean duration in ms."""

    start_s: float
    calls: int
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LongSteps:
    """Steps that took more than 1.5 times the usual one: their number, all their time, and what is beyond usual.

    ``first_median_ms`` is the median of what first steps take beyond usual: one slow first epoch does not move it.
    """

    count: int
    ms: float
    beyond_ms: float
    first: int = 0  # of these, first steps of an epoch or of a pass over the data
    first_beyond_ms: float = 0.0
    first_median_ms: float = 0.0
    every: int | None = None  # their period in steps, where they have one


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """All training steps, traced or not, of the loop with the most time; times in ms.

    ``series`` has at most 2,000 stretches in order. ``window_share`` is the share of the time of all steps that
    is in steps like the traced ones (between 0.67 and 1.5 times their median), None without a window.
    """

    at: Location | None
    source: str
    count: int
    total_ms: float  # from a call to the next one, without epochs' boundaries
    inside_ms: float  # within the calls
    mean_ms: float
    median_ms: float
    p10_ms: float
    p90_ms: float
    series: tuple[RunStep, ...] = ()
    long: LongSteps | None = None
    traced_ms: float | None = None  # median of the traced steps
    window_share: float | None = None

    @property
    def rest_ms(self) -> float:
        """What steps add to the median for each of them."""
        return max(0.0, self.total_ms - self.count * self.median_ms)
