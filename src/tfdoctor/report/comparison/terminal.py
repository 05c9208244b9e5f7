"""The comparison on a terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis.comparison import FindingState, RunComparison
from tfdoctor.report.comparison.view import ComparisonView
from tfdoctor.report.palette import PART_COLOURS
from tfdoctor.report.step_bars import StepBar
from tfdoctor.report.tables import Grid
from tfdoctor.report.terminal import capture, grid_table
from tfdoctor.terms.text import shorten

ROWS = 8  # Rows of a table; the files have the rest

LEAST_BAR = 10

STYLES = {
    FindingState.NEW: "bold red",
    FindingState.WORSE: "bold yellow",
    FindingState.BETTER: "bold blue",
    FindingState.GONE: "bold green",
}


def render(comparison: RunComparison, *, width: int | None = None, color: bool | None = None) -> str:
    """Return the comparison; width and color default to those of the terminal."""
    view = ComparisonView.of(comparison)
    return capture(lambda columns: _sections(view, columns), width=width, color=color)


def _sections(view: ComparisonView, width: int) -> Iterator[RenderableType]:
    yield Text(view.headline, style="bold")
    yield Text("\n".join(view.sides))
    if view.bars:
        yield _bars(view.bars, width)
    for title, grid in view.tables:
        if grid is view.findings:
            yield _findings(grid, view.states)
        else:
            rows = len(grid.rows) if grid is view.phases else ROWS
            yield grid_table(title, grid, rows, width)
    yield Text("\n".join(view.notes))


def _bars(bars: tuple[StepBar, ...], width: int) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    room = max(LEAST_BAR, width - 22)
    for bar in bars:
        line = Text()
        for piece in bar.pieces:
            line.append("█" * max(1, round(piece.width * room)), style=PART_COLOURS[piece.part])
        grid.add_row(Text(bar.label), Text(bar.time, justify="right"), line)
    return grid


def _findings(grid: Grid, states: tuple[FindingState, ...]) -> RenderableType:
    """Return two lines for each finding: what became of it, then its sentence."""
    parts: list[RenderableType] = [Text("Findings", style="bold")]
    for is_now, row in zip(states, grid.first(ROWS).rows, strict=False):
        state, rule, where, before, after, what = row
        times = f"{before or 'none'} → {after or 'none'}" if before or after else ""
        facts = " · ".join(filter(None, (rule, shorten(where, 60), times)))
        parts.append(Text.assemble((state, STYLES.get(is_now, "not bold")), f": {facts}"))
        parts.append(Padding(Text(shorten(what, 160)), (0, 0, 0, 2)))
    return Group(*parts)
