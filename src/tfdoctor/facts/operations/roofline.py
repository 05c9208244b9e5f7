"""The least time that an operation can take: to read its bytes from memory, and to compute its FLOPs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import LARGE, Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind

FEWEST_BYTES = 0.5  # Share of float32's bytes in 16-bit precision: no change that tfdoctor proposes moves fewer
HALVES = ("float16", "bfloat16")  # The 16-bit types


@dataclass(frozen=True, slots=True)
class Roofline:
    """The least time of each operation, in ms per training step, by the operation's name.

    The larger of its bytes (in 16-bit precision) over the memory's rate and of its FLOPs over the peak in
    16-bit precision; Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.
    """

    floors: Mapping[str, float]

    @classmethod
    def measure(cls, operations: Operations, hardware: Hardware) -> Self:
        """Take the device's peaks; for a CPU the rate at which this run's own operations stream.

        Raises:
            Unavailable: neither the memory's rate nor the peak is known.
        """
        rate = hardware.bandwidth_bytes_s
        if hardware.kind == DeviceKind.CPU:
            rate = operations.streaming_rate
        if not rate and not hardware.peak_flop_s:
            raise Unavailable(
                "the peak rates of this hardware are unknown, and no operation of the run shows its memory "
                "bandwidth"
            )
        floors = {row.name: _floor(row, rate, hardware.peak_flop_s) for row in operations.rows}
        return cls({name: ms for name, ms in floors.items() if ms})


def _floor(row: OperationTime, rate: float | None, peak: float | None) -> float:
    """Return an operation's least ms per step; 0 where unknown, or where caches may hold its tensors."""
    moved = (row.nbytes or 0.0) * (1.0 if row.precision in HALVES else FEWEST_BYTES)
    memory = moved / rate if rate and moved >= LARGE else 0.0
    compute = (row.flops or 0.0) / peak if peak else 0.0
    return min(row.ms, max(memory, compute) * row.calls * 1e3)
