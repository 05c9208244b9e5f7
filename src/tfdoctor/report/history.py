"""Renderings of a history: a page that works offline, JSON, Markdown for a CI job's summary, and a terminal."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from tfdoctor.diagnosis.history_report import History, MetricHistory, RunMetric, Series
from tfdoctor.report import history_words as words
from tfdoctor.report.files import contract, plain
from tfdoctor.report.formats.md import filled
from tfdoctor.report.pictures.figures import Figure, as_text, figure_json, mark
from tfdoctor.report.pictures.palette import CRITICAL_STAGE, OTHER_STAGE, PART_COLOURS
from tfdoctor.report.tables import texts
from tfdoctor.report.template import fill
from tfdoctor.report.terminal import grid_table, more
from tfdoctor.terms import text
from tfdoctor.terms.humanize import counted, quantity

FORMATS = ("html", "json", "md")
STEM = "tfdoctor-history-report"  # Of the files: tfdoctor-history.json is the file that users commit

TERMINAL_ROWS = 10  # Rows of a table on a terminal; the files have the rest
SERIES = 5  # Series that a terminal shows; the files have all

FEWEST = 2  # Runs below which there is no line to draw
HEIGHT = 260
LETTERS = 36  # Characters of the labels below a chart that fit beside each other on a phone: four hashes of commits
UNITS = {RunMetric.STEP: "ms", RunMetric.RUN: "s", RunMetric.MEMORY: "GB"}


def render(file_format: str, history: History) -> str:
    """Return the whole text of a file in one of ``FORMATS``; docs/reference/json-history.md describes the JSON."""
    if file_format == "html":
        return page(history)
    if file_format == "json":
        return contract("history", {**plain(history), "failed": history.failed})
    return filled("history.md.jinja", history=history, words=words) + "\n"


def page(history: History, *, drawn: bool = True) -> str:
    """Return the page; without the code that draws its pictures, it is 0.5 MB smaller to compare."""
    pictures = [charts(one, number) for number, one in enumerate(history.series)]
    return fill(
        "history.html.jinja",
        history=history,
        words=words,
        pictures=pictures,
        carries=drawn and any(pictures),
        contract=render("json", history).strip(),
    )


def sections(history: History, width: int) -> Iterator[RenderableType]:
    """Yield what a terminal shows."""
    yield Text(words.headline(history), style="bold")
    for series in history.series[:SERIES]:
        yield Group(Text(words.title(series), style="bold"), Text(words.about(series), style="dim"))
        yield Text("\n".join(words.sentences(series)))
        for title, grid in words.tables(series).items():
            too_long = title == words.RUNS  # the places of the runs, in the last column
            shown = grid.only(range(len(grid.columns) - too_long))
            yield grid_table(title, shown, TERMINAL_ROWS, width)
    yield Text("\n".join(words.notes(history)))
    yield from more(len(history.series) - SERIES, "series in the files")


def charts(series: Series, number: int) -> list[Figure]:
    """Return a picture of each metric over the runs; ``number`` tells those of several series apart."""
    found = []
    for metric in series.metrics:
        known = {at: value for at, value in enumerate(metric.values) if value is not None}
        if len(known) >= FEWEST:
            found.append(_chart(series, metric, known, number))
    return found


def _chart(series: Series, metric: MetricHistory, known: dict[int, float], number: int) -> Figure:
    name, points = words.LABELS[metric.metric], metric.changes
    changed = {point.at: words.relative(point.share, metric.metric) for point in points}
    told = []
    for at, value in known.items():
        run = series.runs[at]
        told.append((words.commit(run), words.when(run), quantity(metric.metric.quantity(value))))
    labels = [as_text(commit) for commit, *_ in told]
    every = -(-len(known) // max(1, LETTERS // max(map(len, labels))))
    shown = list(known)
    notes = [mark(point.at, f"{'▲' if point.share > 0 else '▼'} {changed[point.at]}") for point in points]
    ends = [-0.5, len(metric.values) - 0.5]
    layout = {
        "showlegend": False,
        "annotations": notes,
        "xaxis": {"tickvals": shown[::every], "ticktext": labels[::every], "range": ends, "tickangle": 0},
        "yaxis": {"title": {"text": UNITS[metric.metric]}, "range": [0, max(known.values()) * 1.1]},
    }
    runs = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": shown,
        "y": list(known.values()),
        "line": {"color": PART_COLOURS["device"], "width": 1},
        "marker": {"color": PART_COLOURS["device"], "size": 7},
        "customdata": [as_text(f"{commit}, {day}: {value}") for commit, day, value in told],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    changes = counted(len(points), "change")
    why = f" ({metric.why_no_changes})" if metric.why_no_changes else ""
    kinds = {"commit": "text", "day": "text", name: "number", "change of the level": "number"}
    title, told_of = name.capitalize(), f"{counted(len(known), 'run')}, by commit: {changes} of the level{why}."
    drawn = figure_json([*_levels(series, metric, ends), runs], layout, height=HEIGHT, left=56)
    table = texts(kinds, ((*row, changed.get(place, "")) for place, row in zip(known, told, strict=True)))
    return Figure(f"{number}-{metric.metric.value}", title, f"{title} of {told_of}", drawn, table)


def _levels(series: Series, metric: MetricHistory, ends: list[float]) -> Iterator[dict[str, Any]]:
    """Yield the baselines, and the levels between changes."""

    def level(mode: str, ends: list[float], value: float, **line: object) -> dict[str, Any]:
        return {"type": "scatter", "mode": mode, "x": ends, "y": [value] * 2, "line": line, "hoverinfo": "skip"}

    for baseline in series.baselines:
        value = baseline.values.get(metric.metric.value)
        if value and words.against(baseline, metric):
            named = {"text": ["", as_text(text.name(baseline.name))], "textposition": "top left"}
            yield {**level("lines+text", ends, value, color=OTHER_STAGE, width=1, dash="dot"), **named}
    edges = pairwise([0, *(point.at for point in metric.changes), len(metric.values)])
    values = [*(point.before for point in metric.changes[:1]), *(point.after for point in metric.changes)]
    for (start, end), value in zip(edges, values, strict=False):
        yield level("lines", [start - 0.5, end - 0.5], value, color=CRITICAL_STAGE, width=2)
