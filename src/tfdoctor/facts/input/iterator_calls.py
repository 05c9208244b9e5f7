"""Collects the calls of tf.data's iterators into one node for each stage."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.steps import StepSpans
from tfdoctor.facts.timeline.host_events import enclosing, latest_before, nearest
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import EventType, Line
from tfdoctor.trace.names import CAPTURED_FUNCTION, ITERATOR, PRODUCE

# The index of an upstream iterator per element or repetition; all of them are one node.
MANY = re.compile(r"(?<!Zip)(?<!Concatenate)\[\d+\]")
# The index that a repeat() gives to its source's iterator: how many passes were completed before.
REPETITION = re.compile(r"Repeat\[(\d+)\]")


class Role(NamedTuple):
    """What the events of a type are to a pipeline."""

    call: bool = False  # of an iterator
    captured: bool = False  # a function that tf.data runs
    produces: bool = False  # an element on the stage's own thread
    path: str = ""  # of the iterator's node
    repetition: int = 0  # how many passes its repeat() had completed


@lru_cache(maxsize=65536)
def _role(name: str) -> Role:
    """Return what the events of a name are."""
    if name.startswith(ITERATOR):
        path = MANY.sub("", name.removeprefix(ITERATOR))
        passes = max(map(int, REPETITION.findall(name)), default=0)
        return Role(call=True, path=path, repetition=passes)
    return Role(captured=name.startswith(CAPTURED_FUNCTION), produces=bool(PRODUCE.fullmatch(name)))


def _matters(name: str) -> bool:
    return any(_role(name)[:3])


def pipeline_calls(
    lines: Sequence[Line], types: Sequence[EventType], members: set[int], window: StepSpans
) -> tuple[dict[str, Node], dict[int, Node]]:
    """Collect the calls of these iterators on the threads of the host, whose events have these types.

    Returns the nodes by path, and by its id the stage whose function an execution that tf.data started belongs to.
    """
    chosen = [(line, chosen_events(line, _matters, window)) for line in lines]
    kind = _joined([line.kind[events] for line, events in chosen], np.int32)
    start_ps = _joined([line.start_ps[events] for line, events in chosen], np.int64)
    lasting = _joined([line.duration_ps[events] for line, events in chosen], np.int64)
    ids = _joined([line.stats.ids_of("id", events) for line, events in chosen], np.uint64)
    roles = {one: _role(types[one].name) for one in np.unique(kind).tolist()}
    is_call, is_captured, produces = (
        np.isin(kind, [one for one, role in roles.items() if role[place]]) for place in range(3)
    )
    member = np.isin(ids, np.array([*members], np.uint64))
    calls = np.flatnonzero(is_call & member)
    around = enclosing(start_ps, start_ps + lasting, [len(events) for _, events in chosen])
    holder = nearest(around, (is_call & member) | produces)
    called_by = holder[calls]
    within = np.zeros(len(kind), np.int64)  # in calls of other stages, which are not a stage's own time
    np.add.at(within, called_by[called_by >= 0], lasting[calls[called_by >= 0]])
    nodes: dict[str, Node] = {}
    for one in np.unique(kind[calls]).tolist():
        node, mine = nodes.setdefault(roles[one].path, Node(roles[one].path)), calls[kind[calls] == one]
        node.repetition = max(node.repetition, roles[one].repetition)
        node.self_ps += int((lasting[mine] - within[mine]).sum())
        starts = start_ps[mine]
        node.called.extend(zip(starts.tolist(), (starts + lasting[mine]).tolist(), strict=True))
    captured = np.flatnonzero(is_captured & (holder >= 0) & (ids > 0))
    held = holder[captured]
    inside = np.append(calls, -1)[latest_before(called_by, calls, held, captured)]
    rows = (ids[captured], kind[held], np.append(kind, -1)[inside])
    owners = dict(_owners(zip(*(row.tolist() for row in rows), strict=True), nodes, roles))
    first = 0
    for line, events in chosen:
        mine = events[member[first : first + len(events)]]
        _add_names(line.kind[mine].tolist(), line.stats.values_of("name", mine), nodes, roles)
        first += len(events)
    return nodes, owners


def _add_names(kinds: list[int], names: Iterable[object], nodes: dict[str, Node], roles: dict[int, Role]) -> None:
    for kind, name in dict.fromkeys(zip(kinds, names, strict=True)):
        node = nodes.get(roles[kind].path)
        if node is not None and name and str(name) not in node.names:
            node.names.append(str(name))


def _owners(
    started: Iterable[tuple[int, int, int]], nodes: dict[str, Node], roles: dict[int, Role]
) -> Iterator[tuple[int, Node]]:
    """Yield the executions that a call started, or an XProduce, which is of the stage that calls others in it."""
    for run, kind, call in started:
        above = Node(roles[call].path).parent if call in roles and roles[call].call else ""
        if path := roles[kind].path if roles[kind].call else above:
            yield run, nodes.setdefault(path, Node(path))


def _joined(columns: list[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *columns])


def chosen_events(line: Line, test: Callable[[str], object], window: StepSpans) -> NDArray[np.intp]:
    """Return the (n,) events whose names pass a test and that begin within the steps."""
    events = np.flatnonzero(is_named(line, test))
    return events[window.holds(line.start_ps[events])]
