"""Copies of GPUs."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.operations.operations import CALLED
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.timeline.trainer import is_named
from tfdoctor.terms.verdict import Location
from tfdoctor.trace import Event, Intervals, Trace
from tfdoctor.trace.names import COPY, COPY_DIRECTION, INPUT_THREAD


class CopyDirection(StrEnum):
    """Where a copy goes.

    ``D2D`` stays on one device with CUPTI; ROCm uses the same word for copies to another device.
    """

    H2D = "host to device"
    D2H = "device to host"
    D2D = "device to device"
    PEER = "to another device"
    CLEAR = "clearing"
    OTHER = "in an unknown direction"


class HostMemoryKind(StrEnum):
    """The host's side of a copy.

    The driver copies pageable memory through a buffer of its own: this is slower, and kernels that are
    launched later on the stream wait for it.
    """

    PAGEABLE = "pageable"
    PINNED = "pinned"
    UNKNOWN = "unknown"


H2D, D2H, D2D, PEER, CLEAR, OTHER = CopyDirection
PAGEABLE, PINNED, UNKNOWN = HostMemoryKind

# 'kind_src:pinned kind_dst:device size:4096 dest:0 async:1' (CUPTI since TensorFlow 2.6), 'size:4096 dest:0
# async:1' (2.3, 2.4), 'kind:Unknown size:0 dest:512 async:1' (ROCm, which does not know the size).
DETAIL = re.compile(r"\b(\w+):(\S+)")

LETTERS = {"HD": H2D, "DH": D2H, "DD": D2D, "PP": PEER}
HOST_SIDE = {H2D: "kind_src", D2H: "kind_dst"}


@dataclass(frozen=True, slots=True)
class Transfer:
    """The copies of one direction; ms, bytes and numbers per training step, or of the whole trace.

    ``nbytes`` and ``rate`` (bytes per second during the copies) are None where the trace does not contain
    sizes. ``memory`` has the bytes by kind of host memory; it is empty for copies without the host.
    """

    direction: CopyDirection
    count: float
    ms: float  # union over streams
    exposed_ms: float  # while the GPU runs no kernel and no collective
    nbytes: float | None
    rate: float | None
    memory: Mapping[HostMemoryKind, float]

    @property
    def host_memory(self) -> HostMemoryKind:
        """The kind of host memory that most bytes come from or go to."""
        return max(self.memory, key=self.memory.__getitem__) if self.memory else UNKNOWN


@dataclass(frozen=True, slots=True)
class Transfers:
    """The busiest GPU's copies that occur, in the order of ``CopyDirection``."""

    directions: tuple[Transfer, ...]

    @classmethod
    def measure(cls, trace: Trace, activities: GpuActivities, steady: SteadySteps) -> Self:
        """Read every copy's direction, size and memory."""
        gpu = activities.busiest
        is_rocm = any(kind.name.startswith("__amd_rocclr_copy") for kind in gpu.plane.types)
        calls = _calls(trace) if is_rocm else {}
        copies: dict[CopyDirection, list[Event]] = defaultdict(list)
        for line in work_lines(gpu.plane):
            steady_copies = is_named(line, COPY.match) & steady.holds(line.start_ps)
            for event in map(line.event, np.flatnonzero(steady_copies).tolist()):
                named = bool(COPY_DIRECTION.search(event.name))
                call = event.name if named else calls.get(int(event.stats.get("correlation_id", 0)), "")
                copies[CLEAR if "memset" in event.name.lower() else direction_of(call)].append(event)
        working = gpu.kernels | gpu.collectives
        return cls(tuple(_transfer(way, copies[way], working, steady) for way in CopyDirection if way in copies))

    def __getitem__(self, direction: CopyDirection) -> Transfer:
        return next(
            (transfer for transfer in self.directions if transfer.direction == direction),
            Transfer(direction, 0.0, 0.0, 0.0, 0.0, None, {}),
        )


def direction_of(name: str) -> CopyDirection:
    """Return where a copy goes, by its name or that of the call that launched it."""
    letters = COPY_DIRECTION.search(name)
    return LETTERS.get("".join(letters.groups()).upper(), OTHER) if letters else OTHER


def _calls(trace: Trace) -> dict[int, str]:
    """Return the host's copy calls by correlation id: ROCm's copies do not hold their direction."""
    calls: dict[int, str] = {}
    for line in trace.host_lines:
        events, ids = line.stats.ids("correlation_id")
        copies = is_named(line, COPY_DIRECTION.search)[events]
        names = [line.types[kind].name for kind in line.kind[events[copies]].tolist()]
        calls |= dict(zip(ids[copies].tolist(), names, strict=True))
    return calls


def _transfer(direction: CopyDirection, copies: list[Event], working: Intervals, steady: SteadySteps) -> Transfer:
    spans = Intervals.union((copy.start_ps, copy.end_ps) for copy in copies)
    memory, total = dict.fromkeys(HostMemoryKind, 0.0), 0
    for copy in copies:
        named = dict(DETAIL.findall(str(copy.stats.get("memcpy_details", ""))))
        size, kind = named.get("size", ""), named.get(HOST_SIDE.get(direction, ""), "").lower()
        nbytes = int(size) if size.isascii() and size.isdigit() else 0
        memory[HostMemoryKind(kind) if kind in memory else UNKNOWN] += nbytes / steady.rounds
        total += nbytes
    lasted = spans.total / PS_PER_MS / 1e3
    return Transfer(
        direction,
        len(copies) / steady.rounds,
        steady.ms(spans),
        steady.ms(spans - working),
        total / steady.rounds if total else None,
        total / lasted if total and lasted else None,
        memory if total and direction in HOST_SIDE else {},
    )


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
