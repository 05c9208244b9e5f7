"""Depthwise convolutions: their rate, and the rate from which a regular convolution would be faster."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

REPLACEMENT = 9
"""Positions of the kernel of the regular convolution that replaces a larger one: 3 x 3, as in the fused MBConv of
EfficientNetV2 (https://arxiv.org/abs/2104.00298, section 3.2)."""

SHORTEST_MS = 0.05
"""Shortest time of one call whose rate is compared, in ms: starting threads takes about as long."""


@dataclass(frozen=True, slots=True)
class Depthwise(OperationRows):
    """The depthwise convolutions of a step, their FLOP rate, and those of the other matmuls; None is unknown.

    ``regular_flops`` is the arithmetic per step of regular convolutions in their place.
    """

    rows: tuple[OperationTime, ...]
    flop_s: float | None = None
    others_flop_s: float | None = None  # of all other convolutions and matmuls
    fastest_flop_s: float | None = None  # of the fastest convolution in the same precision
    regular_flops: float | None = None

    @classmethod
    def measure(cls, operations: Operations, without: Container[str] = ()) -> Self:
        """Compare the rates of the operations of one run; ``without`` names those that are none of a layer's.

        Raises:
            Unavailable: the step runs none, or the trace does not name its operations.
        """
        rows = tuple(row for row in operations.rows if row.is_depthwise and row.name not in without)
        if not rows:
            raise Unavailable(operations.why_unlisted or "the step runs no depthwise convolution")
        precisions = {row.precision for row in rows}
        alike = [row for row in operations.matrix if row.type.startswith("Conv") and row.precision in precisions]
        rates = [rate for row in alike if row.ms > SHORTEST_MS * row.calls and (rate := _rate([row]))]
        return cls(rows, _rate(rows), _rate(operations.matrix), max(rates, default=None), _regular(rows))

    @property
    def at(self) -> Location | None:
        """The line of the longest one, a forward one where that is known: gradients have the line of a layer."""
        forward = [row for row in self.rows if not GRADIENT.search(row.name)]
        return next((row.at for row in (*forward, *self.rows) if row.at), None)

    @property
    def break_even_flop_s(self) -> float | None:
        """The FLOP rate above which regular convolutions take less time than these; None is unknown."""
        return self.regular_flops / (self.ms * 1e-3) if self.regular_flops and self.ms else None

    def reached_flop_s(self, peak_flop_s: float | None) -> float:
        """Return the FLOP rate of the fastest convolution of this run, or the known peak rate; 0 is unknown."""
        return max(self.fastest_flop_s or 0.0, peak_flop_s or 0.0)

    def regular_pays(self, peak_flop_s: float | None) -> bool | None:
        """Whether regular convolutions can take less time than these; None is unknown."""
        reached = self.reached_flop_s(peak_flop_s)
        if self.break_even_flop_s is None or not reached:
            return None
        return reached > self.break_even_flop_s


def _rate(rows: Iterable[OperationTime]) -> float | None:
    known = [row for row in rows if row.flops]
    seconds = sum(row.ms for row in known) * 1e-3
    return sum((row.flops or 0) * row.calls for row in known) / seconds if seconds else None


def _regular(rows: Iterable[OperationTime]) -> float | None:
    """Return the FLOPs of convolutions of all channels with a kernel of at most 3 x 3; None if any is unknown."""
    total = 0.0
    for row in rows:
        kernel = row.kernel
        if not row.flops or kernel is None or len(kernel) < 3:  # noqa: PLR2004 - height, width, channels
            return None
        positions = prod(kernel[:2])
        total += row.flops * row.calls * kernel[2] * min(1.0, REPLACEMENT / positions)
    return total
