"""The comparison on a terminal."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tfdoctor.diagnosis.comparison import FindingState, RunComparison
from tfdoctor.report.comparison import words
from tfdoctor.report.palette import PART_COLOURS
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
    return capture(lambda columns: _sections(comparison, columns), width=width, color=color)


def _sections(comparison: RunComparison, width: int) -> Iterator[RenderableType]:
    yield Text(words.headline(comparison), style="bold")
    yield Text("\n".join(words.sides(comparison)))
    if bars := words.bars(comparison):
        drawn, room = Table.grid(padding=(0, 2, 0, 0)), max(LEAST_BAR, width - 22)
        for bar in bars:
            line = Text()
            for piece in bar.pieces:
                line.append("█" * max(1, round(piece.width * room)), style=PART_COLOURS[piece.part])
            drawn.add_row(Text(bar.label), Text(bar.time, justify="right"), line)
        yield drawn
    for title, grid in words.tables(comparison):
        if title == words.FINDINGS:
            yield _findings(comparison, grid)
        else:
            yield grid_table(title, grid, len(grid.rows) if title == words.PHASES else ROWS, width)
    yield Text("\n".join(words.notes(comparison)))


def _findings(comparison: RunComparison, grid: Grid) -> RenderableType:
    """Return two lines for each finding: what became of it, then its sentence."""
    parts: list[RenderableType] = [Text(words.FINDINGS, style="bold")]
    for change, row in zip(words.shown(comparison), grid.rows[:ROWS], strict=False):
        state, rule, where, before, after, what = row
        times = f"{before or 'none'} → {after or 'none'}" if before or after else ""
        facts = " · ".join(filter(None, (rule, shorten(where, 60), times)))
        parts.append(Text.assemble((state, STYLES.get(change.state, "not bold")), f": {facts}"))
        parts.append(Padding(Text(shorten(what, 160)), (0, 0, 0, 2)))
    return Group(*parts)
