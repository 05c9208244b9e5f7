"""A picture of the report: a plotly figure in JSON, with its table and its description."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfdoctor.report.pictures.palette import ink
from tfdoctor.report.tables import Grid
from tfdoctor.terms.record import Record

IN_SCRIPT = str.maketrans({"<": "\\u003c", ">": "\\u003e", "/": "\\u002f"})  # Characters of tags, as JSON escapes
# What plotly takes for a little HTML or LaTeX.
MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})

# Layout of boxes with texts, which are left out where small.
TEXTS = {"uniformtext": {"minsize": 10, "mode": "hide"}}


class Figure(Record):
    """A picture: ``figure`` is plotly's JSON, ``description`` what a screen reader says."""

    name: str
    title: str
    description: str
    figure: str
    table: Grid


class PlotBox(Record):
    """A rectangle within another one, as plotly shows it."""

    id: str
    parent: str
    label: str
    value: float
    colour: str
    text: str  # its time
    hover: str = ""


def boxes(kind: str, shown: Sequence[PlotBox], marker: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """Return a trace of rectangles: a treemap or an icicle."""
    return {
        "type": kind,
        "ids": [box.id for box in shown],
        "labels": [box.label for box in shown],
        "parents": [box.parent for box in shown],
        "values": [box.value for box in shown],
        "text": [box.text for box in shown],
        "customdata": [box.hover for box in shown],
        "texttemplate": "%{label}<br>%{text}",
        "textfont": {"color": [ink(box.colour) for box in shown]},
        "marker": {
            "colors": [box.colour for box in shown],
            "line": {"width": 1, "color": "rgba(255,255,255,0.55)"},
            **marker,
        },
        **more,
    }


def as_text(value: str) -> str:
    """Return text that plotly shows as it is."""
    return value.translate(MARKUP)


def mark(x: float, text: str) -> dict[str, Any]:
    """Return a text above the picture, at a place of its x axis."""
    return {"x": x, "y": 1, "yref": "paper", "yanchor": "bottom", "text": text, "showarrow": False}


def figure_json(
    data: Iterable[Mapping[str, Any]],
    layout: Mapping[str, Any],
    *,
    height: int = 340,
    left: int = 48,
    top: int = 24,
) -> str:
    """Return plotly's JSON of traces and a layout, without colours of its own for text and page: the page has them.

    A number that JSON does not know is null. It can stand in a script element.
    """
    common: dict[str, Any] = {
        "height": height,
        "margin": {"l": left, "r": 0, "t": top, "b": 40 if left else 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"align": "left"},
    }
    made = json.dumps({"data": list(data), "layout": {**layout, **common}})
    known = json.loads(made, parse_constant=lambda _: None)
    return json.dumps(known, separators=(",", ":")).translate(IN_SCRIPT)
