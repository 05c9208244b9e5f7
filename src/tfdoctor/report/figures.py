"""A picture of the report: a plotly figure in JSON, with its table and its description."""

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from tfdoctor.report.tables import Grid

# What plotly takes for a little HTML or LaTeX.
MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture: ``figure`` is plotly's JSON, ``description`` what a screen reader says."""

    name: str
    title: str
    description: str
    figure: str
    table: Grid


def as_text(value: str) -> str:
    """Return text that plotly shows as it is."""
    return value.translate(MARKUP)


def figure_json(figure: go.Figure, height: int = 340, left: int = 48, top: int = 24) -> str:
    """Return the figure without colours of its own for text and page: the page gives them."""
    layout: dict[str, Any] = {
        "template": "none",
        "height": height,
        "margin": {"l": left, "r": 0, "t": top, "b": 40 if left else 0},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hoverlabel": {"align": "left"},
    }
    return str(figure.update_layout(layout).to_json())
