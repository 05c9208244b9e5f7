"""Depthwise convolutions: the line of them, and the arithmetic of regular ones in their place."""

from collections.abc import Iterable, Sequence
from math import prod

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.terms.verdict import Location
from tfdoctor.trace.names import GRADIENT

# Positions of the kernel of the regular convolution that replaces a larger one: 3 x 3, as in the fused MBConv of
# EfficientNetV2 (https://arxiv.org/abs/2104.00298, section 3.2).
REPLACEMENT = 9


def regular_flops(rows: Iterable[OperationTime]) -> float | None:
    """Return the FLOPs of convolutions of all channels with a kernel of at most 3 x 3; None if any is unknown."""
    total = 0.0
    for row in rows:
        kernel = row.kernel
        if not row.flops or kernel is None or len(kernel) < 3:  # noqa: PLR2004 - height, width, channels
            return None
        total += row.flops * row.calls * kernel[2] * min(1.0, REPLACEMENT / prod(kernel[:2]))
    return total


def line_of(rows: Sequence[OperationTime]) -> Location | None:
    """Return the line of the longest one, of a forward one if that is known: gradients have the line of a layer."""
    forward = [row for row in rows if not GRADIENT.search(row.name)]
    return next((row.at for row in (*forward, *rows) if row.at), None)
