"""Collects the calls of tf.data's iterators, thread by thread, into one node for each stage."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.input.iterator_node import Node
from tfdoctor.facts.steps.steps import StepSpans
from tfdoctor.facts.timeline.host_events import executors, operation_label
from tfdoctor.facts.timeline.trainer import is_named, present
from tfdoctor.trace import EventType, Intervals, Line
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


class Role(NamedTuple):
    """What the events of a type are to a pipeline."""

    call: bool = False  # of an iterator
    captured: bool = False  # a function that tf.data runs
    produces: bool = False  # an element on the stage's own thread
    path: str = ""  # of the iterator's node
    repetition: int = 0  # how many passes its repeat() had completed


@dataclass(slots=True)
class Frame:
    """An event that contains the current one while a thread's events are traversed."""

    role: Role
    start_ps: int
    end_ps: int
    id: int  # 0: none
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
        events = _relevant(line, window)
        for frame in _frames(line, events):
            while stack and stack[-1].end_ps <= frame.start_ps:
                stack.pop()
            if frame.role.call and frame.id in self.members:
                frame.node = self._call(frame, stack)
            elif frame.role.captured:
                self._own(frame, stack)
            stack.append(frame)
        self._describe(line, events)

    def _call(self, frame: Frame, stack: list[Frame]) -> Node:
        node = self.nodes.setdefault(frame.role.path, Node(frame.role.path))
        node.repetition = max(node.repetition, frame.role.repetition)
        duration = frame.end_ps - frame.start_ps
        node.called.append((frame.start_ps, frame.end_ps))
        node.self_ps += duration
        above = _holder(stack)
        if above is not None and above.node is not None:
            above.node.self_ps -= duration
        elif above is not None:
            above.owner = node.parent
        return node

    def _own(self, frame: Frame, stack: list[Frame]) -> None:
        holder = _holder(stack)
        if holder is None or not frame.id:
            return
        path = holder.node.path if holder.node else holder.owner
        if path:
            self.owners[frame.id] = self.nodes.setdefault(path, Node(path))

    def _describe(self, line: Line, events: NDArray[np.intp]) -> None:
        """Add what calls say of their stages: names, and the parallelism at last."""
        of_members = np.isin(line.stats.ids_of("id", events), np.array([*self.members], np.uint64))
        calls = set(events[of_members].tolist())
        for stat in ("name", "parallelism"):
            for event, value in zip(*line.stats.values(stat), strict=True):
                node = self.nodes.get(_role(line.types[line.kind[event]].name).path)
                if node is None or event not in calls:
                    continue
                if stat == "parallelism":
                    node.parallelism = _integer(value, node.parallelism)
                elif value and str(value) not in node.names:
                    node.names.append(str(value))


@lru_cache(maxsize=65536)
def _role(name: str) -> Role:
    """Return what the events of a name are."""
    if name.startswith(ITERATOR):
        path = MANY.sub("", name.removeprefix(ITERATOR))
        passes = max(map(int, REPETITION.findall(name)), default=0)
        return Role(call=True, path=path, repetition=passes)
    return Role(captured=name.startswith(CAPTURED_FUNCTION), produces=bool(PRODUCE.fullmatch(name)))


def _frames(line: Line, events: NDArray[np.intp]) -> Iterator[Frame]:
    """Yield (n,) events as frames, in order."""
    kinds, starts = line.kind[events].tolist(), line.start_ps[events]
    roles = {kind: _role(line.types[kind].name) for kind in set(kinds)}
    ends, ids = starts + line.duration_ps[events], line.stats.ids_of("id", events)
    columns = (kinds, starts.tolist(), ends.tolist(), ids.tolist())
    for kind, start, end, number in zip(*columns, strict=True):
        yield Frame(roles[kind], start, end, number)


def _integer(value: object, default: int | None) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() else default


def _holder(stack: list[Frame]) -> Frame | None:
    """Return the innermost iterator call or ``XProduce`` on the stack."""
    for frame in reversed(stack):
        if frame.node is not None or frame.role.produces:
            return frame
    return None


def _relevant(line: Line, window: StepSpans) -> NDArray[np.intp]:
    return chosen_events(line, lambda name: any(_role(name)[:3]), window)


def chosen_events(line: Line, test: Callable[[str], object], window: StepSpans) -> NDArray[np.intp]:
    """Return the (n,) events whose names pass a test and that begin within the steps."""
    events = np.flatnonzero(is_named(line, test))
    return events[window.holds(line.start_ps[events])]


def add_functions(line: Line, owners: dict[int, Node]) -> None:
    """Give each stage the times in which its function, with its completion, ran on this thread."""
    stretches: dict[int, list[tuple[int, int]]] = {}
    for name in (EXECUTOR, EXECUTOR_DONE):
        starts, ends, ids = executors(line, name)
        own = np.isin(ids, np.array([*owners], np.uint64))
        columns = (starts[own].tolist(), ends[own].tolist(), ids[own].tolist())
        for start, end, run in zip(*columns, strict=True):
            stretches.setdefault(run, []).append((start, end))
    for run, spans in stretches.items():
        owners[run].function.extend(Intervals.union(spans).spans if len(spans) > 1 else spans)
    _add_operations(line, owners)


def _add_operations(line: Line, owners: dict[int, Node]) -> None:
    starts, ends, ids = executors(line)
    works = {kind: _work(line.types[kind]) for kind in (present(line) if len(starts) else ())}
    chosen = np.flatnonzero(np.isin(line.kind, [kind for kind, work in works.items() if any(work)]))
    if not len(chosen):
        return
    at = np.searchsorted(starts, line.start_ps[chosen], side="right") - 1
    owned = np.isin(ids, np.array([*owners], np.uint64))
    inside = (at >= 0) & (line.start_ps[chosen] < ends[at]) & owned[at]
    events, runs = chosen[inside], ids[at[inside]]
    columns = (line.kind[events].tolist(), runs.tolist(), line.duration_ps[events].tolist())
    for kind, run, duration in zip(*columns, strict=True):
        works[kind].add_to(owners[run], duration)


class _Work(NamedTuple):
    """What an operation of a stage's function does."""

    name: str
    python: bool
    reading: bool
    images: bool

    def add_to(self, node: Node, duration_ps: int) -> None:
        if self.name:
            node.operations[self.name] = node.operations.get(self.name, 0) + duration_ps
        if self.python:
            node.python_ps += duration_ps
        if self.reading:
            node.reading_ps += duration_ps
            node.reads += 1
        if self.images:
            node.image_ps += duration_ps


def _work(kind: EventType) -> _Work:
    label, does = operation_label(kind), (PYTHON, READING, IMAGES)
    python, reading, images = (bool(types.fullmatch(kind.display_name)) for types in does)
    return _Work(label[0] if label else "", python, reading, images)
