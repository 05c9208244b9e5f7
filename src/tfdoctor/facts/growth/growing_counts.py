"""Counts that grow over the run: graphs, traced functions, live objects. They tell what time or memory grows by."""

from collections.abc import Iterable

from tfdoctor.facts.phases.run_growth import ONLY_ADDED, Grows, RunGrowth, Trend
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.terms.humanize import number
from tfdoctor.terms.kinds import Phase
from tfdoctor.terms.units import count
from tfdoctor.terms.verdict import Location, Table

LEAST = {Grows.GRAPH: 20.0, Grows.FUNCTIONS: 5.0, Grows.OBJECTS: 500.0, Grows.FILES: 20.0, Grows.BLOCKS: 10_000.0}
"""The growth in the whole run from which on a count is named.

A summary or a saver adds a few operations late; TensorFlow itself warns of five traces of a function; callbacks and
Keras' History keep some hundred objects, and 10,000 of Python's blocks are about 1 MB.
"""

# The growth relative to the first value from which on a count is named: less is no cause of what grows by more.
LEAST_SHARE = 0.1
# Python's memory blocks more for each step from which on steps keep objects: a list of losses adds one.
LEAST_BLOCKS_A_STEP = 0.5
# Modules whose types tell less than others: lists and dictionaries are parts of all objects.
PLAIN = ("builtins.", "collections.", "typing.", "weakref.")


def growing_counts(growth: RunGrowth | None) -> tuple[Trend, ...]:
    """Return the counts that certainly grow, in the order in which they explain time and memory."""
    if growth is None:
        return ()
    trends = [trend for trend in growth.trends if trend.what in LEAST and trend.what is not Grows.OBJECTS]
    trends += sorted(growth.objects, key=lambda trend: trend.name.startswith(PLAIN))
    order = list(LEAST)
    return tuple(sorted(filter(_is_named, trends), key=lambda trend: order.index(trend.what)))


def _is_named(trend: Trend) -> bool:
    """Whether a count grows enough: also beside what there was, most of which imports and models made."""
    relative = LEAST_SHARE * abs(trend.first)
    if trend.what is Grows.BLOCKS and trend.over_steps:
        relative = LEAST_BLOCKS_A_STEP * trend.over_steps
    enough = trend.last - trend.first >= max(LEAST[trend.what], relative)
    return enough and (trend.grows or (trend.what in ONLY_ADDED and trend.steady))


def makes_operations(counts: tuple[Trend, ...], phases: RunPhases) -> Location | None:
    """Return the line that makes operations again and again while the default graph grows; None if not sure."""
    if not counts or counts[0].what is not Grows.GRAPH:
        return None
    return next((line.at for line in phases.at(Phase.BUILDING) if line.sure and line.repeats and line.at), None)


def clause(trend: Trend, steps: int = 0) -> str:
    """Return how a count grew, as a clause; per step where the steps meanwhile are known."""
    steps = trend.over_steps or steps
    grown = trend.last - trend.first
    each = f"by {number(float(f'{grown / steps:.2g}'))} {{}} a step" if steps else ""
    span = f"from {number(round(trend.first))} to {number(round(trend.last))}"
    match trend.what:
        case Grows.GRAPH:
            return f"the default graph grew {each.format('operations') or f'{span} operations'}"
        case Grows.FUNCTIONS:
            return f"{number(round(grown))} functions were traced meanwhile"
        case Grows.OBJECTS:
            return f"{named(trend)} grew {span}"
        case Grows.BLOCKS if steps:
            return f"Python kept {each.removeprefix('by ').format('memory blocks more')}"
        case _:
            return f"{trend.what} grew {span}"


def named(trend: Trend) -> str:
    """Return what a trend is of; of a type its last name."""
    return f"live {trend.name.rpartition('.')[2]} objects" if trend.what is Grows.OBJECTS else str(trend.what)


def counts_table(trends: Iterable[Trend]) -> tuple[Table, ...]:
    """Return the counts as evidence; () without any."""
    table = Table.of(
        trends,
        ("what grows", named),
        ("at the beginning", lambda trend: count(round(trend.first))),
        ("at the end", lambda trend: count(round(trend.last))),
    )
    return (table,) if table.rows else ()
