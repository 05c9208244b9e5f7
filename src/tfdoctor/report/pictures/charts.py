"""The charts of the report, as plotly figures in JSON, each with its table."""

import re
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from tfdoctor.diagnosis import PARTS, OperationRow, PhaseLine, PipelineStage, Profile, StepRow, StepsSummary
from tfdoctor.report.page import Page
from tfdoctor.report.pictures import roofline
from tfdoctor.report.pictures.figures import TEXTS, Figure, PlotBox, as_text, boxes, figure_json, mark
from tfdoctor.report.pictures.palette import CRITICAL_STAGE, OTHER_STAGE, PART_COLOURS, shade
from tfdoctor.report.run import PHASE_COLOURS, RunSection, where
from tfdoctor.report.tables import operations_grid, pipeline_grid, steps_grid, texts
from tfdoctor.report.words import PART_LABELS, is_known, joined
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, duration, location, milliseconds, number, share

STEPS_SHOWN = 400  # More bars than that are thinner than a pixel on a phone
TALLEST_OUTLIER = 2.5  # Times the median: taller bars are cut there and say their time, or the others would be flat
GAPS_UP_TO = 100  # Bars; between more of them gaps would be thinner than a pixel and flicker
LABELLED_OUTLIERS = 4  # More of them would write over each other on a phone; all have their time on hovering
TIMES_SIDE_BY_SIDE = 6  # Times that fit above the steps in a row on a phone, each about 60 of 350 pixels wide
_LABEL = 26  # Characters of a stage name in the chart: what fits on a phone
_TILE = 16  # Characters of a line in a tile of the treemap
LEAST = 0.002  # Share of the run below which a line has no box: it would be two pixels wide
TILES_SHOWN = 100  # Smaller operations share a tile per layer: nobody can read them, and the table has all

_LEGEND = {"orientation": "h", "x": 0, "y": -0.12, "yanchor": "top", "traceorder": "normal"}


def charts(page: Page) -> tuple[Figure, ...]:
    """Return the pictures for which there is data."""
    diagnosis = page.diagnosis
    pictures = (
        _run(page.run),
        _steps(diagnosis.steps),
        _python(diagnosis.profile),
        _pipeline(diagnosis.pipeline),
        _operations(diagnosis.operations, diagnosis.operations_omitted, diagnosis.steps.untraced_ms),
        roofline.figure(diagnosis.operations, diagnosis.rates),
    )
    return tuple(picture for picture in pictures if picture)


def _steps(steps: StepsSummary) -> Figure | None:
    rows = [row for row in steps.rows if is_known(row.total_ms)][:STEPS_SHOWN]
    if not rows:
        return None
    outliers = [row for row in rows if not row.steady]
    told: list[StepRow] = []  # the outliers whose times fit side by side, the longest first
    for row in sorted(outliers if len(outliers) <= LABELLED_OUTLIERS else (), key=lambda row: -row.total_ms):
        if all(abs(row.number - other.number) * TIMES_SIDE_BY_SIDE >= len(rows) for other in told):
            told.append(row)
    notes = [mark(row.number, f"{milliseconds(row.total_ms)}<br>▲" if row in told else "▲") for row in outliers]
    median = steps.median_ms if steps.median_ms is not None and is_known(steps.median_ms) else 0.0
    line = {"dash": "dash", "width": 1.5, "color": OTHER_STAGE}
    whole = {"x0": 0, "x1": 1, "xref": "x domain"}
    across = {"type": "line", **whole, "y0": median, "y1": median, "yref": "y", "line": line}
    # The axis ends above every bar, unless an outlier would flatten the rest.
    tallest = max(row.total_ms for row in rows)
    usual = max((row.total_ms for row in rows if row.steady), default=tallest)
    top = min(tallest, max(TALLEST_OUTLIER * median, usual))
    layout = {
        "barmode": "stack",
        "bargap": 0.25 if len(rows) <= GAPS_UP_TO else 0,
        "legend": _LEGEND,
        "annotations": notes,
        "shapes": [across] if median > 0 else [],
        "yaxis": {"title": {"text": "ms"}, "range": [0, top * 1.04]},
    }
    untraced = f"Without the profiler's cost a step takes {milliseconds(steps.untraced_ms)}."
    description = joined(
        f"Times of {counted(len(steps.rows), 'step')} in order, stacked by part.",
        f"The dashed line is the median, {milliseconds(steps.median_ms)}.",
        "" if steps.untraced_ms is None else untraced,
        "" if all(row.steady for row in steps.rows) else "Pale bars marked with a triangle are outliers.",
        f"Only the first {STEPS_SHOWN} are drawn." if len(steps.rows) > STEPS_SHOWN else "",
        by=" ",
    )
    drawn = figure_json(_part_bars(rows), layout, top=40)
    return Figure("steps", "Step by step", description, drawn, steps_grid(steps.rows))


