"""Collects the calls of tf.data's iterators, thread by thread, into one node for each stage."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.input.iterator_node import Node
from tfdoctor.facts.steps.steps import StepSpans
from tfdoctor.facts.timeline.host_events import executors, operation_label
from tfdoctor.trace import Event, Intervals, Line
from tfdoctor.trace.names import CAPTURED_FUNCTION, EXECUTOR, EXECUTOR_DONE, ITERATOR, PRODUCE

PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
"""Types of operations that call back into the Python interpreter."""


READING = re.compile(r"ReadFile")
"""The operation that reads a whole file."""


IMAGES = re.compile(r"Decode(?:Image|Jpeg|Png|Bmp|Gif|WebP|AndCropJpeg)|Resize\w+|CropAndResize")
"""Types of operations whose cost grows with the size of the stored image."""


MANY = re.compile(r"(?<!Zip)(?<!Concatenate)\[\d+\]")
"""The index of an upstream iterator per element or repetition; all of them are one node."""


REPETITION = re.compile(r"Repeat\[(\d+)\]")
"""The index that a repeat() gives to its source's iterator: how many passes were completed before."""


@dataclass(slots=True)
class Frame:
    """An event that contains the current one while a thread's events are traversed."""

    event: Event
    node: Node | None = None
    owner: str = ""  # of an XProduce: the path of the stage X


class CallCollector:
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
        path, repetition = _path_of(event.name)
        node = self.nodes.setdefault(path, Node(path))
        node.repetition = max(node.repetition, repetition)
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


@lru_cache(maxsize=4096)
def _path_of(name: str) -> tuple[str, int]:
    """Return the node's path of an iterator's name, and the passes that its repeat() had completed."""
    path = MANY.sub("", name.removeprefix(ITERATOR))
    return path, max(map(int, REPETITION.findall(name)), default=0)


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
    return chosen_events(line, np.array(wanted, dtype=bool), window)


def chosen_events(line: Line, kinds: NDArray[np.bool_], window: StepSpans) -> Iterator[Event]:
    """Return the events of these kinds, (number of kinds,), that begin within the steps."""
    if not len(line) or not kinds.any():
        return iter(())
    chosen = kinds[line.kind] & window.holds(line.start_ps)
    return (line.event(int(index)) for index in np.flatnonzero(chosen))


def add_functions(line: Line, owners: dict[int, Node]) -> None:
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
    for node, duration in _inside(line, owners, IMAGES):
        node.image_ps += duration
    _add_times(line, owners)


def _add_times(line: Line, owners: dict[int, Node]) -> None:
    """Add the time of each operation on this thread to the stage whose function runs it, by its name."""
    starts, ends, ids = executors(line)
    labels = [operation_label(kind) for kind in line.types] if len(starts) else []
    chosen = np.flatnonzero(
        np.array([bool(label) for label in labels])[line.kind] if labels else ()
    )
    at = np.searchsorted(starts, line.start_ps[chosen], side="right") - 1
    owned = np.array([run in owners for run in ids], dtype=bool)
    inside = (
        (at >= 0) & (line.start_ps[chosen] < ends[at]) & owned[at] if len(at) else at.astype(bool)
    )
    for event, stretch in zip(chosen[inside].tolist(), at[inside].tolist(), strict=True):
        label, times = labels[line.kind[event]], owners[ids[stretch]].operations
        if label:
            times[label[0]] = times.get(label[0], 0) + int(line.duration_ps[event])


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
