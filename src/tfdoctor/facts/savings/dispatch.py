"""The host's time to dispatch operations: divided among them, and what of it goes with those that are removed."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.savings.given import Unexplained
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups, loop_of
from tfdoctor.facts.step_time.sampled_steps import HostLines
from tfdoctor.terms.verdict import StepWork

# Share of an operation's time that is left, up to which a change removes it rather than makes it faster: a smaller
# operation is started and its tensors are freed as before.
REMOVED = 0.05


class Dispatch(Record):
    """The host's time per call of an operation between the operations of functions, in ms.

    An iteration of a loop waits for the one before it, so that the executor's time in loops is that of their
    operations only: an optimizer's operations have no part in it.
    """

    in_loops_ms: float = 0.0
    outside_ms: float = 0.0

    @classmethod
    def measure(cls, operations: OperationGroups, lines: HostLines | None, loops: LoopWork | None) -> Self:
        """Divide it by the executor's time in loops, then by the calls of all operations of the step."""
        total_ms = lines.dispatching_ms if lines else 0.0
        inside = sum(group.calls for group in operations.groups if group.loop)
        outside = sum(group.calls for group in operations.groups if not group.loop)
        if not inside + outside or not total_ms:
            return cls()
        if loops is None or not inside:
            return cls(total_ms / (inside + outside), total_ms / (inside + outside))
        looped_ms = min(total_ms, loops.scheduling_ms)
        return cls(looped_ms / inside, (total_ms - looped_ms) / outside if outside else 0.0)

    def at_most(self, groups: Iterable[OperationGroup], unexplained: Unexplained) -> Self:
        """Limit what these groups get to what is unexplained."""
        if StepWork.LAUNCHING in unexplained.subjects:
            return replace(self, in_loops_ms=0.0, outside_ms=0.0)
        given = sum(map(self.of_group, groups))
        left = unexplained.parts_ms.get(Stage.HOST, 0.0)
        part = min(1.0, left / given) if given else 0.0
        return replace(self, in_loops_ms=part * self.in_loops_ms, outside_ms=part * self.outside_ms)

    def of_group(self, group: OperationGroup) -> float:
        """Return the ms per step to dispatch the operations of a group."""
        return group.calls * (self.in_loops_ms if group.loop else self.outside_ms)

    def of_row(self, row: OperationTime) -> float:
        """Return the ms per step to dispatch an operation."""
        return row.calls * (self.in_loops_ms if loop_of(row.name) else self.outside_ms)


class DispatchShares(Record):
    """The time of all operations of a CPU's step in ms, and each one's share of their calls, 0 to 1, by its name.

    The trace does not show which operation the host works for: starting it, handing on and freeing its tensors. It
    is assumed to be in proportion to their time, as allocating and freeing tensors is; for an upper bound also in
    proportion to their number, if that is more.
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
        number = sum(row.calls for row in operations.rows)
        if not operations.total_ms or not number:
            raise Unavailable("no operation of the step was recorded with its time")
        return cls(operations.total_ms, summed((row.name, row.calls / number) for row in operations.rows))

    def left(self, effects: Iterable[Effect]) -> float:
        """Return the share of the host's time that is left after effects on operations, 0 to 1.

        Work that Python starts itself (StepWork) is the host's already.
        """
        on_device = (one for one in effects if one.stage is Stage.DEVICE and one.of)
        subjects = by_key((one.subject, one) for one in on_device if one.subject not in {"", *StepWork})
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
