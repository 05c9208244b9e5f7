"""The run as an icicle: its phases, in each the lines that ran, below them what these called."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import plotly.graph_objects as go

from tfdoctor.report.figures import Figure, as_text, figure_json
from tfdoctor.report.palette import PHASE_COLOURS
from tfdoctor.report.run.section import RunLineText, RunPhaseText, RunSection
from tfdoctor.report.run.words import times, whole_ms
from tfdoctor.report.tables import Grid
from tfdoctor.terms.humanize import duration, share

LEAST = 0.002
"""Share of the run below which a line has no box: it would be two pixels wide."""


@dataclass(frozen=True, slots=True)
class FlameBox:
    """A box; ``ms`` is all of its time, that of the boxes in it included."""

    id: str
    parent: str
    label: str
    ms: float
    colour: str
    share: str = ""


def figure(section: RunSection | None) -> Figure | None:
    """Return the icicle of an account; None without one, and of one without lines."""
    if section is None or not any(phase.lines for phase in section.phases):
        return None
    boxes = list(_boxes(section))
    rows = tuple(
        (phase.label, line.where, line.calls, line.time, line.share)
        for phase in section.phases
        for line in phase.lines
    )
    return Figure(
        name="account",
        title="The run by phase, line and call",
        description="Time of the host's Python from samples of its stack: a line is within its phase, and what it "
        "called is within the line. A click shows one box alone.",
        figure=figure_json(_icicle(boxes), height=300, left=0),
        table=Grid(
            ("phase", "line", "calls", "time", "share"),
            ("text", "place", "text", "number", "number"),
            rows,
        ),
    )


def _boxes(section: RunSection) -> Iterator[FlameBox]:
    run = section.account
    whole, spent = whole_ms(run), times(run)
    phases = [(phase, _within(phase, spent[phase.phase], whole)) for phase in section.phases]
    yield FlameBox("run", "", "run", sum(boxes[0].ms for _, boxes in phases), "rgba(0,0,0,0)")
    for _, boxes in phases:
        yield from boxes


def _within(phase: RunPhaseText, ms: float, whole: float) -> list[FlameBox]:
    """Return the box of a phase, then those of its lines, each followed by those of what it called."""
    by_line: dict[str, list[RunLineText]] = defaultdict(list)
    for line in phase.lines:
        if line.part >= LEAST:
            by_line[line.where].append(line)
    colour, found = PHASE_COLOURS[phase.phase], list[FlameBox]()
    for at, (where, lines) in enumerate(by_line.items()):
        name, part = f"{phase.key} {at}", sum(line.part for line in lines)
        found.append(FlameBox(name, phase.key, where, part * whole, colour, share(part)))
        found += [
            FlameBox(
                f"{name} {called}", name, _short(line.calls), line.part * whole, colour, line.share
            )
            for called, line in enumerate(lines)
            if line.calls
        ]
    least = sum(box.ms for box in found if box.parent == phase.key)
    return [FlameBox(phase.key, "run", phase.label, max(ms, least), colour, phase.share), *found]


def _short(calls: str) -> str:
    """Return the end of a dotted name, which says what is called."""
    return ".".join(calls.split(".")[-2:])


def _icicle(boxes: list[FlameBox]) -> go.Figure:
    picture = go.Icicle(
        ids=[box.id for box in boxes],
        labels=[as_text(box.label) for box in boxes],
        parents=[box.parent for box in boxes],
        values=[box.ms for box in boxes],
        text=[duration(box.ms) for box in boxes],
        customdata=[box.share for box in boxes],
        branchvalues="total",
        sort=False,
        texttemplate="%{label}<br>%{text}",
        leaf={"opacity": 1.0},
        hovertemplate="%{label}<br>%{text} %{customdata}<extra></extra>",
        marker={
            "colors": [box.colour for box in boxes],
            "line": {"width": 1, "color": "rgba(255,255,255,0.55)"},
        },
        tiling={"orientation": "v"},
        pathbar={"visible": True, "thickness": 18},
    )
    return go.Figure(picture).update_layout(uniformtext={"minsize": 10, "mode": "hide"})
