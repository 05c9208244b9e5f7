"""Collects the calls of tf.data's iterators into one node for each stage."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.steps.steps import StepSpans
from tfdoctor.facts.timeline.iterator_node import Node
from tfdoctor.facts.timeline.nesting import enclosing, latest_before, nearest
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.trace import EventType, Line
from tfdoctor.trace.names import CAPTURED_FUNCTION, ITERATOR, PRODUCE

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


class _Events(NamedTuple):
    """The n events of a pipeline within the steps, thread by thread."""

    of_line: list[NDArray[np.intp]]  # their positions in each line
    kind: NDArray[np.int32]  # (n,), in the host's types
    start_ps: NDArray[np.int64]
    end_ps: NDArray[np.int64]
    id: NDArray[np.uint64]  # 0: none

    @classmethod
    def of(cls, lines: Sequence[Line], window: StepSpans) -> Self:
        of_line = [chosen_events(line, _matters, window) for line in lines]
        chosen = list(zip(lines, of_line, strict=True))
        starts = _joined([line.start_ps[events] for line, events in chosen], np.int64)
        lasting = _joined([line.duration_ps[events] for line, events in chosen], np.int64)
        ids = _joined([line.stats.ids_of("id", events) for line, events in chosen], np.uint64)
        kinds = _joined([line.kind[events] for line, events in chosen], np.int32)
        return cls(of_line, kinds, starts, starts + lasting, ids)


@dataclass(slots=True)
class PipelineCalls:
    """The nodes, and the stage whose function each execution that tf.data started belongs to."""

    nodes: dict[str, Node] = field(default_factory=dict)
    owners: dict[int, Node] = field(default_factory=dict)  # by the execution's id

    @classmethod
    def of(cls, lines: Sequence[Line], types: Sequence[EventType], members: set[int], window: StepSpans) -> Self:
        """Collect the calls of these iterators on the threads of the host, whose events have these types."""
        events, made = _Events.of(lines, window), cls()
        roles = {kind: _role(types[kind].name) for kind in np.unique(events.kind).tolist()}
        is_call, is_captured, produces = (
            np.isin(events.kind, [kind for kind, role in roles.items() if role[place]]) for place in range(3)
        )
        member = np.isin(events.id, np.array([*members], np.uint64))
        calls = is_call & member
        around = enclosing(events.start_ps, events.end_ps, [len(of) for of in events.of_line])
        holder = nearest(around, calls | produces)
        made._add_calls(events, np.flatnonzero(calls), holder, roles)
        captured = np.flatnonzero(is_captured & (holder >= 0) & (events.id > 0))
        made._add_owners(events, captured, np.flatnonzero(calls), holder, roles)
        made._describe(lines, events, member, roles)
        return made

    def _node(self, path: str) -> Node:
        return self.nodes.setdefault(path, Node(path))

    def _add_calls(
        self, events: _Events, calls: NDArray[np.intp], holder: NDArray[np.int64], roles: dict[int, Role]
    ) -> None:
        """Add the times of calls; those within calls of another stage are not that stage's own."""
        lasting = events.end_ps - events.start_ps
        called_by = holder[calls]
        within = np.zeros(len(events.kind), np.int64)  # in calls of other stages
        np.add.at(within, called_by[called_by >= 0], lasting[calls[called_by >= 0]])
        for kind in np.unique(events.kind[calls]).tolist():
            node, mine = self._node(roles[kind].path), calls[events.kind[calls] == kind]
            node.repetition = max(node.repetition, roles[kind].repetition)
            node.self_ps += int((lasting[mine] - within[mine]).sum())
            spans = zip(events.start_ps[mine].tolist(), events.end_ps[mine].tolist(), strict=True)
            node.called.extend(spans)

    def _add_owners(
        self,
        events: _Events,
        captured: NDArray[np.intp],
        calls: NDArray[np.intp],
        holder: NDArray[np.int64],
        roles: dict[int, Role],
    ) -> None:
        """Add the executions that a call started, or an XProduce, which is of the stage that calls others in it."""
        paths = {kind: role.path for kind, role in roles.items() if role.call}
        above = {kind: Node(path).parent for kind, path in paths.items()}
        held = holder[captured]
        inside = latest_before(holder[calls], calls, held, captured)
        calling = np.append(calls, -1)[inside]
        rows = (events.id[captured], events.kind[held], np.append(events.kind, -1)[calling])
        for run, kind, call in zip(*(row.tolist() for row in rows), strict=True):
            if path := paths.get(kind, above.get(call, "")):
                self.owners[run] = self.nodes.get(path) or self._node(path)

    def _describe(
        self, lines: Sequence[Line], events: _Events, member: NDArray[np.bool_], roles: dict[int, Role]
    ) -> None:
        """Add what calls say of their stages: names, and the parallelism at last."""
        ends = np.cumsum([len(of) for of in events.of_line])
        for line, chosen, end in zip(lines, events.of_line, ends.tolist(), strict=True):
            mine = chosen[member[end - len(chosen) : end]]
            kinds = line.kind[mine].tolist()
            names = zip(kinds, line.stats.values_of("name", mine), strict=True)
            for kind, name in dict.fromkeys(names):
                node = self.nodes.get(roles[kind].path)
                if node is not None and name and str(name) not in node.names:
                    node.names.append(str(name))
            said = [*zip(kinds, line.stats.values_of("parallelism", mine), strict=True)]
            for kind, threads in reversed(dict.fromkeys(reversed(said))):  # by their last call
                node = self.nodes.get(roles[kind].path)
                if node is not None and str(threads).isdigit():
                    node.parallelism = int(str(threads))


def _joined(columns: list[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, kind), *columns])


def chosen_events(line: Line, test: Callable[[str], object], window: StepSpans) -> NDArray[np.intp]:
    """Return the (n,) events whose names pass a test and that begin within the steps."""
    events = np.flatnonzero(is_named(line, test))
    return events[window.holds(line.start_ps[events])]
