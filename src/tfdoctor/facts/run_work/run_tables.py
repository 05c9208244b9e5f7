"""Evidence that several rules of the run show: lines with their time, and calls with their number."""

from collections.abc import Iterable, Sequence

from tfdoctor.facts.phases.run_calls import MadeCall
from tfdoctor.facts.run_work.line_groups import LineGroup
from tfdoctor.humanize import location, number
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import Table

SHOWN_ROWS = 8
"""Rows of each table: the lines that take most of the time."""


def line_table(groups: Iterable[LineGroup], total_ms: float) -> tuple[Table, ...]:
    """Return the lines of groups that have enough samples, with their share of the run; () where none has."""
    rows = tuple(
        (
            line.at,
            line.caller or "-",
            line.calls or "-",
            ms(line.ms),
            ratio(line.ms / total_ms if total_ms else 0.0),
            count(line.samples),
        )
        for group in groups
        for line in group.lines
        if line.sure and line.at is not None
    )
    columns = (
        "your line",
        "called at",
        "library function",
        "time",
        "share of the run",
        "stack samples",
    )
    return (Table(columns, rows[:SHOWN_ROWS]),) if rows else ()


def call_table(calls: Sequence[MadeCall], total_ms: float) -> tuple[Table, ...]:
    """Return the number and the time of calls, by line; () where there are none."""
    rows = tuple(
        (
            call.at or "unknown",
            call_name(call),
            count(call.count),
            ms(call.each_ms),
            ms(call.ms),
            ratio(call.ms / total_ms if total_ms else 0.0),
            "unknown" if call.examples is None else number(call.examples),
        )
        for call in calls[:SHOWN_ROWS]
    )
    columns = (
        "your line", "function", "calls", "time per call", "time", "share of the run", "examples per call",
    )  # fmt: skip
    return (Table(columns, rows),) if rows else ()


def in_function(group: LineGroup) -> str:
    """Return " in load(), called at train.py:7": the function of a group's line, where it has one of its own."""
    if not group.function:
        return ""
    called = f", called at {location(group.caller)}" if group.caller else ""
    return f" in {group.function}(){called}"


def call_name(call: MadeCall) -> str:
    """Return the name of the function that is called: "Model.predict"."""
    return call.name or str(call.call)
