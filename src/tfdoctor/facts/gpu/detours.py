"""Operations that a GPU's step runs on the host, between a copy to the host and a copy back."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.gpu.transfers import D2H, H2D, direction_of
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.terms.verdict import Location
from tfdoctor.trace import Event, Intervals, Plane, Trace
from tfdoctor.trace.names import COPY, INPUT_THREAD

EDGE = re.compile(r"(.+?)/_\d+:_(?:Host)?(?:Send|Recv)")
"""Operations with which TensorFlow copies a tensor to another device, "NAME/_14:_Recv": NAME makes the tensor."""

STATS = ("tf_op", "annotation", "level 0")
"""Where a copy's event has that name, by TensorFlow's version."""

BATCH = re.compile(r"(?:^|/)(?:IteratorGetNext|OptionalGetValue|RemoteCall|args?_)")
"""The names of operations that hand over a batch: its copy to the GPU is no way back."""


@dataclass(frozen=True, slots=True)
class Detour:
    """An operation on the host between two copies; numbers and ms per training step.

    ``copies_ms`` and ``waiting_ms`` are the time of the copies and between them in which the GPU runs no kernel.
    """

    name: str  # of the operation that makes the tensor which is copied back
    type: str
    calls: float
    copies_ms: float
    waiting_ms: float
    at: Location | None = None
    layer: str = ""

    @property
    def ms(self) -> float:
        """The time in which the GPU waits for it."""
        return self.copies_ms + self.waiting_ms


@dataclass(frozen=True, slots=True)
class Detours:
    """The detours of a step over the host, the longest first.

    ``there_ps`` are the ends of their copies to the host, in picoseconds from the start of the trace.
    """

    rows: tuple[Detour, ...]
    there_ps: tuple[int, ...] = ()

    @classmethod
    def measure(cls, trace: Trace, activities: GpuActivities, steady: SteadySteps, program: Program | None) -> Self:
        """Pair each copy to the host with the next one back, where the GPU starts no kernel before it.

        Raises:
            Unavailable: the run used no GPU, or the trace does not name what is copied.
        """
        gpu = activities.busiest
        edges = _edges(gpu.plane)
        if not edges:
            raise Unavailable("the trace does not name the tensors that are copied to the GPU")
        ran = _on_host(trace)
        starts = np.sort(gpu.kernel_starts_ps)
        found: dict[str, list[tuple[Event, Event]]] = {}
        for there, back in _pairs(edges, steady.stretches):
            name, between = source_of(back), (there.start_ps, back.end_ps)
            first, last = starts.searchsorted(between, side="left")
            if first == last and _ran_between(ran.get(name, ()), *between):
                found.setdefault(name, []).append((there, back))
        kernels = gpu.kernels | gpu.collectives
        rows = (
            _detour(name, ran[name][0].name.rpartition(":")[2], pairs, kernels, steady)
            for name, pairs in found.items()
        )
        named = (_located(row, program) for row in rows)
        return cls(
            tuple(sorted(named, key=lambda row: -row.ms)),
            tuple(there.end_ps for pairs in found.values() for there, _ in pairs),
        )


def source_of(copy: Event) -> str:
    """Return the operation whose tensor an event copies; "" where its name does not tell."""
    for stat in STATS:
        text = str(copy.stats.get(stat) or "")
        if match := EDGE.match(text):
            return CALLED.sub("", match[1])
    return ""


def _edges(plane: Plane) -> list[Event]:
    """Return the copies between host and GPU that belong to an operation, in order of time."""
    copies = [
        event
        for line in work_lines(plane)
        for event in map(line.event, np.flatnonzero(is_named(line, COPY.match)).tolist())
    ]
    return sorted((copy for copy in copies if source_of(copy)), key=lambda copy: copy.start_ps)


def _pairs(edges: list[Event], stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[Event, Event]]:
    """Yield each copy to the host with the copy to the GPU that follows it in the same step."""
    for start, end in stretches:
        inside = [copy for copy in edges if start <= copy.start_ps < end]
        for there, back in pairwise(inside):
            returns = direction_of(there.name) is D2H and direction_of(back.name) is H2D
            if returns and not BATCH.search(source_of(back)):
                yield there, back


def _on_host(trace: Trace) -> Mapping[str, list[Event]]:
    """Return the operations that the host's threads ran, by name."""
    ran: dict[str, list[Event]] = defaultdict(list)
    for line in trace.host_lines:
        if line.name.startswith(INPUT_THREAD):
            continue
        for event in line.events():
            name, _, kind = event.name.rpartition(":")
            if name and kind.isidentifier():
                ran[CALLED.sub("", name)].append(event)
    return ran


def _ran_between(events: Iterable[Event], start: int, end: int) -> bool:
    return any(start <= event.start_ps and event.end_ps <= end for event in events)


def _detour(
    name: str, kind: str, pairs: list[tuple[Event, Event]], kernels: Intervals, steady: SteadySteps
) -> Detour:
    both = [event for pair in pairs for event in pair]
    copies = Intervals.union((event.start_ps, event.end_ps) for event in both) - kernels
    whole = Intervals.union((there.start_ps, back.end_ps) for there, back in pairs) - kernels
    return Detour(name, kind, len(pairs) / steady.rounds, steady.ms(copies), steady.ms(whole - copies))


def _located(row: Detour, program: Program | None) -> Detour:
    operation = program.by_name.get(row.name) if program else None
    if program is None or operation is None:
        return row
    return replace(row, at=program.line_of(operation), layer=operation.layer)
