"""The layers that a step calls several times, as evidence: the lines of the calls, and those that repeat."""

from collections import Counter
from collections.abc import Iterable, Iterator

from tfdoctor.facts.savings.layer_calls import CalledLayer
from tfdoctor.rules.hot_operation.hot_work import HotWork, Stated
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Cell, Measure, Table

SHOWN_LINES = 3
"""Lines of each layer in the table of calls: those that call it most often."""

SHOWN_LAYERS = 3
"""Layers in the table of calls: those whose operations take most of the time."""


def layers(hot: Iterable[HotWork]) -> list[CalledLayer]:
    """Return the layers that are called several times, each once."""
    return list({layer.name: layer for one in hot for layer in one.layers}.values())


def again(hot: HotWork, stated: Stated) -> str:
    """Say how long the calls take that compute the same again."""
    if not hot.repeated_ms:
        return ""
    time = milliseconds(stated.device * hot.repeated_ms)
    return f"; repeated calls of a layer on the same input take {time}"


def repeats(hot: Iterable[HotWork], stated: Stated) -> Iterator[Measure]:
    """Yield the time of the calls that compute the same again."""
    time_ms = stated.device * sum(layer.repeated_ms for layer in layers(hot))
    if time_ms:
        yield Measure(
            "time in layers called again on the same input, forward, per step", ms(time_ms)
        )


def call_tables(hot: Iterable[HotWork]) -> Iterator[Table]:
    """Yield the table of the lines that call layers several times in a step."""
    called = sorted(layers(hot), key=lambda layer: (-layer.repeated_ms, -len(layer.calls)))
    rows = [row for layer in called[:SHOWN_LAYERS] for row in _call_rows(layer)]
    if rows:
        yield Table(
            ("layer", "called at", "function called at", "calls per step", "same input"),
            tuple(rows),
        )


def _call_rows(layer: CalledLayer) -> Iterator[tuple[Cell, ...]]:
    """Yield the lines that call a layer most often, those of repeated calls first."""
    number_of = Counter((call.at, call.by) for call in layer.calls)
    repeated = Counter((call.at, call.by) for calls in layer.equal for call in calls)
    lines = sorted(number_of, key=lambda line: (-repeated[line], -number_of[line]))
    shown = SHOWN_LINES if not layer.equal else max(SHOWN_LINES, len(repeated))
    for at, by in lines[:shown]:
        known = count(repeated[at, by]) if layer.equal else "-"
        yield layer.name, at or "unknown", by or "-", count(number_of[at, by]), known
