"""A comparison as text and tables, for every rendering."""

from typing import Self

from tfdoctor.diagnosis.comparison import FindingChange, FindingState, MoverKind, RunComparison
from tfdoctor.report.comparison import words
from tfdoctor.report.step_bars import StepBar, pieces
from tfdoctor.report.tables import Grid
from tfdoctor.report.words import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import duration, milliseconds, place
from tfdoctor.terms.record import Record

CHANGED = {True: "yes", False: "within noise", None: "unknown: too few steps"}
KINDS = {MoverKind.OPERATION: "operation", MoverKind.STAGE: "input stage"}


class ComparisonView(Record, kw_only=True):
    """What a rendering of a comparison shows, in order."""

    version: str
    headline: str
    sides: tuple[str, str]
    notes: tuple[str, ...]
    bars: tuple[StepBar, ...]
    legend: tuple[tuple[str, str], ...]  # the parts that the bars have, with their labels
    phases: Grid
    parts: Grid
    findings: Grid
    states: tuple[FindingState, ...]  # of the rows of findings
    movers: Grid

    @classmethod
    def of(cls, comparison: RunComparison) -> Self:
        """Return the view of a comparison."""
        return cls(
            version=comparison.version,
            headline=words.headline(comparison),
            sides=words.sides(comparison),
            notes=words.notes(comparison),
            bars=_bars(comparison),
            legend=tuple((part.part, PART_LABELS[part.part]) for part in comparison.parts),
            phases=_phases(comparison),
            parts=_parts(comparison),
            findings=_findings(comparison),
            states=tuple(change.state for change in _shown(comparison)),
            movers=_movers(comparison),
        )

    @property
    def tables(self) -> tuple[tuple[str, Grid], ...]:
        """The tables that have rows, with their titles."""
        titled = (
            ("Phases of the run", self.phases),
            ("Parts of the step", self.parts),
            ("Findings", self.findings),
            ("Changed most", self.movers),
        )
        return tuple((title, grid) for title, grid in titled if grid.rows)


def _bars(comparison: RunComparison) -> tuple[StepBar, ...]:
    """Return the bars of both sides on one scale; those of shares have each its own, and no time."""
    sides = {"before": comparison.before, "after": comparison.after}
    sums = {which: sum(side.parts_ms.values()) for which, side in sides.items()}
    longest = max(sums.values())
    bars: list[StepBar] = []
    for which, side in sides.items():
        if sums[which] > 0:
            time = milliseconds(side.step_ms) if comparison.in_ms else ""
            scale = longest if comparison.in_ms else sums[which]
            bars.append(StepBar(which, time, pieces(side.parts_ms, scale)))
    return tuple(bars)


def _phases(comparison: RunComparison) -> Grid:
    """Return the whole runs and their phases; what was saved is positive."""
    rows: list[tuple[str, float, float]] = []
    if run := comparison.run:
        rows = [("whole run", run.before_ms, run.after_ms)]
        rows += [(str(one.phase), one.before_ms, one.after_ms) for one in run.phases]
    return Grid(
        ("phase", "before", "after", "saved"),
        ("text", "number", "number", "number"),
        tuple((label, *map(duration, (first, last, first - last))) for label, first, last in rows),
    )


def _parts(comparison: RunComparison) -> Grid:
    rows: list[tuple[str, ...]] = []
    for part in comparison.parts:
        times = [words.amount(ms, in_ms=comparison.in_ms) for ms in (part.before, part.after)]
        rows.append((PART_LABELS[part.part], *times, CHANGED[part.changed]))
    kinds = ("text", "number", "number", "text")
    return Grid(("part", "before", "after", "changed"), kinds, tuple(rows))


def _findings(comparison: RunComparison) -> Grid:
    rows: list[tuple[str, ...]] = []
    for change in _shown(comparison):
        facts = (words.STATES[change.state], text.name(change.rule), place(change.at))
        times = words.finding_times(change) if comparison.in_ms else ("", "")
        rows.append((*facts, *times, text.prose(change.summary)))
    columns = ("", "rule", "where", "before", "after", "what")
    return Grid(columns, ("text", "place", "place", "number", "number", "text"), tuple(rows))


def _shown(comparison: RunComparison) -> tuple[FindingChange, ...]:
    """Return the findings without those that another one shows."""
    return tuple(change for change in comparison.findings if not change.shown_by)


def _movers(comparison: RunComparison) -> Grid:
    rows: list[tuple[str, ...]] = []
    for mover in comparison.movers:
        amounts = (
            "none" if value is None else words.amount(value, in_ms=comparison.in_ms)
            for value in (mover.before, mover.after)
        )
        rows.append((KINDS[mover.kind], text.name(mover.name), *amounts))
    kinds = ("text", "text", "number", "number")
    return Grid(("kind", "name", "before", "after"), kinds, tuple(rows))
