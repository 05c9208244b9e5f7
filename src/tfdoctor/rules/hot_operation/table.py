"""The groups of operations that take most of the time, as evidence."""

from collections.abc import Iterable

from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.rules.hot_operation.sentences import rate
from tfdoctor.rules.hot_operation.stated import Stated
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Cell, Table

SHOWN_ROWS = 8
"""Rows of the table: the groups that take most of the time."""


def table(groups: Iterable[OperationGroup], stated: Stated) -> Table:
    """Return the table of the groups that take most of the time."""
    return Table.of(
        groups,
        ("operation", lambda group: group.type),
        ("your line", lambda group: group.at),
        ("layer", lambda group: ", ".join(group.layers[:2]) or "-"),
        ("calls", lambda group: count(group.calls)),
        ("time per call", lambda group: ms(stated.device * group.each_ms)),
        (f"time {stated.per_step}", lambda group: ms(stated.device * group.ms)),
        ("least time", _least),
        ("result", lambda group: group.makes or "unknown"),
        most=SHOWN_ROWS,
    )


def _least(group: OperationGroup) -> Cell:
    if group.least_ms is not None:
        return ms(group.least_ms)
    return f"unknown{rate(group)}" if group.is_matrix else f"unknown ({group.missing})"
