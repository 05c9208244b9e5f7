"""When the functions of tf.data's stages ran, and what their operations did."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.timeline.host_events import executors, operation_label
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.facts.timeline.nesting import joined
from tfdoctor.trace import EventType, Line
from tfdoctor.trace.names import EXECUTOR, EXECUTOR_DONE

PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
"""Types of operations that call back into the Python interpreter."""

READING = re.compile(r"ReadFile")
"""The operation that reads a whole file."""

IMAGES = re.compile(r"Decode(?:Image|Jpeg|Png|Bmp|Gif|WebP|AndCropJpeg)|Resize\w+|CropAndResize")
"""Types of operations whose cost grows with the size of the stored image."""


@dataclass(frozen=True, slots=True, eq=False)
class _Owners:
    """The stages whose functions the executions are."""

    runs: NDArray[np.uint64]  # (n,), sorted
    nodes: tuple[Node, ...]  # each once
    node: NDArray[np.intp]  # (n,), in nodes

    @classmethod
    def of(cls, owners: Mapping[int, Node]) -> Self:
        runs, nodes = sorted(owners), {id(node): node for node in owners.values()}
        places = {number: at for at, number in enumerate(nodes)}
        node = [places[id(owners[run])] for run in runs]
        return cls(np.array(runs, np.uint64), tuple(nodes.values()), np.array(node, np.intp))

    def at(self, runs: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the positions of (m,) executions; -1 for those of others."""
        at = self.runs.searchsorted(runs)
        known = np.append(self.runs, np.uint64(0))[at] == runs
        return np.where(known & (at < len(self.runs)), at, -1)


def add_functions(lines: Sequence[Line], owners: Mapping[int, Node]) -> None:
    """Give each stage the times in which its function, with its completion, ran on the threads of the host."""
    if not owners:
        return
    known = _Owners.of(owners)
    _add_times(lines, known)
    for line in lines:
        _add_operations(line, known)


def _add_times(lines: Sequence[Line], owners: _Owners) -> None:
    """Add the stretches of executors; those of one execution on one thread may overlap."""
    parts = [np.zeros((3, 0), np.int64)]
    for number, line in enumerate(lines):
        for name in (EXECUTOR, EXECUTOR_DONE):
            starts, ends, runs = executors(line, name)
            at = owners.at(runs)
            own = at >= 0
            group = at[own] + number * len(owners.runs)  # by thread, then by execution
            parts.append(np.stack((group, starts[own], ends[own])))
    groups, starts, ends = joined(*np.concatenate(parts, axis=1))
    node = owners.node[groups % len(owners.runs)]
    for place in np.unique(node).tolist():
        mine = node == place
        spans = zip(starts[mine].tolist(), ends[mine].tolist(), strict=True)
        owners.nodes[place].function.extend(spans)


def _add_operations(line: Line, owners: _Owners) -> None:
    starts, ends, runs = executors(line)
    if not len(starts):
        return
    chosen = np.flatnonzero(line.table.passing(_matters)[line.kind])
    at = np.searchsorted(starts, line.start_ps[chosen], side="right") - 1
    owner = np.where((at >= 0) & (line.start_ps[chosen] < ends[at]), owners.at(runs)[at], -1)
    events, node = chosen[owner >= 0], owners.node[owner[owner >= 0]]
    if not len(events):
        return
    key = node * len(line.types) + line.kind[events]
    keys, first, which = np.unique(key, return_index=True, return_inverse=True)
    times, counts = np.zeros((2, len(keys)), np.int64)
    np.add.at(times, which, line.duration_ps[events])
    np.add.at(counts, which, 1)
    order = first.argsort()  # as they ran
    columns = (keys[order].tolist(), times[order].tolist(), counts[order].tolist())
    for place, time, count in zip(*columns, strict=True):
        at_node, kind = divmod(place, len(line.types))
        _work(line.types[kind]).add_to(owners.nodes[at_node], time, count)


class _Work(NamedTuple):
    """What an operation of a stage's function does."""

    name: str
    python: bool
    reading: bool
    images: bool

    def add_to(self, node: Node, time_ps: int, count: int) -> None:
        """Add the time of so many runs."""
        if self.name:
            node.operations[self.name] = node.operations.get(self.name, 0) + time_ps
        if self.python:
            node.python_ps += time_ps
        if self.reading:
            node.reading_ps += time_ps
            node.reads += count
        if self.images:
            node.image_ps += time_ps


def _matters(kind: EventType) -> bool:
    return any(_work(kind))


def _work(kind: EventType) -> _Work:
    label, does = operation_label(kind), (PYTHON, READING, IMAGES)
    python, reading, images = (bool(types.fullmatch(kind.display_name)) for types in does)
    return _Work(label[0] if label else "", python, reading, images)
