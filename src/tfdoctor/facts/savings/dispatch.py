"""The host's time to dispatch operations, divided among them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.savings.operation_groups import OperationGroup, OperationGroups, loop_of
from tfdoctor.facts.savings.unexplained import Unexplained
from tfdoctor.facts.step_time.host_lines import HostLines
from tfdoctor.terms.verdict import Stage, StepWork


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The host's time per call of an operation between the operations of functions, in ms.

    An iteration of a loop waits for the one before it, so that the executor's time in loops is that of their
    operations only: an optimizer's operations have no part in it.
    """

    in_loops_ms: float = 0.0
    outside_ms: float = 0.0

    @classmethod
    def measure(cls, operations: OperationGroups, lines: HostLines | None, loops: LoopWork | None) -> Self:
        """Divide it among all operations of the step."""
        return cls.of(operations.groups, lines, loops)

    @classmethod
    def of(cls, groups: Iterable[OperationGroup], lines: HostLines | None, loops: LoopWork | None) -> Self:
        """Divide it by the executor's time in loops, then by the calls of all operations."""
        total_ms = lines.dispatching_ms if lines else 0.0
        calls = dict.fromkeys((True, False), 0.0)
        for group in groups:
            calls[bool(group.loop)] += group.calls
        number_of = sum(calls.values())
        if not number_of or not total_ms:
            return cls()
        if loops is None or not calls[True]:
            return cls(total_ms / number_of, total_ms / number_of)
        looped_ms = min(total_ms, loops.scheduling_ms)
        outside_ms = (total_ms - looped_ms) / calls[False] if calls[False] else 0.0
        return cls(looped_ms / calls[True], outside_ms)

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
