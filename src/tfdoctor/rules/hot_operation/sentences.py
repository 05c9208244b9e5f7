"""What takes more time than it has to, in words, and the groups of operations as a table."""

import re
from collections.abc import Iterable

from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.rules.hot_operation.hot_work import Departure, HotWork, Stated
from tfdoctor.terms.humanize import location, milliseconds, number, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import Cell, Table

PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
"""The types of tf.py_function and tf.numpy_function."""


def summary(hot: HotWork, stated: Stated) -> str:
    """Say where it is, how long it takes of a step, and what shows that less is possible."""
    where = f" at {location(hot.at)}" if hot.at else ""
    time, group = f"{milliseconds(stated.ms_of(hot))} of {stated.each_step}", hot.groups[0]
    match hot.departure:
        case Departure.METRICS:
            names = ", ".join(dict.fromkeys(name for one in hot.groups for name in one.metrics))
            title = f"{names} (metrics)" if names else "Metrics"
            return f"{title}{where} take {time}, and no gradient uses the results"
        case Departure.REPEATED:
            names = ", ".join(layer.name for layer in hot.layers[:2])
            return f"Calls of {names}{where} that compute the same again take {time}"
        case Departure.SHORT:
            each = milliseconds(stated.device * sum(one.ms for one in hot.groups) / hot.calls)
            looped = " in the loop" if group.loop else ""
            many = f"{number(round(hot.calls))} operations of {each} each{looped}{where}"
            return f"{many} take {time}, dispatching included"
        case _:
            return f"{group.type}{where} takes {time}{_shown(hot, stated)}"


def _shown(hot: HotWork, stated: Stated) -> str:
    group = hot.groups[0]
    if hot.form is not None:
        return f"; {hot.form.because}"
    if hot.departure is Departure.CONSTANT:
        return ", and depends on no input and no variable"
    if hot.departure is Departure.PYTHON:
        return " with Python inside the step"
    return f"; its bytes and FLOPs need {milliseconds(stated.device * (group.least_ms or 0.0))}"


def necessary(groups: Iterable[OperationGroup], stated: Stated) -> str:
    """Say of the longest group how far it is from the hardware's rates: what shows that nothing is wrong."""
    longest = max(groups, key=lambda group: group.ms, default=None)
    if longest is None:
        return "No operation takes time that is not explained"
    where = f" at {location(longest.at)}" if longest.at else ""
    share = percent(stated.device * longest.ms / stated.step_ms)
    took = f"{longest.type}{where} takes {share} of the step"
    if longest.attained is not None:
        return f"{took} at {percent(longest.attained)} of what this hardware allows"
    return f"{took}, and nothing measured shows that less is possible"


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
