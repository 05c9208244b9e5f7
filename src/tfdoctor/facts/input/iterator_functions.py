"""When the functions of tf.data's stages ran, and what their operations did."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.timeline.host_events import executors, joined, operation_label
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.trace import EventType, Line
from tfdoctor.trace.names import EXECUTOR, EXECUTOR_DONE

# Types of operations that call back into the Python interpreter.
PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
READING = re.compile(r"ReadFile")  # The operation that reads a whole file
# Types of operations whose cost grows with the size of the stored image.
IMAGES = re.compile(r"Decode(?:Image|Jpeg|Png|Bmp|Gif|WebP|AndCropJpeg)|Resize\w+|CropAndResize")


def add_functions(lines: Sequence[Line], owners: Mapping[int, Node]) -> None:
    """Give each stage the times in which its function, with its completion, ran on the threads of the host.

    ``owners`` are the stages whose functions the executions are, by the number of the execution.
    """
    if not owners:
        return
    known, nodes = np.array(sorted(owners), np.uint64), {id(node): node for node in owners.values()}
    places = {number: at for at, number in enumerate(nodes)}
    node = np.array([places[id(owners[run])] for run in sorted(owners)], np.intp)

    def positions(runs: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the positions of (m,) executions; -1 for those of others."""
        at = known.searchsorted(runs)
        return np.where(np.append(known, np.uint64(0))[at] == runs, at, -1)

    # The stretches of executors; those of one execution on one thread may overlap.
    parts = [np.zeros((3, 0), np.int64)]
    for number, line in enumerate(lines):
        for name in (EXECUTOR, EXECUTOR_DONE):
            starts, ends, runs = executors(line, name)
            at = positions(runs)
            own = at >= 0
            group = at[own] + number * len(known)  # by thread, then by execution
            parts.append(np.stack((group, starts[own], ends[own])))
    groups, starts, ends = joined(*np.concatenate(parts, axis=1))
    ran, stages = node[groups % len(known)], list(nodes.values())
    for place in np.unique(ran).tolist():
        mine = ran == place
        stages[place].function.extend(zip(starts[mine].tolist(), ends[mine].tolist(), strict=True))
    for line in lines:
        starts, ends, runs = executors(line)
        if len(starts):
            at = positions(runs)
            _add_operations(line, stages, starts, ends, np.where(at >= 0, node[at], -1))


def _add_operations(
    line: Line, stages: Sequence[Node], starts: NDArray[np.int64], ends: NDArray[np.int64], node: NDArray[np.int64]
) -> None:
    """Add the operations within executors of functions, whose stages are given, -1 for those of others."""
    chosen = np.flatnonzero(line.table.passing(_matters)[line.kind])
    at = np.searchsorted(starts, line.start_ps[chosen], side="right") - 1
    owner = np.where((at >= 0) & (line.start_ps[chosen] < ends[at]), node[at], -1)
    events, owned = chosen[owner >= 0], owner[owner >= 0]
    key = owned * len(line.types) + line.kind[events]
    keys, first, which = np.unique(key, return_index=True, return_inverse=True)
    times, counts = np.zeros((2, len(keys)), np.int64)
    np.add.at(times, which, line.duration_ps[events])
    np.add.at(counts, which, 1)
    order = first.argsort()  # as they ran
    columns = (keys[order].tolist(), times[order].tolist(), counts[order].tolist())
    for place, time, count in zip(*columns, strict=True):
        at_node, kind = divmod(place, len(line.types))
        stage, work = stages[at_node], _work(line.types[kind])
        if work.name:
            stage.operations[work.name] = stage.operations.get(work.name, 0) + time
        stage.python_ps += time * work.python
        stage.reading_ps += time * work.reading
        stage.reads += count * work.reading
        stage.image_ps += time * work.images


class _Work(NamedTuple):
    """What an operation of a stage's function does."""

    name: str
    python: bool
    reading: bool
    images: bool


def _matters(kind: EventType) -> bool:
    return any(_work(kind))


def _work(kind: EventType) -> _Work:
    label, does = operation_label(kind), (PYTHON, READING, IMAGES)
    python, reading, images = (bool(types.fullmatch(kind.display_name)) for types in does)
    return _Work(label[0] if label else "", python, reading, images)
