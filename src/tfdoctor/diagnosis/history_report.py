"""What `tfdoctor history` shows of the runs of programs over their commits; the only input of its renderings.

Values are in the unit that their metric ends with. Runs are in the order of their commits, oldest first.
"""

from collections.abc import Mapping
from enum import StrEnum

from tfdoctor.diagnosis.gates import BudgetState
from tfdoctor.terms.record import Record, field
from tfdoctor.terms.units import Quantity, ms, nbytes

SHORT = 9  # Characters of a commit's hash that are shown: git's own number in a large repository


class RunMetric(StrEnum):
    """A figure of a run that is followed; its value is the budget for the same, and ends with its unit."""

    STEP = "step-ms"
    RUN = "run-s"
    MEMORY = "memory-peak-gb"

    @property
    def scale(self) -> float:
        """How many ms or bytes its unit is."""
        return {RunMetric.STEP: 1.0, RunMetric.RUN: 1e3, RunMetric.MEMORY: 1e9}[self]

    def quantity(self, value: float) -> Quantity:
        """Return a value in its unit as a quantity."""
        return (nbytes if self is RunMetric.MEMORY else ms)(value * self.scale)


class HistoryFinding(Record):
    """A finding of a run: a rule, its severity, and the share of the step or of the run that its change saves."""

    severity: str | None = None
    saving: float | None = None


class HistoryRun(Record, kw_only=True):
    """A run. Unknown text is "", unknown values are missing."""

    place: str
    commit: str = ""
    committed: str = ""  # ISO 8601 in UTC, as `recorded`
    recorded: str = ""
    changed: bool | None = None  # whether the program differed from the commit; None is unknown
    values: Mapping[RunMetric, float] = field(default_factory=dict)
    findings: Mapping[str, HistoryFinding] = field(default_factory=dict)  # by rule
    checked: frozenset[str] = frozenset()  # rules that gave a finding, or said that there is none


class Accepted(Record):
    """A change that was accepted: ``what`` is a metric or a rule, ``commit`` the first one that has it."""

    program: str
    what: str
    commit: str
    by: str
    on: str  # the day, ISO 8601
    why: str


class NamedBaseline(Record):
    """A run that a name was given to."""

    name: str
    program: str
    commit: str
    recorded: str
    step: str  # what its step is, as in `MetricHistory.what`
    values: Mapping[str, float]  # by metric


class ChangePoint(Record):
    """A change of the level of a metric: the place of the first run of the new level, and the medians around it."""

    at: int
    before: float
    after: float
    accepted: Accepted | None = None

    @property
    def share(self) -> float:
        """The change relative to the level before; above 0 is worse, as all metrics are costs."""
        return self.after / self.before - 1


class RegressionCheck(Record, kw_only=True):
    """The newest commit against the runs before it.

    ``change`` is relative to their median, ``low`` to ``high`` the interval of the change that chance leaves open.
    """

    limit: float | None  # of the change; None without a gate
    state: BudgetState | None  # None without a gate
    runs: int = 0  # that it was compared with
    newest: float | None = None
    usual: float | None = None  # the median of those runs
    change: float | None = None
    low: float | None = None
    high: float | None = None
    why: str = ""  # which runs are left out, or why it is undecided or unknown, as a clause


class MetricHistory(Record, kw_only=True):
    """A metric over the runs of a series."""

    metric: RunMetric
    what: str  # what the value is: "median step outside of the traced ones"
    values: tuple[float | None, ...]
    changes: tuple[ChangePoint, ...] = ()
    why_no_changes: str = ""  # why no change can be told from chance, as a clause
    check: RegressionCheck


class FindingHistory(Record, kw_only=True):
    """A finding over the runs of a series; None in ``found`` stands for a run in which its rule was not checked."""

    rule: str
    title: str
    found: tuple[bool | None, ...]
    last: HistoryFinding  # in the last run that has it
    appeared: int | None = None  # the place of the run that has it first since it was last absent
    gone: int | None = None  # the place of the first run without it, after the last that has it
    new: bool = False  # it makes the command fail
    accepted: Accepted | None = None


class Series(Record, kw_only=True):
    """The runs of a program with the same arguments, on machines of one kind."""

    program: str
    arguments: str
    machine: str
    runs: tuple[HistoryRun, ...]
    metrics: tuple[MetricHistory, ...]
    findings: tuple[FindingHistory, ...] = ()
    baselines: tuple[NamedBaseline, ...] = ()
    accepted: tuple[Accepted, ...] = ()
    notes: tuple[str, ...] = ()  # what else changed between runs, as sentences


class History(Record, kw_only=True):
    """All runs that were read."""

    version: str = field(name="tfdoctor")
    series: tuple[Series, ...]  # those with the newest runs first
    unread: tuple[tuple[str, str], ...] = ()  # places that could not be read, and why
    last: int = 0  # runs that the newest one is compared with
    limit: float | None = None  # of a regression; None without a gate

    @property
    def failed(self) -> bool:
        """Whether the command fails."""
        new = any(finding.new for one in self.series for finding in one.findings)
        return new or any(state.failed for state in self.states)

    @property
    def undecided(self) -> bool:
        """Whether a figure is undecided."""
        return any(state.undecided for state in self.states)

    @property
    def states(self) -> list[BudgetState]:
        """What the gate says of each metric; nothing without one."""
        return [metric.check.state for one in self.series for metric in one.metrics if metric.check.state]