def _part_bars(rows: Sequence[StepRow]) -> Iterator[dict[str, Any]]:
    for part in PARTS:
        times = [row.parts_ms.get(part, 0.0) for row in rows]
        if any(time > 0 for time in times):
            yield {
                "type": "bar",
                "name": PART_LABELS[part],
                "x": [row.number for row in rows],
                "y": times,
                "marker": {"color": PART_COLOURS[part], "opacity": [1.0 if row.steady else 0.5 for row in rows]},
                "customdata": [milliseconds(time) for time in times],
                "hovertemplate": "step %{x}<br>%{fullData.name}: %{customdata}<extra></extra>",
            }


def _pipeline(stages: Sequence[PipelineStage]) -> Figure | None:
    shown = [at for at, stage in enumerate(stages) if is_known(stage.self_ms)]
    if not shown:
        return None
    bars = []
    for name, colour, critical in (("critical chain", CRITICAL_STAGE, True), ("other stages", OTHER_STAGE, False)):
        if mine := [at for at in shown if stages[at].critical is critical]:
            labels, hovers = zip(*(_stage_words(stages[at]) for at in mine), strict=True)
            bars.append(
                {
                    "type": "bar",
                    "name": name,
                    "orientation": "h",
                    "y": mine,
                    "x": [stages[at].self_ms for at in mine],
                    "marker": {"color": colour},
                    "text": labels,
                    "textposition": "auto",
                    "cliponaxis": False,
                    "customdata": hovers,
                    "hovertemplate": "%{customdata}<extra></extra>",
                }
            )
    rows = {
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": [as_text(text.name(stages[at].written or stages[at].name, _LABEL)) for at in shown],
        "autorange": "reversed",
        "automargin": True,
        "showgrid": False,
    }
    across = {"ticksuffix": " ms", "rangemode": "tozero"}
    layout = {"barmode": "overlay", "bargap": 0.3, "legend": _LEGEND, "xaxis": across, "yaxis": rows}
    slowest = max((stages[at] for at in shown), key=lambda stage: stage.self_ms)
    return Figure(
        name="pipeline",
        title="Input pipeline",
        description="Work of each stage per step, summed over its threads, from the trainer back to "
        f"the source. {text.name(slowest.name)} takes the most, {milliseconds(slowest.self_ms)}.",
        figure=figure_json(bars, layout, height=110 + 34 * len(shown)),
        table=pipeline_grid(stages),
    )


def _stage_words(stage: PipelineStage) -> tuple[str, str]:
    threads = number(round(stage.parallelism, 1))
    facts = (text.name(stage.name, 60), text.name(stage.written, 60), location(stage.at), stage.note)
    hover = as_text(" · ".join(text.name(fact, 80) for fact in facts if fact))
    return f"{milliseconds(stage.self_ms)} · {threads} {'thread' if threads == '1' else 'threads'}", hover


def _operations(rows: Sequence[OperationRow], omitted: int, untraced_ms: float | None) -> Figure | None:
    heavy = [row for row in rows if is_known(row.self_ms) and row.self_ms > 0]
    if not heavy:
        return None
    heaviest, when = heavy[0], "" if untraced_ms is None else " while it was traced"
    return Figure(
        name="operations",
        title="Layers and operations",
        description=f"Compute time per step{when}, by layer and the operations in it. The heaviest is "
        f"{text.name(heaviest.operation)} of {text.name(heaviest.layer) or 'no layer'}, "
        f"{milliseconds(heaviest.self_ms)}.",
        figure=figure_json([_treemap(heavy)], TEXTS, height=440, left=0),
        table=replace(operations_grid(rows), omitted=omitted),
    )


def _treemap(rows: Sequence[OperationRow]) -> dict[str, Any]:
    """Return a tile for the compute time, each layer and each operation; small operations share one."""
    layers: dict[str, list[OperationRow]] = defaultdict(list)
    for row in rows:
        layers[row.layer].append(row)
    heaviest = sorted(rows, key=lambda row: -row.self_ms)[:TILES_SHOWN]
    shown, rest = set(map(id, heaviest)), list[OperationRow]()
    most = sum(row.self_ms for row in rows)

    def tile(name: str, parent: str, label: str, ms: float, hover: str = "", *, is_leaf: bool = True) -> PlotBox:
        value = ms if is_leaf else 0.0
        return PlotBox(name, parent, label, value, shade(ms / most), milliseconds(ms), as_text(hover))

    def small(name: str, parent: str, rows: Sequence[OperationRow]) -> list[PlotBox]:
        label = counted(len(rows), "smaller operation")
        return [tile(name, parent, label, sum(row.self_ms for row in rows))] if rows else []

    found = [tile("all", "", "compute", most, is_leaf=False)]
    for at, members in enumerate(layers.values()):
        large = [row for row in members if id(row) in shown]
        others = [row for row in members if id(row) not in shown]
        if not large:
            rest += others
            continue
        name, label = f"layer {at}", text.name(large[0].layer, 60) or "no layer"
        total = sum(row.self_ms for row in (*large, *others))
        found.append(tile(name, "all", as_text(label), total, is_leaf=False))
        for place, row in enumerate(large):
            facts = (share(row.share), location(row.at), text.name(row.detail, 80))
            label, hover = _broken(text.name(row.operation, 60)), " · ".join(filter(None, facts))
            found.append(tile(f"{at}.{place}", name, label, row.self_ms, hover))
        found += small(f"{at}.rest", name, others)
    return boxes(
        "treemap",
        [*found, *small("rest", "all", rest)],
        {"cornerradius": 3},
        branchvalues="remainder",
        hovertemplate="%{label}<br>%{text}<br>%{customdata}<extra></extra>",
        tiling={"pad": 2},
    )


