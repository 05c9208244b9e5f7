"""Loops inside the step's graph: their iterations, and the time that they take outside of operations."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import spans_of
from tfdoctor.kinds import DeviceKind
from tfdoctor.trace import Intervals, Line, Trace
from tfdoctor.trace.names import EXECUTOR, FRAME, INPUT_THREAD
from tfdoctor.verdict import Stage

BACKWARD = "gradient_tape/"
"""The scope of a backward pass; the loop of a gradient is named after the loop that it goes back through."""


@dataclass(frozen=True, slots=True)
class GraphLoop:
    """A ``while`` of the graph with its gradient's; numbers and ms per training step."""

    name: str  # its scope, such as "sequential/lstm/while"
    iterations: float  # of the forward or of the backward loop
    operations: float  # recorded; TensorFlow does not record all of the cheap ones
    ms: float  # of these operations
    rows: tuple[OperationTime, ...] = ()  # these operations


@dataclass(frozen=True, slots=True)
class LoopWork:
    """The loops, longest first, and what the executor's threads do in their iterations, in ms per training step.

    ``scheduling_ms`` is the exposed time in which the executor works on iterations while no recorded operation
    runs: it starts operations, passes their tensors on, and runs those that are too cheap to be recorded.
    ``waiting_ms`` is all time without a recorded operation from the first to the last one of each loop: it
    includes ``scheduling_ms``, the first iterations and what the threads wait for each other.
    """

    loops: tuple[GraphLoop, ...]
    scheduling_ms: float = 0.0
    waiting_ms: float = 0.0

    @classmethod
    def measure(
        cls, trace: Trace, steps: Steps, activity: Activity, operations: Operations, device: Device
    ) -> Self:
        """Group the operations by the bodies of loops, and gather the executor's events of later iterations.

        Raises:
            Unavailable: the device is no CPU, or one call contains several steps, whose own loop looks the same.
        """
        if device.kind != DeviceKind.CPU:
            raise Unavailable("loops inside the step are measured on CPUs only")
        if activity.within_data or any(step.calls > 1 for step in steps.steps):
            raise Unavailable(
                "one call contains several steps, so the loop inside a step cannot be told apart"
            )
        iterating = Intervals()
        for line in trace.host_lines:
            if len(line) and not line.name.startswith(INPUT_THREAD):
                iterating |= _iterating(line)
        busy = activity.of(Stage.DEVICE) | activity.wait
        loops = sorted(_loops(operations), key=lambda loop: -loop.iterations)
        if not loops:
            return cls(())
        steady = SteadySteps.of(steps)
        scheduling = steady.ms(iterating - busy)
        waiting = steady.ms((_spans(trace, steady.stretches) | iterating) - busy)
        return cls(tuple(loops), scheduling, max(scheduling, waiting))

    @property
    def iterations(self) -> float:
        """The iterations of the longest loop."""
        return max((loop.iterations for loop in self.loops), default=0.0)


def _loops(operations: Operations) -> list[GraphLoop]:
    groups: dict[str, list[OperationTime]] = defaultdict(list)
    for row in operations.rows:
        frames = list(FRAME.finditer(row.name))
        if frames:
            groups[_scope(row.name[: frames[-1].start(2) - 1])].append(row)
    return [_loop(name, rows) for name, rows in groups.items()]


def _loop(name: str, rows: list[OperationTime]) -> GraphLoop:
    calls = [row.calls for row in rows]
    return GraphLoop(name, max(calls), sum(calls), sum(row.ms for row in rows), tuple(rows))


def _scope(frame: str) -> str:
    """Return the scope of a loop, or of the loop whose gradient this is ("a/while/a/while_grad": "a/while")."""
    scope = frame.rpartition(BACKWARD)[2]
    half = len(scope.removesuffix("_grad")) // 2
    return (
        scope[:half] if scope.endswith("_grad") and scope[:half] == scope[half + 1 : -5] else scope
    )


def _iterating(line: Line) -> Intervals:
    """Return when an executor's thread worked on any but the first iteration of a loop."""
    kinds = [kind for kind, name in enumerate(line.types) if name.name == EXECUTOR]
    places = np.flatnonzero(np.isin(line.kind, kinds)).tolist()
    mask = np.zeros(len(line), bool)
    mask[[place for place in places if line.stats.get(place, {}).get("iter_num")]] = True
    return spans_of(line, mask)


def _spans(trace: Trace, stretches: Iterable[tuple[int, int]]) -> Intervals:
    """Return when each loop ran: from the first to the last operation of its body, in each step."""
    events: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for line in trace.host_lines:
        if not line.name.startswith(INPUT_THREAD):
            for frame, mask in _by_frame(line).items():
                starts = line.start_ps[mask]
                ends = starts + line.duration_ps[mask]
                events[frame] += zip(starts.tolist(), ends.tolist(), strict=True)
    times = [np.array(sorted(found), np.int64) for found in events.values()]
    return Intervals.union(
        (int(inside[0, 0]), int(inside[:, 1].max()))
        for start, end in stretches
        for found in times
        if len(inside := found[(found[:, 0] >= start) & (found[:, 0] < end)])
    )


def _by_frame(line: Line) -> dict[str, NDArray[np.bool_]]:
    """Return (n,) which events of a line belong to each loop, by the loop's name."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for kind, name in enumerate(line.types):
        frames = list(FRAME.finditer(name.name))
        if frames:
            kinds[name.name[: frames[-1].start(2) - 1]].append(kind)
    return {frame: np.isin(line.kind, found) for frame, found in kinds.items()}
