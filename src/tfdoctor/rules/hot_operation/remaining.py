"""What findings leave of the operations, and the calls of layers that made it."""

from collections import defaultdict
from dataclasses import replace

from tfdoctor.facts.savings.layer_calls import CalledLayer, LayerCalls
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
    """Add the calls of the layers that made the work, those of most time first."""
    times: dict[str, float] = defaultdict(float)
    for group in hot.groups:
        for row in group.rows:
            times[row.layer] += row.ms
    names = sorted(times, key=lambda name: -times[name])
    found = (calls.of(name) for name in names if name) if calls else ()
    return replace(
        hot, layers=tuple(_that_ran(layer) for layer in found if layer and _runs(layer) > 1)
    )


def _runs(layer: CalledLayer) -> int:
    """Return how many calls of a layer ran operations: the body of a loop is a scope of its own, and no call."""
    return sum(bool(call.operations) for call in layer.calls)


def _that_ran(layer: CalledLayer) -> CalledLayer:
    return replace(layer, calls=tuple(call for call in layer.calls if call.operations))
