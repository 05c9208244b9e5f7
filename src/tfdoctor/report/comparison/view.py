"""A comparison as text and tables, for every rendering."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.diagnosis.comparison import (
    FindingChange,
    FindingState,
    Mover,
    MoverKind,
    RunComparison,
    RunSide,
)
from tfdoctor.report.comparison import words
from tfdoctor.report.run.words import PHASE_LABELS
from tfdoctor.report.sentences import PART_LABELS
from tfdoctor.report.step_bars import StepBar, pieces
from tfdoctor.report.tables import Grid
from tfdoctor.terms import text
from tfdoctor.terms.humanize import duration, milliseconds, place

KINDS = {MoverKind.OPERATION: "operation", MoverKind.STAGE: "input stage"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonView:
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
    sides = {"before": comparison.before, "after": comparison.after}
    scale = _scale(comparison)
    return tuple(
        StepBar(which, _time(side, in_ms=comparison.in_ms), pieces(side.parts_ms, scale[which]))
        for which, side in sides.items()
        if sum(side.parts_ms.values()) > 0
    )


def _scale(comparison: RunComparison) -> dict[str, float]:
    """Return the time that is the whole width of each bar: one for both, or of shares each its own."""
    sums = {
        "before": sum(comparison.before.parts_ms.values()),
        "after": sum(comparison.after.parts_ms.values()),
    }
    return dict.fromkeys(sums, max(sums.values())) if comparison.in_ms else sums


def _time(side: RunSide, *, in_ms: bool) -> str:
    return milliseconds(side.step_ms) if in_ms else ""


def _phases(comparison: RunComparison) -> Grid:
    """Return the whole runs and their phases."""
    rows: list[tuple[str, float, float]] = []
    if run := comparison.run:
        rows = [("whole run", run.before_ms, run.after_ms)]
        rows += [(PHASE_LABELS[one.phase], one.before_ms, one.after_ms) for one in run.phases]
    return Grid(
        ("phase", "before", "after", "difference"),
        ("text", "number", "number", "number"),
        tuple((label, *map(duration, (first, last, last - first))) for label, first, last in rows),
    )


def _parts(comparison: RunComparison) -> Grid:
    rows = [
        (
            PART_LABELS[part.part],
            words.amount(part.before, in_ms=comparison.in_ms),
            words.amount(part.after, in_ms=comparison.in_ms),
            "yes" if part.changed else "within noise",
        )
        for part in comparison.parts
    ]
    return Grid(
        ("part", "before", "after", "changed"), ("text", "number", "number", "text"), tuple(rows)
    )


def _findings(comparison: RunComparison) -> Grid:
    rows = tuple(_finding(change, in_ms=comparison.in_ms) for change in _shown(comparison))
    columns = ("", "rule", "where", "before", "after", "what")
    return Grid(columns, ("text", "place", "place", "number", "number", "text"), rows)


def _shown(comparison: RunComparison) -> tuple[FindingChange, ...]:
    """Return the findings without those that another one shows."""
    return tuple(change for change in comparison.findings if not change.shown_by)


def _finding(change: FindingChange, *, in_ms: bool) -> tuple[str, ...]:
    return (
        words.STATES[change.state],
        text.name(change.rule),
        place(change.at),
        *(words.finding_times(change) if in_ms else ("", "")),
        text.prose(change.summary),
    )


def _movers(comparison: RunComparison) -> Grid:
    rows = tuple(_mover(mover, in_ms=comparison.in_ms) for mover in comparison.movers)
    columns = ("kind", "name", "before", "after")
    return Grid(columns, ("text", "text", "number", "number"), rows)


def _mover(mover: Mover, *, in_ms: bool) -> tuple[str, ...]:
    before, after = (
        "none" if value is None else words.amount(value, in_ms=in_ms)
        for value in (mover.before, mover.after)
    )
    return KINDS[mover.kind], text.name(mover.name), before, after
