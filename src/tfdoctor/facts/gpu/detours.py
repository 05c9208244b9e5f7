"""Operations that a GPU's step runs on the host, between a copy to the host and a copy back."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
from tfdoctor.trace import Event, Intervals, Trace
from tfdoctor.trace.names import COPY, INPUT_THREAD

# Operations with which TensorFlow copies a tensor to another device, "NAME/_14:_Recv": NAME makes the tensor.
EDGE = re.compile(r"(.+?)/_\d+:_(?:Host)?(?:Send|Recv)")
STATS = ("tf_op", "annotation", "level 0")  # Where a copy's event has that name, by TensorFlow's version
# The names of operations that hand over a batch: its copy to the GPU is no way back.
BATCH = re.compile(r"(?:^|/)(?:IteratorGetNext|OptionalGetValue|RemoteCall|args?_)")


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
        """Pair each copy to the host with the next one back, where the GPU starts no kernel before it."""
        gpu = activities.busiest
        copies = (
            event
            for line in work_lines(gpu.plane)
            for event in map(line.event, np.flatnonzero(is_named(line, COPY.match)).tolist())
        )
        edges = sorted((copy for copy in copies if _source(copy)), key=lambda copy: copy.start_ps)
        if not edges:
            raise Unavailable("the trace does not name the tensors that are copied to the GPU")
        ran = _on_host(trace)
        starts = np.sort(gpu.kernel_starts_ps)
        found: dict[str, list[tuple[Event, Event]]] = {}
        for there, back in _pairs(edges, steady.stretches):
            name, between = _source(back), (there.start_ps, back.end_ps)
            first, last = starts.searchsorted(between, side="left")
            meanwhile = (between[0] <= one.start_ps and one.end_ps <= between[1] for one in ran.get(name, ()))
            if first == last and any(meanwhile):
                found.setdefault(name, []).append((there, back))
        kernels, rows = gpu.kernels | gpu.collectives, []
        for name, pairs in found.items():
            copied = Intervals.union((event.start_ps, event.end_ps) for pair in pairs for event in pair) - kernels
            whole = Intervals.union((there.start_ps, back.end_ps) for there, back in pairs) - kernels
            operation = program.by_name.get(name) if program else None
            rows.append(
                Detour(
                    name,
                    ran[name][0].name.rpartition(":")[2],
                    len(pairs) / steady.rounds,
                    steady.ms(copied),
                    steady.ms(whole - copied),
                    program.line_of(operation) if program and operation else None,
                )
            )
        rows.sort(key=lambda row: -row.ms)
        return cls(tuple(rows), tuple(there.end_ps for pairs in found.values() for there, _ in pairs))


def _source(copy: Event) -> str:
    """Return the operation whose tensor an event copies; "" where its name does not tell."""
    edges = (EDGE.match(str(copy.stats.get(stat) or "")) for stat in STATS)
    return next((CALLED.sub("", edge[1]) for edge in edges if edge), "")


def _pairs(edges: list[Event], stretches: Iterable[tuple[int, int]]) -> Iterator[tuple[Event, Event]]:
    """Yield each copy to the host with the copy to the GPU that follows it in the same step."""
    for start, end in stretches:
        for there, back in pairwise([copy for copy in edges if start <= copy.start_ps < end]):
            returns = direction_of(there.name) is D2H and direction_of(back.name) is H2D
            if returns and not BATCH.search(_source(back)):
                yield there, back


def _on_host(trace: Trace) -> Mapping[str, list[Event]]:
    """Return the operations that the host's threads ran, by name."""
    ran: dict[str, list[Event]] = defaultdict(list)
    threads = (line for line in trace.host_lines if not line.name.startswith(INPUT_THREAD))
    for event in (event for line in threads for event in line.events()):
        name, _, kind = event.name.rpartition(":")
        if name and kind.isidentifier():
            ran[CALLED.sub("", name)].append(event)
    return ran
