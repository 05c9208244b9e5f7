"""The host's work for single operations of a CPU: starting them, and handing on and freeing their tensors."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Effect, Stage, StepWork

# Share of an operation's time that is left, up to which a change removes it rather than makes it faster: a smaller
# operation is started and its tensors are freed as before.
REMOVED = 0.05


@dataclass(frozen=True, slots=True)
class DispatchShares:
    """The time of all operations of a step in ms, and each one's share of their calls, 0 to 1, by its name.

    The trace does not show which operation the host works for. It is assumed to be in proportion to their time,
    as allocating and freeing tensors is; for an upper bound also in proportion to their number, if that is more.
    """

    total_ms: float
    calls: Mapping[str, float]

    @classmethod
    def measure(cls, operations: Operations, device: Device) -> Self:
        """Add up the operations of the step.

        Raises:
            Unavailable: an accelerator computes: the host launches its operations ahead of it.
        """
        if device.kind != DeviceKind.CPU:
            raise Unavailable("the host launches the device's operations while it computes")
        total_ms = sum(row.ms for row in operations.rows)
        number = sum(row.calls for row in operations.rows)
        if not total_ms or not number:
            raise Unavailable("no operation of the step was recorded with its time")
        calls: defaultdict[str, float] = defaultdict(float)
        for row in operations.rows:
            calls[row.name] += row.calls / number
        return cls(total_ms, dict(calls))

    def left(self, effects: Iterable[Effect]) -> float:
        """Return the share of the host's time that is left after effects on operations, 0 to 1.

        Work that Python starts itself (StepWork) is the host's already.
        """
        subjects: defaultdict[str, list[Effect]] = defaultdict(list)
        for effect in effects:
            if effect.stage is Stage.DEVICE and effect.of and effect.subject not in {"", *StepWork}:
                subjects[effect.subject].append(effect)
        time = calls = 0.0
        for name, own in subjects.items():
            scales = min(effect.scales for effect in own)
            bounds = any(effect.bound is Bound.AT_MOST for effect in own)
            if bounds or scales <= REMOVED:
                taken = max(effect.of.value for effect in own if effect.of)
                time += (1.0 - scales) * taken / self.total_ms
            if bounds:
                calls += (1.0 - scales) * self.calls.get(name, 0.0)
        return min(1.0, max(0.0, 1.0 - max(time, calls)))
