"""Depthwise convolutions: their rate, and the rate from which a regular convolution would be faster."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Self

from tfdoctor.facts.matmuls.flop_rates import fastest_flop_s, flop_s
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

REPLACEMENT = 9
"""Positions of the kernel of the regular convolution that replaces a larger one: 3 x 3, as in the fused MBConv of
EfficientNetV2 (https://arxiv.org/abs/2104.00298, section 3.2)."""


@dataclass(frozen=True, slots=True)
class Depthwise(OperationRows):
    """The depthwise convolutions of a step, and FLOP rates; None is unknown."""

    rows: tuple[OperationTime, ...]
    flop_s: float | None
    others_flop_s: float | None  # of all other convolutions and matmuls
    fastest_flop_s: float | None  # of the fastest convolution in the same precision
    break_even_flop_s: float | None  # above which regular convolutions take less time than these
    reached_flop_s: float  # of the fastest convolution of this run, or the known peak rate; 0 is unknown

    @classmethod
    def of(cls, rows: tuple[OperationTime, ...], operations: Operations, hardware: Hardware) -> Self:
        """Compare their rates with those of the other operations of the run."""
        precisions = {row.precision for row in rows}
        fastest = fastest_flop_s(
            row for row in operations.matrix if row.type.startswith("Conv") and row.precision in precisions
        )
        regular, time_ms = _regular(rows), sum(row.ms for row in rows)
        break_even = regular / (time_ms * 1e-3) if regular and time_ms else None
        reached = max(fastest or 0.0, hardware.peak_flop_s or 0.0)
        return cls(rows, flop_s(rows), flop_s(operations.matrix), fastest, break_even, reached)

    @property
    def at(self) -> Location | None:
        """The line of the longest one, a forward one where that is known: gradients have the line of a layer."""
        forward = [row for row in self.rows if not GRADIENT.search(row.name)]
        return next((row.at for row in (*forward, *self.rows) if row.at), None)

    @property
    def regular_pays(self) -> bool | None:
        """Whether regular convolutions can take less time than these; None is unknown."""
        known = self.break_even_flop_s is not None and self.reached_flop_s
        return self.reached_flop_s > (self.break_even_flop_s or 0.0) if known else None


def _regular(rows: Iterable[OperationTime]) -> float | None:
    """Return the FLOPs of convolutions of all channels with a kernel of at most 3 x 3; None if any is unknown."""
    total = 0.0
    for row in rows:
        kernel = row.kernel
        if not row.flops or kernel is None or len(kernel) < 3:  # noqa: PLR2004 - height, width, channels
            return None
        total += row.flops * row.calls * kernel[2] * min(1.0, REPLACEMENT / prod(kernel[:2]))
    return total
