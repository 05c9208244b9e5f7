"""The groups of operations that take most of the time, as evidence."""

from collections.abc import Iterable

from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.rules.hot_operation.sentences import rate
from tfdoctor.rules.hot_operation.stated import Stated
from tfdoctor.units import count, ms
from tfdoctor.verdict import Cell, Table

SHOWN_ROWS = 8
"""Rows of the table: the groups that take most of the time."""


def table(groups: Iterable[OperationGroup], stated: Stated) -> Table:
    """Return the table of the groups that take most of the time."""
    columns = (
        "operation",
        "your line",
        "layer",
        "calls",
        "time per call",
        f"time {stated.per_step}",
        "least time",
        "result",
    )
    return Table(columns, tuple(_row(group, stated) for group in list(groups)[:SHOWN_ROWS]))


def _row(group: OperationGroup, stated: Stated) -> tuple[Cell, ...]:
    return (
        group.type,
        group.at or "unknown",
        ", ".join(group.layers[:2]) or "-",
        count(group.calls),
        ms(stated.device * group.each_ms),
        ms(stated.device * group.ms),
        _least(group),
        group.makes or "unknown",
    )


def _least(group: OperationGroup) -> Cell:
    if group.least_ms is not None:
        return ms(group.least_ms)
    return f"unknown{rate(group)}" if group.is_matrix else f"unknown ({group.missing})"
