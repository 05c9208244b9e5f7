"""Evidence that several rules of the run show: lines with their time, and calls with their number."""

from collections.abc import Iterable, Sequence

from tfdoctor.facts.phases.run_calls import MadeCall
from tfdoctor.facts.run_work.line_groups import LineGroup
from tfdoctor.terms.humanize import location, number
from tfdoctor.terms.units import count, ms, ratio
from tfdoctor.terms.verdict import Table

SHOWN_ROWS = 8
"""Rows of each table: the lines that take most of the time."""


def line_table(groups: Iterable[LineGroup], total_ms: float) -> tuple[Table, ...]:
    """Return the lines of groups that have enough samples, with their share of the run; () where none has."""
    table = Table.of(
        (line for group in groups for line in group.lines if line.sure and line.at is not None),
        ("your line", lambda line: line.at),
        ("called at", lambda line: line.caller or "-"),
        ("library function", lambda line: line.calls or "-"),
        ("time", lambda line: ms(line.ms)),
        ("share of the run", lambda line: ratio(line.ms / total_ms if total_ms else 0.0)),
        ("stack samples", lambda line: count(line.samples)),
        most=SHOWN_ROWS,
    )
    return (table,) if table.rows else ()


def call_table(calls: Sequence[MadeCall], total_ms: float) -> tuple[Table, ...]:
    """Return the number and the time of calls, by line; () where there are none."""
    table = Table.of(
        calls,
        ("your line", lambda call: call.at),
        ("function", call_name),
        ("calls", lambda call: count(call.count)),
        ("time per call", lambda call: ms(call.each_ms)),
        ("time", lambda call: ms(call.ms)),
        ("share of the run", lambda call: ratio(call.ms / total_ms if total_ms else 0.0)),
        ("examples per call", lambda call: None if call.examples is None else number(call.examples)),
        most=SHOWN_ROWS,
    )
    return (table,) if calls else ()


def in_function(group: LineGroup) -> str:
    """Return " in load(), called at train.py:7": the function of a group's line, where it has one of its own."""
    if not group.function:
        return ""
    called = f", called at {location(group.caller)}" if group.caller else ""
    return f" in {group.function}(){called}"


def call_name(call: MadeCall) -> str:
    """Return the name of the function that is called: "Model.predict"."""
    return call.name or str(call.call)
