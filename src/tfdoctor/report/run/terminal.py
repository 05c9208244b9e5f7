"""The account of the run on a terminal: a bar in time order, its phases, and the lines that take most."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from types import MappingProxyType

from rich.text import Text

from tfdoctor.report.palette import PHASE_COLOURS
from tfdoctor.report.run.bar import cells
from tfdoctor.report.run.section import RunLineText, RunPhaseText, RunSection
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.text import shorten

# What a cell of the bar shows of each phase, so that it can be read without colours.
GLYPHS = MappingProxyType(
    {
        Phase.START: "▖",
        Phase.IMPORTS: "▄",
        Phase.PREPARING: "▓",
        Phase.CHILDREN: "▘",
        Phase.OWN: "▙",
        Phase.BUILDING: "▞",
        Phase.TRACING: "▒",
        Phase.STEPS: "█",
        Phase.BOUNDARIES: "░",
        Phase.EVALUATION: "▀",
        Phase.PREDICTION: "▚",
        Phase.SAVING: "▌",
        Phase.PROFILER: "▐",
        Phase.END: "▗",
        Phase.UNNAMED: "?",
    }
)

LARGE = 0.1  # Share of the run from which on a line is listed
LONG = 0.01  # Share of the run from which on the time of long steps beyond the usual is told

LINES = 4

NOTES = 5


def drawn(shown: RunSection, width: int) -> Text:
    """Return the bar, the times of the phases, the largest lines, and remarks."""
    run, bar = shown.account, Text()
    for phase, stretch in groupby(one.phase for one in cells(run, width)):
        bar.append(GLYPHS[phase] * len(list(stretch)), style=PHASE_COLOURS[phase])
    title = [] if run.whole and run.segments else [Text(shown.title, style="bold")]
    rows = [*title, bar, *_legend(shown.phases, width)]
    large = [(line, phase) for phase in shown.phases for line in phase.lines if line.part >= LARGE]
    for line, of in sorted(large, key=lambda pair: -pair[0].part)[:LINES]:
        rows.append(Text(_line(line, of, width)))
    long = run.long_steps.beyond_ms if run.long_steps else 0.0
    notes = [*([shown.long] if long >= LONG * run.total_ms else []), *shown.notes][:NOTES]
    return Text("\n").join([*rows, *(Text(shorten(note, 240)) for note in notes)])


def _line(line: RunLineText, of: RunPhaseText, width: int) -> str:
    """Return a line with its figures, which are never cut: of a narrow window the ends of its names stay."""
    figures = f"{line.time} ({line.share}) · {of.label}"
    room = max(LEAST_NAME, width - len(figures) - len(" ·  · "))
    where = shorten(line.where, max(LEAST_NAME, room - len(line.calls)))
    calls = shorten(line.calls, max(LEAST_NAME, room - len(where)))
    return " · ".join(filter(None, (where, figures, calls)))


LEAST_NAME = 24  # Characters of a place and of a name that are kept in the narrowest window


def _legend(phases: Iterable[RunPhaseText], width: int) -> Iterator[Text]:
    """Yield lines of phases with their times; none is broken within a phase."""
    line = Text()
    for one in phases:
        glyph = (GLYPHS[one.phase], PHASE_COLOURS[one.phase])
        entry = Text.assemble(glyph, f" {one.label} {one.time}")
        if line and line.cell_len + len(" · ") + entry.cell_len > width:
            yield line
            line = Text()
        line.append(" · " if line else "").append_text(entry)
    yield line
