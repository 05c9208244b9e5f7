"""The iterators of tf.data in the trace, one node for each stage of the pipeline.

A trace holds an event for each call of an iterator's GetNext. Events nest on a thread; where a stage
makes its elements on another thread, an ``XProduce`` event there contains the upstream calls, and the
user's function runs in executor events with the id of its ``InstantiatedCapturedFunction``.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.iterator_node import Node
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.steps.steps import PS_PER_MS, Steps, StepSpans
from tfdoctor.facts.timeline.activity import executors
from tfdoctor.trace import Event, Intervals, Line, Trace
from tfdoctor.trace.names import CAPTURED_FUNCTION, EXECUTOR, EXECUTOR_DONE, ITERATOR, PRODUCE, WAIT

ROOT = re.compile(r"Iterator::\w+")
"""The iterator that the trainer calls; those that it calls in turn have longer names."""

PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
"""Types of operations that call back into the Python interpreter."""

READING = re.compile(r"ReadFile")
"""The operation that reads a whole file."""

MANY = re.compile(r"(?<!Zip)(?<!Concatenate)\[\d+\]")
"""The index of an upstream iterator per element or repetition; all of them are one node."""

NUMBERED = re.compile(r"\w+:\d+")
"""tf.data's name of a dataset, alone or in "fused(...)"."""


@dataclass(slots=True)
class Frame:
    """An event that contains the current one while a thread's events are traversed."""

    event: Event
    node: Node | None = None
    owner: str = ""  # of an XProduce: the path of the stage X


@dataclass(frozen=True, slots=True, eq=False)
class Iterators:
    """The training pipeline's nodes by path, and the wait for each batch in ms, by root id."""

    nodes: dict[str, Node]
    waits_ms: dict[int, list[float]]

    @property
    def batches(self) -> int:
        """How many batches the training loop took."""
        return sum(map(len, self.waits_ms.values()))

    @property
    def remade(self) -> bool:
        """Whether several datasets of the same form fed the steps, such as one rebuilt in each epoch."""
        numbered = (NUMBERED.findall(node.name) for node in self.nodes.values())
        nearest: list[str] = next(filter(None, numbered), [])
        kinds = [name.partition(":")[0] for name in dict.fromkeys(nearest)]
        return len(kinds) > len(set(kinds))

    @classmethod
    def measure(cls, trace: Trace, framework: Framework, steps: Steps | Unavailable) -> Self:
        """Collect the iterators that ran between the first and the last step.

        Raises:
            Unavailable: no tf.data iterator ran.
        """
        if framework.no_pipeline:
            raise Unavailable(framework.no_pipeline)
        if isinstance(steps, Unavailable):
            raise steps
        window = StepSpans.of(steps)
        lines = trace.host.lines if trace.host else ()
        roots = _training_roots(lines, window)
        walk = _CallCollector(_members(lines, set(roots)))
        for line in lines:
            walk.line(line, window)
        for line in lines:
            _add_functions(line, walk.owners)
        if not walk.nodes:
            raise Unavailable(_why(framework, waited=any(map(_has_waits, lines))))
        return cls(dict(sorted(walk.nodes.items())), roots)


def _training_roots(lines: Iterable[Line], window: StepSpans) -> dict[int, list[float]]:
    """Return the pipelines that feed the training step, and the ms of each call: {root id: [ms]}.

    The first batch that a step requests is its own; a later one may belong to a validation that runs
    before the next step. (Ids are reused, so outlier steps, in which that happens, are left out.)
    """
    calls = sorted(
        (event.start_ps, event.duration_ps, int(event.stats.get("id", 0)))
        for line in lines
        for event in _roots(line, window)
    )
    starts = np.array([start for start, _, _ in calls])
    first = np.searchsorted(starts, window.starts_ps)
    training = {calls[at][2] for at in first if at < len(calls)}
    waits_ms: dict[int, list[float]] = {}
    for _, duration, root in calls:
        if root in training:
            waits_ms.setdefault(root, []).append(duration / PS_PER_MS)
    return waits_ms


def _members(lines: Iterable[Line], roots: set[int]) -> set[int]:
    """Return the ids of all iterators upstream of these roots."""
    parents = {
        int(stats["id"]): int(stats["parent_id"])
        for line in lines
        for stats in line.stats.values()
        if "parent_id" in stats and "id" in stats
    }
    return roots | {iterator for iterator in parents if _top(iterator, parents) in roots}


def _top(iterator: int, parents: dict[int, int]) -> int:
    seen = {iterator}
    while (parent := parents.get(iterator)) is not None and parent not in seen:
        seen.add(parent)
        iterator = parent
    return iterator


def _why(framework: Framework, *, waited: bool) -> str:
    if waited:
        return (
            "the trainer waited for batches, but no iterator finished a call in the traced window; trace "
            "more steps (--steps)"
        )
    if framework.tf_data:
        return (
            "the trace holds iterators of tf.data, but none that passes a batch to a training step; trace more "
            "steps"
        )
    return "the trace holds no tf.data iterator, so the batches come from elsewhere"


