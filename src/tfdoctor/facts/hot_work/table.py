"""The groups of operations that take most of the time, as evidence."""

from collections.abc import Iterable

from tfdoctor.facts.hot_work.sentences import rate
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.units import count, ms
from tfdoctor.verdict import Cell, Table

SHOWN_ROWS = 8
"""Rows of the table: the groups that take most of the time."""

COLUMNS = (
    "operation",
    "your line",
    "layer",
    "calls",
    "time per call",
    "time per step",
    "least time",
    "result",
)


def table(groups: Iterable[OperationGroup]) -> Table:
    """Return the table of the groups that take most of the time."""
    return Table(COLUMNS, tuple(_row(group) for group in list(groups)[:SHOWN_ROWS]))


def _row(group: OperationGroup) -> tuple[Cell, ...]:
    return (
        group.type,
        group.at or "unknown",
        ", ".join(group.layers[:2]) or "-",
        count(group.calls),
        ms(group.each_ms),
        ms(group.ms),
        _least(group),
        group.makes or "unknown",
    )


def _least(group: OperationGroup) -> Cell:
    if group.least_ms is not None:
        return ms(group.least_ms)
    return f"unknown{rate(group)}" if group.is_matrix else f"unknown ({group.missing})"
