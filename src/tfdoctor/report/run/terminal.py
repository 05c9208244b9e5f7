"""The account of the run on a terminal: a bar in time order, its phases, and the lines that take most."""

from collections.abc import Iterator
from itertools import groupby

from rich.text import Text

from tfdoctor.diagnosis.work import PhaseRow
from tfdoctor.report.run.bar import cells
from tfdoctor.report.run.section import RunSection, where
from tfdoctor.report.run.words import GLYPHS, PHASE_COLOURS
from tfdoctor.terms.humanize import duration
from tfdoctor.terms.run_time import PhaseLine
from tfdoctor.terms.text import shorten

LARGE = 0.1  # Share of the run from which on a line is listed
LONG = 0.01  # Share of the run from which on the time of long steps beyond the usual is told

LINES = 4
NOTES = 5
LEAST_NAME = 24  # Characters of a place and of a name that are kept in the narrowest window


def drawn(shown: RunSection, width: int) -> Text:
    """Return the bar, the times of the phases, the largest lines, and remarks."""
    run, bar = shown.account, Text()
    for phase, stretch in groupby(one.phase for one in cells(run, width)):
        bar.append(GLYPHS[phase] * len(list(stretch)), style=PHASE_COLOURS[phase])
    title = [] if run.whole and run.segments else [Text(shown.title, style="bold")]
    rows = [*title, bar, *_legend(shown, width)]
    large = [(line, row) for row in shown.phases for line in row.lines if line.ms >= LARGE * shown.whole_ms]
    large.sort(key=lambda pair: -pair[0].ms)
    rows += [Text(_line(shown, line, row, width)) for line, row in large[:LINES]]
    long = run.long_steps.beyond_ms if run.long_steps else 0.0
    notes = [*([shown.long] if long >= LONG * run.total_ms else []), *shown.notes][:NOTES]
    return Text("\n").join([*rows, *(Text(shorten(note, 240)) for note in notes)])


def _line(shown: RunSection, line: PhaseLine, of: PhaseRow, width: int) -> str:
    """Return a line with its figures, which are never cut: of a narrow window the ends of its names stay."""
    figures = f"{duration(line.ms)} ({shown.share(line)}) · {of.phase}"
    room = max(LEAST_NAME, width - len(figures) - len(" ·  · "))
    place = shorten(where(line), max(LEAST_NAME, room - len(line.calls)))
    calls = shorten(line.calls, max(LEAST_NAME, room - len(place)))
    return " · ".join(filter(None, (place, figures, calls)))


def _legend(shown: RunSection, width: int) -> Iterator[Text]:
    """Yield lines of phases with their times; none is broken within a phase."""
    line = Text()
    for row in shown.phases:
        glyph = (GLYPHS[row.phase], PHASE_COLOURS[row.phase])
        entry = Text.assemble(glyph, f" {row.phase} {duration(row.ms)}")
        if line and line.cell_len + len(" · ") + entry.cell_len > width:
            yield line
            line = Text()
        line.append(" · " if line else "").append_text(entry)
    yield line
