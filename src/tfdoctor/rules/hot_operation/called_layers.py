"""The layers that compute the same again in a step: which change spares it, and the lines of their calls."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tfdoctor.facts.savings.layer_calls import CalledLayer
from tfdoctor.rules.hot_operation.hot_work import HotWork
from tfdoctor.terms.humanize import counted, location
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import Cell, Remedy, Table

SHOWN_LINES = 3
"""Lines of each layer in the table of calls: those that call it most often."""

SHOWN_LAYERS = 3
"""Layers in the table of calls: those whose operations take most of the time."""


def reuse(hot: HotWork) -> Remedy:
    """Return where layers compute the same again: those of most time, and all lines that call them."""
    longest = max(hot.layers, key=lambda layer: layer.repeated_ms)
    same = max(longest.equal, key=lambda calls: sum(call.ms for call in calls))
    lines = ", ".join(dict.fromkeys(location(call.place) for call in same if call.place))
    others = f" (and {counted(len(hot.layers) - 1, 'more layer')})" if hot.layers[1:] else ""
    number_of = counted(len(same), "time")
    action = (
        f"Layer {longest.name}{others} computes the same {number_of} in each step ({lines}): "
        "call it once and reuse the result"
    )
    return Remedy(action, at=same[-1].place)


def call_tables(hot: Iterable[HotWork]) -> Iterator[Table]:
    """Yield the table of the lines that call such layers."""
    layers = {layer.name: layer for one in hot for layer in one.layers}.values()
    called = sorted(layers, key=lambda layer: -layer.repeated_ms)
    rows = [row for layer in called[:SHOWN_LAYERS] for row in _call_rows(layer)]
    if rows:
        yield Table(("layer", "called at", "function called at", "calls per step", "same input"), tuple(rows))


def _call_rows(layer: CalledLayer) -> Iterator[tuple[Cell, ...]]:
    """Yield the lines that call a layer most often, those of repeated calls first."""
    number_of = Counter((call.at, call.by) for call in layer.calls)
    repeated = Counter((call.at, call.by) for calls in layer.equal for call in calls)
    lines = sorted(number_of, key=lambda line: (-repeated[line], -number_of[line]))
    for at, by in lines[: max(SHOWN_LINES, len(repeated))]:
        counts = count(number_of[at, by]), count(repeated[at, by])
        yield layer.name, at or "unknown", by or "-", *counts
