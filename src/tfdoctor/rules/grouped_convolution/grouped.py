"""Grouped convolutions of a step, and the FLOP rate that regular ones reach beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.operation_time import OperationTime, fastest_flop_s
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.operation_types import CONVOLUTIONS

# Dimensions that a convolution's kernel has at least: height, width, channels of a group, filters.
SIZES_OF_KERNEL = 4


@dataclass(frozen=True, slots=True)
class GroupedConvolutions:
    """The grouped convolutions whose FLOPs are known, forward or gradients, and their groups by layer or name.

    ``regular_flop_s`` is the rate of the fastest regular one; None is unknown.
    """

    rows: tuple[OperationTime, ...]
    groups: Mapping[str, int] = field(default_factory=dict)
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
        grouped = {row.layer or row.name: groups for row, groups in timed if groups > 1}
        of_groups = tuple(row for row, groups in timed if groups > 1)
        precisions = {row.precision for row in of_groups}
        regular = (row for row, groups in timed if groups == 1 and row.precision in precisions)
        return cls(of_groups, grouped, fastest_flop_s(regular))


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