def _broken(name: str) -> str:
    """Return the name of a type in lines that fit into a tile: "DepthwiseConv2d", "NativeBackprop", "Filter"."""
    if " " in name:
        return as_text(name)
    words = re.sub(r"(?<=[a-z0-9_])(?=[A-Z])", " ", name)
    return "<br>".join(as_text(line.replace(" ", "")) for line in textwrap.wrap(words, _TILE))


# Of an icicle: the name of a box, its label and colour, its time in ms, and the lines within it.
Group = tuple[str, str, str, float, Sequence[PhaseLine]]


def _run(section: RunSection | None) -> Figure | None:
    """Return the run: phases, in each the lines that ran, below these what they called; None without lines."""
    if section is None or not any(row.lines for row in section.phases):
        return None
    whole = section.account.total_ms
    groups = [
        (row.phase.name.lower(), str(row.phase), PHASE_COLOURS[row.phase], row.ms, row.lines)
        for row in section.phases
    ]
    drawn, rows = _icicle(
        "run", "run", groups, lambda ms: (duration(ms), share(ms / whole)), least_ms=LEAST * whole
    )
    return Figure(
        name="account",
        title="The run by phase, line and call",
        description="Time of the host's Python from samples of its stack: a line is within its phase, and what it "
        "called is within the line. A click shows one box alone.",
        figure=figure_json([drawn], TEXTS, height=300, left=0),
        table=texts({"phase": "text", "line": "place", "calls": "text", "time": "number", "share": "number"}, rows),
    )


def _python(profile: Profile) -> Figure | None:
    """Return the host's Python in a step likewise; None where its stack was not sampled."""
    if not profile.python:
        return None
    groups = []
    for part in profile.python:
        lines = [replace(line, calls=text.name(line.calls)) for line in part.lines]
        groups.append((part.part, PART_LABELS[part.part], PART_COLOURS[part.part], part.ms, lines))
    drawn, rows = _icicle("step", "Python of a step", groups, lambda ms: (milliseconds(ms),))
    return Figure(
        name="python",
        title="Python of a step by line and call",
        description="Time of the host's Python per step from samples of its stack: a line is within its part of "
        "the step, and what it called is within the line. A click shows one box alone.",
        figure=figure_json([drawn], TEXTS, height=220, left=0),
        table=texts({"part": "text", "line": "place", "calls": "text", "time": "number"}, rows),
    )


def _icicle(
    root: str, title: str, groups: Sequence[Group], told: Callable[[float], tuple[str, ...]], least_ms: float = 0.0
) -> tuple[dict[str, Any], Iterator[tuple[str, ...]]]:
    """Return the boxes of groups, lines and calls, lines from a time on, and the rows of the table, with all."""
    found: list[PlotBox] = []
    for key, label, colour, ms, lines in groups:
        by_place: dict[str, list[PhaseLine]] = defaultdict(list)
        for line in lines:
            if line.ms >= least_ms:
                by_place[where(line)].append(line)
        inner, inner_ms = list[PlotBox](), 0.0
        for at, (place, mine) in enumerate(by_place.items()):
            name, total = f"{key} {at}", sum(line.ms for line in mine)
            inner_ms += total
            inner.append(PlotBox(name, key, as_text(place), total, colour, *told(total)))
            for called, line in enumerate(mine):
                if line.calls:  # shown by the end of its dotted name
                    call = as_text(".".join(line.calls.split(".")[-2:]))
                    inner.append(PlotBox(f"{name} {called}", name, call, line.ms, colour, *told(line.ms)))
        whole = max(ms, inner_ms)
        found += [PlotBox(key, root, label, whole, colour, told(whole)[0], *told(ms)[1:]), *inner]
    total = sum(box.value for box in found if box.parent == root)
    drawn = boxes(
        "icicle",
        [PlotBox(root, "", title, total, OTHER_STAGE, told(total)[0]), *found],
        {},
        branchvalues="total",
        sort=False,
        leaf={"opacity": 1.0},
        hovertemplate="%{label}<br>%{text} %{customdata}<extra></extra>",
        tiling={"orientation": "v"},
        pathbar={"visible": True, "thickness": 18},
    )
    rows = ((label, where(line), line.calls, *told(line.ms)) for _, label, _, _, lines in groups for line in lines)
    return drawn, rows
