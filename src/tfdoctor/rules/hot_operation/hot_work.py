"""What a line makes the device do, what of it findings leave, and its times as a report states them."""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Self

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.savings.layer_calls import CalledLayer
from tfdoctor.facts.savings.operation_groups import OperationGroup
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.hot_operation.cheaper_forms import CheaperForm
from tfdoctor.terms.verdict import Location, Stage


class Departure(Enum):
    """What was measured that shows that less time is possible."""

    METRICS = auto()  # no gradient uses the results
    CONSTANT = auto()  # the results are the same in every step
    REPEATED = auto()  # a layer computes again what an earlier call did
    CHEAPER = auto()  # the same can be computed in a cheaper form
    PYTHON = auto()  # it runs Python
    FAR = auto()  # its bytes and FLOPs need much less time at the rates of the hardware
    SHORT = auto()  # many operations of a few microseconds on a line of the user's


AVOIDABLE = (Departure.METRICS, Departure.CONSTANT, Departure.REPEATED)
"""The training does not need such work in every step."""


@dataclass(frozen=True, slots=True)
class HotWork:
    """What one line makes the device do that takes more time than it has to; ms per step."""

    at: Location | None
    groups: tuple[OperationGroup, ...]
    departure: Departure
    device_ms: float = 0.0
    host_ms: float = 0.0  # to dispatch short ones, where nothing else explains it
    form: CheaperForm | None = None
    layers: tuple[CalledLayer, ...] = ()  # that compute the same again

    @property
    def ms(self) -> float:
        """The time of the device and the host."""
        return self.device_ms + self.host_ms

    @property
    def calls(self) -> float:
        """The calls per step."""
        return sum(group.calls for group in self.groups)

    @property
    def avoidable(self) -> bool:
        """Whether the training does not need it in every step."""
        return self.departure in AVOIDABLE

    @property
    def ceiling_ms(self) -> float:
        """The time above the least, as far as that is known."""
        if self.form is not None:
            return self.device_ms * (1.0 - self.form.left)
        if self.departure is not Departure.FAR:
            return self.ms
        return sum(group.ms * (1.0 - (group.attained or 0.0)) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Least:
    """The shortest times, in ms per step, from which work is named."""

    ms: float
    avoidable_ms: float
    step_ms: float

    @classmethod
    def of_step(cls, step_ms: float, share: float, avoidable_share: float, least_ms: float = 0.0) -> Self:
        """Take shares of a step, and a time that none falls below."""
        shares = (share * step_ms, avoidable_share * step_ms)
        return cls(max(least_ms, shares[0]), max(least_ms, shares[1]), step_ms)

    def of(self, hot: HotWork) -> float:
        """Return the shortest time of such work."""
        if hot.form is not None and hot.form.least_share:
            return hot.form.least_share * self.step_ms
        return self.avoidable_ms if hot.avoidable else self.ms


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


def without(group: OperationGroup, names: frozenset[str]) -> OperationGroup | None:
    """Return a group without the operations and layers of these names; None where none is left."""
    rows = tuple(row for row in group.rows if names.isdisjoint((row.name, row.layer)))
    return part_of(group, rows)


def part_of(group: OperationGroup, rows: tuple[OperationTime, ...]) -> OperationGroup | None:
    """Return a group of some of a group's operations; None of none."""
    if len(rows) == len(group.rows):
        return group
    part = sum(row.ms for row in rows) / group.ms if group.ms else 0.0
    least = None if group.least_ms is None else group.least_ms * part
    return replace(group, rows=rows, least_ms=least) if rows else None
