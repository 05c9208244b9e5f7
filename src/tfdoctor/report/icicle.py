"""The run and the step as icicles: phases or parts, in each the lines that ran, below them what these called."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from tfdoctor.diagnosis import PhaseLine, Profile, PythonPart
from tfdoctor.report.figures import TEXTS, Figure, as_text, figure_json
from tfdoctor.report.palette import OTHER_STAGE, PART_COLOURS, PHASE_COLOURS, ink
from tfdoctor.report.run.section import RunLineText, RunPhaseText, RunSection
from tfdoctor.report.run.words import times, whole_ms
from tfdoctor.report.tables import Grid
from tfdoctor.report.words import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import duration, location, milliseconds, share
from tfdoctor.terms.record import Record

NO_LINE = "no line of the program"  # The label of time in which no line of the user's ran
LEAST = 0.002  # Share of the run below which a line has no box: it would be two pixels wide


class FlameBox(Record):
    """A box; ``ms`` is all of its time, that of the boxes in it included."""

    id: str
    parent: str
    label: str
    ms: float
    colour: str
    time: str
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
        figure=figure_json([_icicle(boxes)], TEXTS, height=300, left=0),
        table=Grid(
            ("phase", "line", "calls", "time", "share"), ("text", "place", "text", "number", "number"), rows
        ),
    )


def step_figure(profile: Profile) -> Figure | None:
    """Return the icicle of the host's Python in a step; None where its stack was not sampled."""
    if not profile.python:
        return None
    rows = tuple((PART_LABELS[part.part], *_cells(line)) for part in profile.python for line in part.lines)
    return Figure(
        name="python",
        title="Python of a step by line and call",
        description="Time of the host's Python per step from samples of its stack: a line is within its part of "
        "the step, and what it called is within the line. A click shows one box alone.",
        figure=figure_json([_icicle(list(_step_boxes(profile.python)))], TEXTS, height=220, left=0),
        table=Grid(("part", "line", "calls", "time"), ("text", "place", "text", "number"), rows),
    )


def _cells(line: PhaseLine) -> tuple[str, str, str]:
    return location(line.at) or NO_LINE, text.name(line.calls), milliseconds(line.ms)


def _step_boxes(parts: Sequence[PythonPart]) -> Iterator[FlameBox]:
    whole = sum(part.ms for part in parts)
    yield FlameBox("step", "", "Python of a step", whole, OTHER_STAGE, milliseconds(whole))
    for part in parts:
        colour, label = PART_COLOURS[part.part], PART_LABELS[part.part]
        yield FlameBox(part.part, "step", label, part.ms, colour, milliseconds(part.ms))
        by_line: dict[str, list[PhaseLine]] = defaultdict(list)
        for line in part.lines:
            by_line[location(line.at) or NO_LINE].append(line)
        for at, (where, lines) in enumerate(by_line.items()):
            name, total = f"{part.part} {at}", sum(line.ms for line in lines)
            yield FlameBox(name, part.part, where, total, colour, milliseconds(total))
            for called, line in enumerate(lines):
                if line.calls:
                    label, time = _short(text.name(line.calls)), milliseconds(line.ms)
                    yield FlameBox(f"{name} {called}", name, label, line.ms, colour, time)


def _boxes(section: RunSection) -> Iterator[FlameBox]:
    run = section.account
    whole, spent = whole_ms(run), times(run)
    phases = [(phase, _within(phase, spent[phase.phase], whole)) for phase in section.phases]
    total = sum(boxes[0].ms for _, boxes in phases)
    yield FlameBox("run", "", "run", total, OTHER_STAGE, duration(total))
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
        found.append(_box(name, phase.key, where, part * whole, colour, share(part)))
        found += [
            _box(f"{name} {called}", name, _short(line.calls), line.part * whole, colour, line.share)
            for called, line in enumerate(lines)
            if line.calls
        ]
    least = sum(box.ms for box in found if box.parent == phase.key)
    return [_box(phase.key, "run", phase.label, max(ms, least), colour, phase.share), *found]


def _box(name: str, parent: str, label: str, ms: float, colour: str, part: str) -> FlameBox:
    """Return a box of the run."""
    return FlameBox(name, parent, label, ms, colour, duration(ms), part)


def _short(calls: str) -> str:
    """Return the end of a dotted name, which says what is called."""
    return ".".join(calls.split(".")[-2:])


def _icicle(boxes: list[FlameBox]) -> dict[str, Any]:
    return {
        "type": "icicle",
        "ids": [box.id for box in boxes],
        "labels": [as_text(box.label) for box in boxes],
        "parents": [box.parent for box in boxes],
        "values": [box.ms for box in boxes],
        "text": [box.time for box in boxes],
        "customdata": [box.share for box in boxes],
        "branchvalues": "total",
        "sort": False,
        "texttemplate": "%{label}<br>%{text}",
        "textfont": {"color": [ink(box.colour) for box in boxes]},
        "leaf": {"opacity": 1.0},
        "hovertemplate": "%{label}<br>%{text} %{customdata}<extra></extra>",
        "marker": {
            "colors": [box.colour for box in boxes],
            "line": {"width": 1, "color": "rgba(255,255,255,0.55)"},
        },
        "tiling": {"orientation": "v"},
        "pathbar": {"visible": True, "thickness": 18},
    }
