"""Where the time of a TPU's cores goes, per training step, or per run of the program with the most time.

Each instant of a round belongs to one part, the first of the list that is at work, so the parts sum to
the round. A round lasts from its start to the next one's start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.facts.steps.steady_steps import RoundUnit
from tfdoctor.facts.steps.step import PS_PER_MS
from tfdoctor.facts.timeline.trainer import is_named, spans_of
from tfdoctor.facts.tpu.copies import Copy, CopyPlace, copies
from tfdoctor.facts.tpu.rounds import counted, rounds_of, starts_of
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.trace import Intervals, Line, Plane, Trace
from tfdoctor.trace.names import TPU_COLLECTIVES, TPU_OPS


class TpuPart(StrEnum):
    """A part of a round, by priority.

    ``HOST`` is send and receive to the host; ``COPIES`` the waits for asynchronous copies, which
    ``TpuCore.copies`` lists by where they go.
    """

    COMPUTE = "compute"
    COLLECTIVE = "collectives"
    HOST = "host transfers"
    COPIES = "waits for copies"
    INFEED = "infeed"
    OUTFEED = "outfeed"
    IDLE = "idle"


COMPUTE, COLLECTIVE, HOST, COPIES, INFEED, OUTFEED, IDLE = TpuPart
PARTS = tuple(TpuPart)

BARRIER = "barrier-cores"  # The event of a core that waits for the others, on the line "XLA TraceMe" (v6e, 2025)


@dataclass(frozen=True, slots=True)
class TpuCore:
    """One core. Milliseconds per round; ``parts`` sum to ``round_ms``."""

    name: str  # "/device:TPU:0"
    rounds: int
    round_ms: float
    parts: Mapping[TpuPart, float]
    copies: tuple[Copy, ...]
    hidden_ms: float  # copies under way while the core computed
    barriers_ms: tuple[float, ...]  # each wait for the other cores, in order; of the whole trace

    @classmethod
    def of(cls, core: Plane, unit: RoundUnit, program: str) -> Self | None:
        """Divide a core's rounds; None where it has none."""
        lines = {line.name: line for line in core.lines}
        operations, barriers = lines.get(TPU_OPS), lines.get("XLA TraceMe")
        starts, end = starts_of(core, unit, program)
        if operations is None or not len(operations) or not len(starts) or end <= starts[0]:
            return None
        window = (int(starts[0]), end)
        inside = (operations.start_ps >= window[0]) & (operations.start_ps < end)
        scale = PS_PER_MS * len(starts)
        layers = _layers(operations, inside, window)
        pairs, under_way = copies(operations, inside, len(starts))
        parts = {part: layers[part].total / scale for part in PARTS[:-1]}
        total = (end - window[0]) / scale
        waits = barriers.duration_ps[is_named(barriers, BARRIER.__eq__)] / PS_PER_MS if barriers else ()
        hidden = (under_way & layers[COMPUTE]).total / scale
        parts |= {IDLE: total - sum(parts.values())}
        return cls(core.name, len(starts), total, parts, pairs, hidden, tuple(map(float, waits)))

    @property
    def busy_ms(self) -> float:
        """The time in which any operation ran, waits for copies included."""
        return self.round_ms - self.parts[IDLE]

    def share(self, part: TpuPart) -> float:
        """Return a part's share of the time in operations."""
        return self.parts[part] / self.busy_ms if self.busy_ms else 0.0

    @property
    def exposed_ms(self) -> float:
        """The waits for copies and other asynchronous work."""
        return sum(copy.exposed_ms for copy in self.copies)

    @property
    def host_bytes(self) -> float:
        """The bytes that asynchronous copies move between the host's memory and the device's."""
        return sum(copy.nbytes for copy in self.copies if copy.where is CopyPlace.HOST)


@dataclass(frozen=True, slots=True)
class TpuTime:
    """All cores that work, the busiest first; ``unit`` says what a round is, ``program`` whose runs."""

    unit: RoundUnit
    program: str
    cores: tuple[TpuCore, ...]

    @classmethod
    def measure(cls, trace: Trace, device: Device, xla_programs: XlaPrograms) -> Self:
        """Divide the rounds of every core by its operations' categories."""
        if device.kind != DeviceKind.TPU or device.busiest is None:
            raise Unavailable("the run used no TPU")
        if device.missing:
            raise Unavailable(str(device.missing))
        unit, program = rounds_of(device.busiest, xla_programs)
        cores = [TpuCore.of(plane, unit, program) for plane in trace.devices(DeviceKind.TPU)]
        working = [core for core in cores if core is not None]
        if not working:
            raise Unavailable("the TPU's trace contains neither steps nor whole runs of a compiled program")
        return cls(unit, program, tuple(sorted(working, key=lambda core: -core.busy_ms)))

    @property
    def busiest(self) -> TpuCore:
        """The core with the most time in operations."""
        return self.cores[0]

    @property
    def barrier_skews_ms(self) -> tuple[float, ...]:
        """How much later the last core came to each barrier than the first; () without barriers."""
        waits = [core.barriers_ms for core in self.cores if core.barriers_ms]
        if len(waits) < 2 or len({len(core_waits) for core_waits in waits}) > 1:  # noqa: PLR2004 - two to compare
            return ()
        return tuple(max(core_waits) - min(core_waits) for core_waits in zip(*waits, strict=True))

    @property
    def uneven(self) -> float:
        """The spread of the cores' computing time, as a share of the most; 0 with one core."""
        times = [core.parts[COMPUTE] for core in self.cores]
        return (max(times) - min(times)) / max(times) if max(times) else 0.0


def _layers(line: Line, inside: NDArray[np.bool_], window: tuple[int, int]) -> dict[TpuPart, Intervals]:
    """Return disjoint intervals of the parts, by priority; what holds other operations is not counted."""
    kinds = np.array([PARTS.index(part_of(str(kind.stats.get("hlo_category", "")))) for kind in line.types])
    mask = inside & counted(line)
    taken = Intervals()
    layers: dict[TpuPart, Intervals] = {}
    for index, part in enumerate(PARTS[:-1]):
        of_part = mask & (kinds[line.kind] == index)
        layers[part] = spans_of(line, of_part).within(*window) - taken
        taken |= layers[part]
    return layers


def part_of(category: str) -> TpuPart:
    """Return the part that an operation of XLA's category belongs to."""
    if category in ("infeed", "outfeed"):
        return INFEED if category == "infeed" else OUTFEED
    if category.startswith(("host send", "host recv", "send", "recv")):
        return HOST
    if category.startswith(TPU_COLLECTIVES):
        return COLLECTIVE
    waits = category.startswith(("copy-", "async-", "slice-")) or category.endswith(("-start", "-done"))
    return COPIES if waits else COMPUTE
