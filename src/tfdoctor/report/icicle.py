"""The run and the step as icicles: phases or parts, in each the lines that ran, below them what these called."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tfdoctor.diagnosis.work import Profile, PythonPart
from tfdoctor.report.figures import TEXTS, Figure, PlotBox, as_text, boxes, figure_json
from tfdoctor.report.palette import OTHER_STAGE, PART_COLOURS
from tfdoctor.report.run import PHASE_COLOURS, RunSection, where
from tfdoctor.report.tables import Grid
from tfdoctor.report.words import PART_LABELS
from tfdoctor.terms import text
from tfdoctor.terms.humanize import duration, milliseconds, share
from tfdoctor.terms.run_time import PhaseLine

LEAST = 0.002  # Share of the run below which a line has no box: it would be two pixels wide


def figure(section: RunSection | None) -> Figure | None:
    """Return the icicle of an account; None without one, and of one without lines."""
    if section is None or not any(row.lines for row in section.phases):
        return None
    rows = tuple(
        (str(row.phase), where(line), line.calls, duration(line.ms), section.share(line))
        for row in section.phases
        for line in row.lines
    )
    return Figure(
        name="account",
        title="The run by phase, line and call",
        description="Time of the host's Python from samples of its stack: a line is within its phase, and what it "
        "called is within the line. A click shows one box alone.",
        figure=_icicle(_run_boxes(section), height=300),
        table=Grid(
            ("phase", "line", "calls", "time", "share"), ("text", "place", "text", "number", "number"), rows
        ),
    )


def step_figure(profile: Profile) -> Figure | None:
    """Return the icicle of the host's Python in a step; None where its stack was not sampled."""
    if not profile.python:
        return None
    rows = tuple(
        (PART_LABELS[part.part], where(line), text.name(line.calls), milliseconds(line.ms))
        for part in profile.python
        for line in part.lines
    )
    return Figure(
        name="python",
        title="Python of a step by line and call",
        description="Time of the host's Python per step from samples of its stack: a line is within its part of "
        "the step, and what it called is within the line. A click shows one box alone.",
        figure=_icicle(list(_step_boxes(profile.python)), height=220),
        table=Grid(("part", "line", "calls", "time"), ("text", "place", "text", "number"), rows),
    )


def _step_boxes(parts: Sequence[PythonPart]) -> Iterator[PlotBox]:
    whole = sum(part.ms for part in parts)
    yield PlotBox("step", "", "Python of a step", whole, OTHER_STAGE, milliseconds(whole))
    for part in parts:
        colour, label = PART_COLOURS[part.part], PART_LABELS[part.part]
        yield PlotBox(part.part, "step", label, part.ms, colour, milliseconds(part.ms))
        lines = (replace(line, calls=text.name(line.calls)) for line in part.lines)
        yield from _of_lines(part.part, lines, colour, lambda ms: (milliseconds(ms),))


def _run_boxes(section: RunSection) -> list[PlotBox]:
    found: list[PlotBox] = []
    for row in section.phases:
        key, colour = row.phase.name.lower(), PHASE_COLOURS[row.phase]
        large = (line for line in row.lines if line.ms >= LEAST * section.whole_ms)
        lines = _of_lines(key, large, colour, lambda ms: (duration(ms), share(ms / section.whole_ms)))
        time = max(row.ms, sum(box.value for box in lines if box.parent == key))
        found += [PlotBox(key, "run", str(row.phase), time, colour, duration(time), section.share(row)), *lines]
    total = sum(box.value for box in found if box.parent == "run")
    return [PlotBox("run", "", "run", total, OTHER_STAGE, duration(total)), *found]


def _of_lines(
    key: str, lines: Iterable[PhaseLine], colour: str, told: Callable[[float], tuple[str, ...]]
) -> list[PlotBox]:
    """Return the boxes of lines, each followed by those of what it called, by the end of its dotted name."""
    by_place: dict[str, list[PhaseLine]] = defaultdict(list)
    for line in lines:
        by_place[where(line)].append(line)
    found: list[PlotBox] = []
    for at, (place, mine) in enumerate(by_place.items()):
        name, total = f"{key} {at}", sum(line.ms for line in mine)
        found.append(PlotBox(name, key, as_text(place), total, colour, *told(total)))
        for called, line in enumerate(mine):
            if line.calls:
                label = as_text(".".join(line.calls.split(".")[-2:]))
                found.append(PlotBox(f"{name} {called}", name, label, line.ms, colour, *told(line.ms)))
    return found


def _icicle(shown: Sequence[PlotBox], height: int) -> str:
    trace = boxes(
        "icicle",
        shown,
        {},
        branchvalues="total",
        sort=False,
        leaf={"opacity": 1.0},
        hovertemplate="%{label}<br>%{text} %{customdata}<extra></extra>",
        tiling={"orientation": "v"},
        pathbar={"visible": True, "thickness": 18},
    )
    return figure_json([trace], TEXTS, height=height, left=0)
