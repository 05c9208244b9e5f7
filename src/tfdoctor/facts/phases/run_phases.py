"""The phases of a run: the only place that divides its wall time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tfdoctor.kinds import Phase
from tfdoctor.verdict import Location

ENOUGH = 5
"""Samples of a line from which on it is named: with 5, its share is uncertain by 45 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """Time of a phase at a line of the user's, in ms of the run; ``at`` is None where no line of theirs ran.

    ``caller`` is the user's line that called the function of ``at``, ``calls`` what the line calls of a library
    ("pandas.DataFrame.iterrows"; "" is Python of its own; where it imports, the module: "pandas"), ``runs`` the
    innermost function of a library. ``repeats`` says whether a loop holds the line: one of its function, or of the
    line that calls it, or a library that calls the user's function again and again; None is unknown.
    """

    phase: Phase
    at: Location | None
    ms: float
    samples: int
    function: str = ""  # the user's function that holds the line; "<module>" is the script itself
    caller: Location | None = None
    calls: str = ""
    runs: str = ""
    repeats: bool | None = None

    @property
    def sure(self) -> bool:
        """Whether there are enough samples to name the line."""
        return self.samples >= ENOUGH


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """A stretch of the run that is mostly of one phase, in s since the process began; for the bar in time order."""

    phase: Phase
    start_s: float
    end_s: float
    at: Location | None = None  # where most of it was


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPhases:
    """Every ms of wall time from the start of the process to its end, in exactly one phase.

    ``times`` sums to ``total_ms``. ``once_ms`` is the time of what does not come again in a longer run: start,
    imports, first preparing, building and first tracing of each function, end. ``whole`` is False where only a
    traced window is known; ``missing`` says why, as a clause. ``lines`` are largest first.
    """

    total_ms: float
    times: Mapping[Phase, float]
    lines: tuple[RunLine, ...] = ()
    spans: tuple[PhaseSpan, ...] = ()
    once_ms: float = 0.0
    whole: bool = True
    missing: str = ""
    finished: bool = True  # False: killed, or still running
    others: tuple[str, ...] = ()  # other processes of the run, which this account does not contain
    notes: tuple[str, ...] = field(default=())  # sentences: suspended for 20 s, clocks that jumped

    def of(self, *phases: Phase) -> float:
        """Return the time of phases, in ms."""
        return sum(self.times.get(phase, 0.0) for phase in phases)

    def share(self, *phases: Phase) -> float:
        """Return the share of phases in the run, 0 to 1."""
        return self.of(*phases) / self.total_ms if self.total_ms else 0.0

    @property
    def recurring_ms(self) -> float:
        """The time that a longer run has more of: what is judged where a run is short."""
        return self.total_ms - self.once_ms

    def at(self, *phases: Phase) -> tuple[RunLine, ...]:
        """Return the lines of phases, largest first."""
        return tuple(line for line in self.lines if line.phase in phases)
