"""What a line makes the device do, what of it findings leave, and its times as a report states them."""

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.operations.dependence import Source
from tfdoctor.facts.savings.layer_calls import CalledLayer, LayerCalls
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.terms.verdict import Location, Stage


@dataclass(frozen=True, slots=True)
class HotWork:
    """What one line makes the device do: one group of operations, or several together; ms per step."""

    at: Location | None
    groups: tuple[OperationGroup, ...]
    short: bool = False
    title: str = ""  # of several types together: "Operations of 12 types"; "" is one type
    device_ms: float = 0.0
    host_ms: float = 0.0  # to dispatch short ones, where nothing else explains it
    layers: tuple[CalledLayer, ...] = ()  # that made them, where a step calls these several times

    @property
    def ms(self) -> float:
        """The time of the device and the host."""
        return self.device_ms + self.host_ms

    @property
    def calls(self) -> float:
        """The calls per step."""
        return sum(group.calls for group in self.groups)

    @property
    def only_metrics(self) -> bool:
        """Whether no gradient uses any result."""
        return all(group.only_metrics for group in self.groups)

    @property
    def constant(self) -> bool:
        """Whether every result is the same in every step."""
        return all(group.inputs == frozenset() for group in self.groups)

    @property
    def avoidable(self) -> bool:
        """Whether the training does not need it in every step."""
        return self.only_metrics or self.constant

    @property
    def is_question(self) -> bool:
        """Whether only its time is known, and nothing says that less is possible."""
        if self.avoidable:
            return False
        first = self.groups[0]
        if self.short and not self.is_direct:
            return True
        unknown = first.attained is None and first.inputs != frozenset((Source.VARIABLES,))
        return bool(self.title) or (unknown and not self.short)

    @property
    def is_direct(self) -> bool:
        """Whether the user's lines call at least half of the operations, by their time, and no layer does."""
        rows = [row for group in self.groups for row in group.rows]
        chosen = sum(row.ms for row in rows if row.operation is None or row.operation.direct)
        return 2.0 * chosen >= sum(row.ms for row in rows)

    def ms_of(self, layer: CalledLayer) -> float:
        """The device's time of a layer's operations."""
        rows = (row for group in self.groups for row in group.rows)
        return sum(row.ms for row in rows if row.layer == layer.name)

    @property
    def repeated_ms(self) -> float:
        """The time of the layers' calls that compute again what an earlier one did, forward."""
        return sum(layer.repeated_ms for layer in self.layers)

    @property
    def ceiling_ms(self) -> float:
        """The time above the least."""
        return self.host_ms + sum(group.ms * (1.0 - scale_of(group)) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Least:
    """The shortest times, in ms per step, from which work is named."""

    ms: float
    avoidable_ms: float

    def of(self, hot: HotWork) -> float:
        """Return the shortest time of such work."""
        return self.avoidable_ms if hot.avoidable else self.ms


def scale_of(group: OperationGroup) -> float:
    """Return the share of its time that a group keeps at least, as far as is known."""
    if group.only_metrics or group.inputs == frozenset():
        return 0.0
    if group.attained is None and group.gflop_s and group.best_gflop_s:
        return min(1.0, group.gflop_s / group.best_gflop_s)
    return group.attained or 0.0


@dataclass(frozen=True, slots=True)
class Stated:
    """The step that times are of, and the shares of traced time, 0 to 1, that are not the profiler's.

    ``left_ms`` is what no specific finding names of the device's traced time: together, hot work takes no more.
    """

    step_ms: float
    each_step: str
    left_ms: float
    per_step: str = "per step"  # the end of a label of a time
    device: float = 1.0
    host: float = 1.0

    @classmethod
    def of(cls, model: StepModel | None, breakdown: Breakdown, unexplained: Unexplained) -> Self:
        """Take the step of the verdict and of all savings."""
        left_ms = unexplained.parts_ms.get(Stage.DEVICE, 0.0)
        if model is None or model.tracing is None:
            return cls(breakdown.step_ms, breakdown.each_step, left_ms)
        return cls(
            model.step_ms,
            "each untraced step",
            left_ms,
            "per untraced step",
            device=model.kept(Stage.DEVICE),
            host=model.kept(Stage.HOST),
        )

    def ms_of(self, *hot: HotWork) -> float:
        """Return the time of hot work, in ms per step."""
        device_ms = min(self.left_ms, sum(one.device_ms for one in hot))
        return self.device * device_ms + self.host * sum(one.host_ms for one in hot)


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
