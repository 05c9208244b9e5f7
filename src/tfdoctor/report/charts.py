"""The charts of the report, as plotly figures in JSON, each with its table."""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tfdoctor.diagnosis import PARTS, Diagnosis, OperationRow, PipelineStage, StepRow, StepsSummary
from tfdoctor.report import icicle, roofline
from tfdoctor.report.figures import TEXTS, Figure, as_text, figure_json, mark
from tfdoctor.report.palette import CRITICAL_STAGE, OTHER_STAGE, PART_COLOURS, ink, shade
from tfdoctor.report.run import section as run_section
from tfdoctor.report.tables import operations_grid, pipeline_grid, steps_grid
from tfdoctor.report.tiles import TreemapTile, tiles
from tfdoctor.report.words import PART_LABELS, is_known
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, location, milliseconds, number

STEPS_SHOWN = 400  # More bars than that are thinner than a pixel on a phone
TALLEST_OUTLIER = 2.5  # Times the median: taller bars are cut there and say their time, or the others would be flat
GAPS_UP_TO = 100  # Bars; between more of them gaps would be thinner than a pixel and flicker
LABELLED_OUTLIERS = 4  # More of them would write over each other on a phone; all have their time on hovering
TIMES_SIDE_BY_SIDE = 6  # Times that fit above the steps in a row on a phone, each about 60 of 350 pixels wide
_LABEL = 26  # Characters of a stage name in the chart: what fits on a phone
_TILE = 16  # Characters of a line in a tile of the treemap

_LEGEND = {"orientation": "h", "x": 0, "y": -0.12, "yanchor": "top", "traceorder": "normal"}


def charts(diagnosis: Diagnosis) -> tuple[Figure, ...]:
    """Return the pictures for which there is data."""
    pictures = (
        icicle.figure(run_section.section(diagnosis.run)),
        _steps(diagnosis.steps),
        icicle.step_figure(diagnosis.profile),
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
    told = _apart(outliers, len(rows)) if len(outliers) <= LABELLED_OUTLIERS else []
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
    description, table = _steps_description(steps), steps_grid(steps.rows)
    return Figure("steps", "Step by step", description, figure_json(_part_bars(rows), layout, top=40), table)


def _apart(outliers: Sequence[StepRow], steps: int) -> list[StepRow]:
    """Return the outliers whose times fit side by side, the longest first."""
    told: list[StepRow] = []
    for row in sorted(outliers, key=lambda row: -row.total_ms):
        if all(abs(row.number - other.number) * TIMES_SIDE_BY_SIDE >= steps for other in told):
            told.append(row)
    return told


def _part_bars(rows: Sequence[StepRow]) -> Iterator[dict[str, Any]]:
    """Yield the bars of each part that takes time; those of outliers are pale."""
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


def _steps_description(steps: StepsSummary) -> str:
    sentences = [
        f"Times of {counted(len(steps.rows), 'step')} in order, stacked by part.",
        f"The dashed line is the median, {milliseconds(steps.median_ms)}.",
    ]
    if steps.untraced_ms is not None:
        without = milliseconds(steps.untraced_ms)
        sentences.append(f"Without the profiler's cost a step takes {without}.")
    if not all(row.steady for row in steps.rows):
        sentences.append("Pale bars marked with a triangle are outliers.")
    if len(steps.rows) > STEPS_SHOWN:
        sentences.append(f"Only the first {STEPS_SHOWN} are drawn.")
    return " ".join(sentences)


def _pipeline(stages: Sequence[PipelineStage]) -> Figure | None:
    shown = [at for at, stage in enumerate(stages) if is_known(stage.self_ms)]
    if not shown:
        return None
    slowest = max((stages[at] for at in shown), key=lambda stage: stage.self_ms)
    return Figure(
        name="pipeline",
        title="Input pipeline",
        description="Work of each stage per step, summed over its threads, from the trainer back to "
        f"the source. {text.name(slowest.name)} takes the most, {milliseconds(slowest.self_ms)}.",
        figure=_pipeline_bars(shown, stages),
        table=pipeline_grid(stages),
    )


def _pipeline_bars(shown: Sequence[int], stages: Sequence[PipelineStage]) -> str:
    kinds = (("critical chain", CRITICAL_STAGE, True), ("other stages", OTHER_STAGE, False))
    bars = [
        _stage_bars(name, colour, mine, stages)
        for name, colour, critical in kinds
        if (mine := [at for at in shown if stages[at].critical is critical])
    ]
    names = [text.name(stages[at].written or stages[at].name, _LABEL) for at in shown]
    rows = {
        "tickmode": "array",
        "tickvals": shown,
        "ticktext": list(map(as_text, names)),
        "autorange": "reversed",
        "automargin": True,
        "showgrid": False,
    }
    across = {"ticksuffix": " ms", "rangemode": "tozero"}
    layout = {"barmode": "overlay", "bargap": 0.3, "legend": _LEGEND, "xaxis": across, "yaxis": rows}
    return figure_json(bars, layout, height=110 + 34 * len(shown))


def _stage_bars(name: str, colour: str, shown: Sequence[int], stages: Sequence[PipelineStage]) -> dict[str, Any]:
    mine = [stages[at] for at in shown]
    labels, hovers = [], []
    for stage in mine:
        threads = number(round(stage.parallelism, 1))
        unit = "thread" if threads == "1" else "threads"
        labels.append(f"{milliseconds(stage.self_ms)} · {threads} {unit}")
        names = (text.name(stage.name, 60), text.name(stage.written, 60))
        facts = (*names, location(stage.at), stage.note)
        hovers.append(as_text(" · ".join(text.name(fact, 80) for fact in facts if fact)))
    return {
        "type": "bar",
        "name": name,
        "orientation": "h",
        "y": list(shown),
        "x": [stage.self_ms for stage in mine],
        "marker": {"color": colour},
        "text": labels,
        "textposition": "auto",
        "cliponaxis": False,
        "customdata": hovers,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


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
        figure=figure_json([_treemap(tiles(heavy))], TEXTS, height=440, left=0),
        table=replace(operations_grid(rows), omitted=omitted),
    )


def _treemap(shown: Sequence[TreemapTile]) -> dict[str, Any]:
    most = max(tile.ms for tile in shown)
    return {
        "type": "treemap",
        "ids": [tile.id for tile in shown],
        "labels": [_broken(tile.label) if tile.is_leaf else as_text(tile.label) for tile in shown],
        "parents": [tile.parent for tile in shown],
        "values": [tile.ms if tile.is_leaf else 0.0 for tile in shown],
        "text": [milliseconds(tile.ms) for tile in shown],
        "customdata": [as_text(tile.hover) for tile in shown],
        "branchvalues": "remainder",
        "texttemplate": "%{label}<br>%{text}",
        "hovertemplate": "%{label}<br>%{text}<br>%{customdata}<extra></extra>",
        "textfont": {"color": [ink(shade(tile.ms / most)) for tile in shown]},
        "marker": {
            "colors": [shade(tile.ms / most) for tile in shown],
            "cornerradius": 3,
            "line": {"width": 1, "color": "rgba(255,255,255,0.55)"},
        },
        "tiling": {"pad": 2},
    }


def _broken(name: str) -> str:
    """Return the name of a type in lines that fit into a tile: "DepthwiseConv2d", "NativeBackprop", "Filter"."""
    if " " in name:
        return as_text(name)
    words = re.sub(r"(?<=[a-z0-9_])(?=[A-Z])", " ", name)
    return "<br>".join(as_text(line.replace(" ", "")) for line in textwrap.wrap(words, _TILE))
