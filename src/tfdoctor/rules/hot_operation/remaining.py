"""What findings leave of the operations, and the calls of layers that made it."""

from collections import defaultdict
from dataclasses import replace

from tfdoctor.facts.savings.layer_calls import LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.rules.hot_operation.hot_work import HotWork


def without(group: OperationGroup, unexplained: Unexplained) -> OperationGroup | None:
    """Return a group without the operations that findings are about; None where none is left."""
    named = unexplained.subjects
    rows = tuple(row for row in group.rows if row.name not in named and row.layer not in named)
    if len(rows) == len(group.rows):
        return group
    part = sum(row.ms for row in rows) / group.ms if group.ms else 0.0
    least = None if group.least_ms is None else group.least_ms * part
    return replace(group, rows=rows, least_ms=least) if rows else None


def called(hot: HotWork, calls: LayerCalls | None) -> HotWork:
    """Add the calls of the layers that made the work, those of most time first.

    Only calls that ran operations count: the body of a loop is a scope of its own, and no call.
    """
    times: dict[str, float] = defaultdict(float)
    for group in hot.groups:
        for row in group.rows:
            times[row.layer] += row.ms
    names = sorted(filter(None, times), key=lambda name: -times[name])
    found = [layer for name in names if (layer := calls.of(name))] if calls else []
    ran = [replace(one, calls=tuple(c for c in one.calls if c.operations)) for one in found]
    return replace(hot, layers=tuple(layer for layer in ran if len(layer.calls) > 1))
