"""The charts of a history: each metric over the runs, with its levels, its changes and the baselines."""

from collections.abc import Iterator
from typing import Any

from tfdoctor.diagnosis.history_report import MetricHistory, RunMetric, Series
from tfdoctor.report.figures import Figure, as_text, figure_json, mark
from tfdoctor.report.history import words
from tfdoctor.report.palette import CRITICAL_STAGE, OTHER_STAGE, PART_COLOURS
from tfdoctor.report.tables import Grid
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, quantity

FEWEST = 2  # Runs below which there is no line to draw
HEIGHT = 260
LETTERS = 36  # Characters of the labels below a chart that fit beside each other on a phone: four hashes of commits
UNITS = {RunMetric.STEP: "ms", RunMetric.RUN: "s", RunMetric.MEMORY: "GB"}


def charts(series: Series, number: int) -> tuple[Figure, ...]:
    """Return a picture of each metric; ``number`` tells those of several series apart."""
    return tuple(
        _figure(series, metric, number)
        for metric in series.metrics
        if sum(value is not None for value in metric.values) >= FEWEST
    )


def _figure(series: Series, metric: MetricHistory, number: int) -> Figure:
    name = words.LABELS[metric.metric]
    known = [at for at, value in enumerate(metric.values) if value is not None]
    changes = counted(len(metric.changes), "change")
    why = f" ({metric.why_no_changes})" if metric.why_no_changes else ""
    changed = {point.at: words.relative(point.share, metric.metric) for point in metric.changes}
    notes = [mark(point.at, f"{'▲' if point.share > 0 else '▼'} {changed[point.at]}") for point in metric.changes]
    labels = [as_text(words.commit(series.runs[at])) for at in known]
    every = -(-len(known) // max(1, LETTERS // max(map(len, labels))))
    most = max(value for value in metric.values if value is not None)
    ends = [-0.5, len(metric.values) - 0.5]
    layout = {
        "showlegend": False,
        "annotations": notes,
        "xaxis": {"tickvals": known[::every], "ticktext": labels[::every], "range": ends, "tickangle": 0},
        "yaxis": {"title": {"text": UNITS[metric.metric]}, "range": [0, most * 1.1]},
    }
    return Figure(
        name=f"{number}-{metric.metric.value}",
        title=name.capitalize(),
        description=f"{name.capitalize()} of {counted(len(known), 'run')}, by commit: {changes} of the level{why}.",
        figure=figure_json(_lines(series, metric, known), layout, height=HEIGHT, left=56),
        table=Grid(
            ("commit", "day", name, "change of the level"),
            ("text", "text", "number", "number"),
            tuple(
                (*told, changed.get(at, "")) for at, told in zip(known, _told(series, metric, known), strict=True)
            ),
        ),
    )


def _lines(series: Series, metric: MetricHistory, known: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the baselines, the levels between changes, and the runs."""
    ends = [0, *(point.at for point in metric.changes), len(metric.values)]
    for baseline in series.baselines:
        value = baseline.values.get(metric.metric.value)
        if value and words.against(baseline, metric):
            yield {
                "type": "scatter",
                "mode": "lines+text",
                "x": [-0.5, len(metric.values) - 0.5],
                "y": [value] * 2,
                "line": {"color": OTHER_STAGE, "width": 1, "dash": "dot"},
                "hoverinfo": "skip",
                "text": ["", as_text(text.name(baseline.name))],
                "textposition": "top left",
            }
    levels = [point.before for point in metric.changes[:1]]
    levels += [point.after for point in metric.changes]
    for start, end, level in zip(ends, ends[1:], levels, strict=False):
        line = {"color": CRITICAL_STAGE, "width": 2}
        at = [start - 0.5, end - 0.5]
        yield {"type": "scatter", "mode": "lines", "x": at, "y": [level] * 2, "line": line, "hoverinfo": "skip"}
    yield {
        "type": "scatter",
        "mode": "lines+markers",
        "x": known,
        "y": [metric.values[at] for at in known],
        "line": {"color": PART_COLOURS["device"], "width": 1},
        "marker": {"color": PART_COLOURS["device"], "size": 7},
        "customdata": [as_text(f"{where}, {day}: {value}") for where, day, value in _told(series, metric, known)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _told(series: Series, metric: MetricHistory, known: list[int]) -> Iterator[tuple[str, str, str]]:
    """Yield the commit, the day and the value of runs."""
    for at in known:
        run, value = series.runs[at], metric.values[at] or 0.0
        yield words.commit(run), words.when(run), quantity(metric.metric.quantity(value))
