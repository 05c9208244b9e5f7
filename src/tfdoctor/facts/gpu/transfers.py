"""Copies between host and GPU and within it: how many, how large, how fast, how much of them nothing hides."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.gpu.activity import GpuActivities
from tfdoctor.facts.run.device import work_lines
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.trace import Event, Intervals, Plane, Trace
from tfdoctor.trace.names import COPY, COPY_DIRECTION

H2D, D2H, D2D, PEER, CLEAR, OTHER = (
    "host to device", "device to host", "device to device", "to another device", "clearing", "other",
)  # fmt: skip
"""``D2D`` stays on one device with CUPTI; ROCm's calls use the same word for copies to another one."""

DIRECTIONS = (H2D, D2H, D2D, PEER, CLEAR, OTHER)

PAGEABLE, PINNED, UNKNOWN = "pageable", "pinned", "unknown"
"""The host's side of a copy. The driver copies pageable memory through a buffer of its own: slower, and
beside no kernel that is launched later on the stream."""

DETAIL = re.compile(r"(\w+):(\S+)")
"""'kind_src:pinned kind_dst:device size:4096 dest:0 async:1' (CUPTI since TensorFlow 2.6), 'size:4096
dest:0 async:1' (2.3, 2.4), 'kind:Unknown size:0 dest:512 async:1' (ROCm, which does not know the size)."""

_LETTERS = {"HD": H2D, "DH": D2H, "DD": D2D, "PP": PEER}
_HOST_SIDE = {H2D: "kind_src", D2H: "kind_dst"}


@dataclass(frozen=True, slots=True)
class Transfer:
    """The copies of one direction; ms, bytes and numbers per training step, or of the whole trace."""

    direction: str
    count: float
    ms: float  # union over streams
    exposed_ms: float  # serial: while no kernel of the GPU runs, collectives among them
    nbytes: float | None  # None: the trace does not tell the sizes
    rate: float | None  # bytes per second while they are under way; None with the sizes
    memory: Mapping[
        str, float
    ]  # bytes by PAGEABLE, PINNED, UNKNOWN host memory; {} where no host takes part

    @property
    def hidden_ms(self) -> float:
        """The overlapped part: kernels run meanwhile."""
        return self.ms - self.exposed_ms

    @property
    def is_clearing(self) -> bool:
        """Whether memory is set rather than copied."""
        return self.direction == CLEAR

    @property
    def host_memory(self) -> str:
        """The kind of host memory that most bytes come from or go to."""
        return max(self.memory, key=self.memory.__getitem__) if self.memory else UNKNOWN


@dataclass(frozen=True, slots=True)
class Transfers:
    """The busiest GPU's copies, by direction in the order of ``DIRECTIONS``; those that occur."""

    directions: tuple[Transfer, ...]

    @classmethod
    def measure(cls, trace: Trace, activities: GpuActivities, steady: SteadySteps) -> Self:
        """Read every copy's direction, size and memory.

        Raises:
            Unavailable: the run used no GPU, or its work was not recorded.
        """
        gpu = activities.busiest
        calls = _calls(trace) if _is_rocm(gpu.plane) else {}
        copies: dict[str, list[Event]] = defaultdict(list)
        for event in _events(gpu.plane, steady):
            copies[_direction(event, calls)].append(event)
        working = gpu.kernels | gpu.collectives
        return cls(
            tuple(
                _transfer(direction, copies[direction], working, steady)
                for direction in DIRECTIONS
                if direction in copies
            )
        )

    def __getitem__(self, direction: str) -> Transfer:
        return next(
            (transfer for transfer in self.directions if transfer.direction == direction),
            Transfer(direction, 0.0, 0.0, 0.0, 0.0, None, {}),
        )


def details(text: str) -> dict[str, str]:
    """Return what a copy says of itself, by name."""
    return dict(DETAIL.findall(text))


def _events(plane: Plane, steady: SteadySteps) -> Iterable[Event]:
    """Yield the copies that begin in the typical steps."""
    is_copy = np.array([COPY.match(kind.name) is not None for kind in plane.types], bool)
    for line in work_lines(plane):
        for at in np.flatnonzero(is_copy[line.kind] & steady.holds(line.start_ps)):
            yield line.event(int(at))


def _is_rocm(plane: Plane) -> bool:
    return any(kind.name.startswith("__amd_rocclr_copy") for kind in plane.types)


def _calls(trace: Trace) -> dict[int, str]:
    """Return the host's calls of copies by correlation: ROCm's copies do not tell where they go."""
    return {
        int(stats["correlation_id"]): line.types[line.kind[at]].name
        for line in trace.host_lines
        for at, stats in line.stats.items()
        if "correlation_id" in stats and COPY_DIRECTION.search(line.types[line.kind[at]].name)
    }


def _direction(event: Event, calls: Mapping[int, str]) -> str:
    if "memset" in event.name.lower():
        return CLEAR
    name = event.name
    if not COPY_DIRECTION.search(name):
        name = calls.get(int(event.stats.get("correlation_id", 0)), "")
    letters = COPY_DIRECTION.search(name)
    return _LETTERS.get("".join(letters.groups()).upper(), OTHER) if letters else OTHER


def _transfer(
    direction: str, copies: list[Event], working: Intervals, steady: SteadySteps
) -> Transfer:
    spans = Intervals.union((copy.start_ps, copy.end_ps) for copy in copies)
    details_of_copies = [details(str(copy.stats.get("memcpy_details", ""))) for copy in copies]
    sizes = [_size(copy_details) for copy_details in details_of_copies]
    total, lasted = sum(sizes), spans.total / PS_PER_MS / 1e3
    known = total > 0
    return Transfer(
        direction,
        len(copies) / steady.rounds,
        steady.ms(spans),
        steady.ms(spans - working),
        total / steady.rounds if known else None,
        total / lasted if known and lasted else None,
        _memory(direction, details_of_copies, sizes, steady.rounds) if known else {},
    )


def _size(copy_details: Mapping[str, str]) -> int:
    text = copy_details.get("size", "")
    return int(text) if text.isascii() and text.isdigit() else 0


def _memory(
    direction: str, details_of_copies: list[dict[str, str]], sizes: list[int], rounds: int
) -> dict[str, float]:
    side = _HOST_SIDE.get(direction)
    if side is None:
        return {}
    bytes_by_kind = dict.fromkeys((PAGEABLE, PINNED, UNKNOWN), 0.0)
    for copy_details, size in zip(details_of_copies, sizes, strict=True):
        kind = copy_details.get(side, "").lower()
        bytes_by_kind[kind if kind in bytes_by_kind else UNKNOWN] += size / rounds
    return bytes_by_kind