class _CallCollector:
    """Adds the calls of each thread to the nodes."""

    def __init__(self, members: set[int]) -> None:
        self.members = members
        self.nodes: dict[str, Node] = {}
        self.owners: dict[int, Node] = {}  # by the id of a captured function's execution

    def line(self, line: Line, window: StepSpans) -> None:
        """Traverse a thread's events with a stack of the containing ones."""
        stack: list[Frame] = []
        for event in _relevant(line, window):
            while stack and stack[-1].event.end_ps <= event.start_ps:
                stack.pop()
            frame = Frame(event)
            if event.name.startswith(ITERATOR) and int(event.stats.get("id", 0)) in self.members:
                frame.node = self._call(event, stack)
            elif event.name.startswith(CAPTURED_FUNCTION):
                self._own(event, stack)
            stack.append(frame)

    def _call(self, event: Event, stack: list[Frame]) -> Node:
        path = MANY.sub("", event.name.removeprefix(ITERATOR))
        node = self.nodes.setdefault(path, Node(path))
        name = str(event.stats.get("name") or "")
        if name and name not in node.names:
            node.names.append(name)
        node.parallelism = _integer(event.stats.get("parallelism"), node.parallelism)
        node.called.append((event.start_ps, event.end_ps))
        node.self_ps += event.duration_ps
        above = _holder(stack)
        if above is not None and above.node is not None:
            above.node.self_ps -= event.duration_ps
        elif above is not None:
            above.owner = node.parent
        return node

    def _own(self, event: Event, stack: list[Frame]) -> None:
        holder = _holder(stack)
        if holder is None or "id" not in event.stats:
            return
        path = holder.node.path if holder.node else holder.owner
        if path:
            self.owners[int(event.stats["id"])] = self.nodes.setdefault(path, Node(path))


def _integer(value: object, default: int | None) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() else default


def _holder(stack: list[Frame]) -> Frame | None:
    """Return the innermost iterator call or ``XProduce`` on the stack."""
    for frame in reversed(stack):
        if frame.node is not None or PRODUCE.fullmatch(frame.event.name):
            return frame
    return None


def _relevant(line: Line, window: StepSpans) -> Iterator[Event]:
    wanted = [
        name.startswith((ITERATOR, CAPTURED_FUNCTION)) or bool(PRODUCE.fullmatch(name))
        for name in (kind.name for kind in line.types)
    ]
    return _chosen(line, np.array(wanted, dtype=bool), window)


def _roots(line: Line, window: StepSpans) -> Iterator[Event]:
    wanted = [bool(ROOT.fullmatch(kind.name)) for kind in line.types]
    return _chosen(line, np.array(wanted, dtype=bool), window)


def _has_waits(line: Line) -> bool:
    return any(WAIT.fullmatch(line.types[kind].name) for kind in np.unique(line.kind))


def _chosen(line: Line, kinds: NDArray[np.bool_], window: StepSpans) -> Iterator[Event]:
    if not len(line) or not kinds.any():
        return iter(())
    chosen = kinds[line.kind] & window.holds(line.start_ps)
    return (line.event(int(index)) for index in np.flatnonzero(chosen))


def _add_functions(line: Line, owners: dict[int, Node]) -> None:
    """Give each stage the times in which its function, with its completion, ran on this thread."""
    stretches: dict[int, list[tuple[int, int]]] = {}
    for name in (EXECUTOR, EXECUTOR_DONE):
        starts, ends, ids = executors(line, name)
        for start, end, run in zip(starts.tolist(), ends.tolist(), ids, strict=True):
            if run in owners:
                stretches.setdefault(run, []).append((start, end))
    for run, spans in stretches.items():
        owners[run].function.extend(Intervals.union(spans).spans)
    _add_operations(line, owners)


def _add_operations(line: Line, owners: dict[int, Node]) -> None:
    for node, duration in _inside(line, owners, PYTHON):
        node.python_ps += duration
    for node, duration in _inside(line, owners, READING):
        node.reading_ps += duration
        node.reads += 1


def _inside(
    line: Line, owners: dict[int, Node], types: re.Pattern[str]
) -> Iterator[tuple[Node, int]]:
    """Yield (stage, duration) of each operation of these types in the stages' functions."""
    calls = list(_calls(line, types))
    starts, ends, ids = executors(line) if calls else ((), (), ())
    for start, end in calls:
        at = int(np.searchsorted(starts, start, side="right")) - 1
        if at >= 0 and ids[at] in owners and start < ends[at]:
            yield owners[ids[at]], end - start


def _calls(line: Line, types: re.Pattern[str]) -> Iterable[tuple[int, int]]:
    kinds = [i for i, kind in enumerate(line.types) if types.fullmatch(kind.display_name)]
    chosen = np.isin(line.kind, kinds)
    starts = line.start_ps[chosen]
    return zip(starts.tolist(), (starts + line.duration_ps[chosen]).tolist(), strict=True)
