"""Grouped convolutions of a step, and the FLOP rate that regular ones reach beside them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import CONVOLUTIONS

SHORTEST_MS = 0.05
"""Shortest time of one call whose rate is compared, in ms: launching takes a part of shorter ones."""

SIZES_OF_KERNEL = 4
"""Dimensions that a convolution's kernel has at least: height, width, channels of a group, filters."""


@dataclass(frozen=True, slots=True)
class GroupedConvolution:
    """A grouped convolution, forward or a gradient."""

    row: OperationTime
    groups: int

    @property
    def flop_s(self) -> float:
        """Its FLOP rate."""
        return self.row.flop_s


@dataclass(frozen=True, slots=True)
class GroupedConvolutions:
    """The grouped convolutions whose FLOPs are known, and the rate of the fastest regular one; None is unknown."""

    rows: tuple[GroupedConvolution, ...]
    regular_flop_s: float | None = None

    @classmethod
    def measure(cls, operations: Operations) -> Self:
        """Find them by their shapes: the kernel has fewer input channels than the images.

        Raises:
            Unavailable: the trace does not contain the shapes of the convolutions.
        """
        rows = [row for row in operations.matrix if row.type in CONVOLUTIONS]
        known = [(row, groups) for row in rows if (groups := groups_of(row))]
        if rows and not known:
            raise Unavailable("the shapes of the convolutions are unknown")
        if not rows and operations.why_unlisted:
            raise Unavailable(operations.why_unlisted)
        timed = [(row, groups) for row, groups in known if row.flops and row.ms]
        grouped = tuple(GroupedConvolution(row, groups) for row, groups in timed if groups > 1)
        precisions = {one.row.precision for one in grouped}
        regular = (row for row, groups in timed if groups == 1 and row.precision in precisions)
        return cls(grouped, _fastest(regular))


def groups_of(row: OperationTime) -> int | None:
    """Return into how many groups a convolution divides the channels; None where a size is unknown."""
    graph, kernel = row.operation, row.kernel
    if graph is None or graph.compiled or kernel is None or len(kernel) < SIZES_OF_KERNEL:
        return None
    images = graph.outputs if row.type.rstrip("V2").endswith("Input") else graph.inputs
    shape = images[0][1] if images else None
    if not shape or not kernel[-2]:
        return None
    channels = shape[1] if graph.attrs.data_format.startswith("NC") else shape[-1]
    return channels // kernel[-2] if channels and channels % kernel[-2] == 0 else None


def _fastest(rows: Iterable[OperationTime]) -> float | None:
    return max((row.flop_s for row in rows if row.ms > SHORTEST_MS * row.calls), default=None)
