"""What takes long, in words, and the groups of operations that do as a table."""

from collections.abc import Iterable

from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.rules.hot_operation.hot_work import HotWork, Stated
from tfdoctor.terms.humanize import location, milliseconds, number
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Cell, Table


def summary(hot: HotWork, stated: Stated) -> str:
    """Say where it is, and how long it takes of a step."""
    where = f" at {location(hot.at)}" if hot.at else ""
    time = f"{milliseconds(stated.ms_of(hot))} of {stated.each_step}"
    if hot.short:
        each = milliseconds(stated.device * sum(group.ms for group in hot.groups) / hot.calls)
        looped = " in the loop" if hot.groups[0].loop else ""
        return (
            f"{number(round(hot.calls))} operations of {each} each{looped}{where} take "
            f"{time}, dispatching included"
        )
    group = hot.groups[0]
    if hot.title:
        title = hot.title
        if title.startswith(("operations", "small", "metrics")):  # else the name of a metric
            title = title[0].upper() + title[1:]
        return f"{title}{where} take {time}{_use(hot)}"
    took = f"{group.type}{where} takes {time}{_use(hot)}"
    if group.attained is None and group.is_matrix:
        return f"{took}; how much it needs is unknown{rate(group)}"
    if hot.avoidable:
        return took
    if group.least_ms is None:
        return f"{took}; how much it needs is unknown ({group.missing})"
    return f"{took}; its bytes and FLOPs need {milliseconds(group.least_ms)}"


def _use(hot: HotWork) -> str:
    if hot.only_metrics:
        return ", and no gradient uses the results"
    return ", and depends on no input and no variable" if hot.constant else ""


def rate(group: OperationGroup) -> str:
    """Return the rate of a product and the best of this run, in words."""
    if group.gflop_s is None:
        return f" ({group.missing})"
    reached = f"{number(round(group.gflop_s))} GFLOP/s"
    best = group.best_gflop_s if group.best_gflop_s != group.gflop_s else None
    more = f", where this run's fastest reaches {number(round(best))}" if best else ""
    return f" ({group.missing}); it runs at {reached}{more}"


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
