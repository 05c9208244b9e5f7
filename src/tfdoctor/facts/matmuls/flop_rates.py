"""The FLOP rates of operations: of several together, and of the fastest."""

from collections.abc import Iterable

from tfdoctor.facts.operations.operation_time import OperationTime

# Shortest time of one call whose rate is compared, in ms: launching, or starting threads, takes as long.
SHORTEST_MS = 0.05


def flop_s(rows: Iterable[OperationTime]) -> float | None:
    """Return the rate of those whose FLOPs are known; None where there is none."""
    known = [row for row in rows if row.flops]
    seconds = sum(row.ms for row in known) * 1e-3
    return sum((row.flops or 0.0) * row.calls for row in known) / seconds if seconds else None


def fastest_flop_s(rows: Iterable[OperationTime]) -> float | None:
    """Return the highest rate; None where no call is long enough, or its FLOPs are unknown."""
    return max((row.flop_s for row in rows if row.flops and row.ms > SHORTEST_MS * row.calls), default=None)
