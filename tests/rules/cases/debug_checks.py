"""The cases of debug-checks: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.debug_checks import check
from tfdoctor.rules.execution.debug_checks.checking_operations import DebugChecks


def example(
    *rows: OperationTime,
    calls: float = 456.0,
    host_ms: float | None = None,
    step: Breakdown | None = None,
    everywhere: bool = True,
) -> Verdict:
    """The checks of all tensors take 3 of 13 ms of compute, and half of the host's time."""
    kind = "CheckNumericsV2"
    checking = rows or (OperationTime(name=kind, type=kind, ms=0.007 * calls, calls=calls),)
    starting_ms = 6.0 * calls / (calls + 500) if host_ms is None else host_ms
    at = Location("train.py", 5)
    checks = DebugChecks(checking, 0.0, starting_ms, everywhere=everywhere, at=at)
    return check(checks, step or Breakdown.of(host=6.0, device=checks.ms + 10.0))


sick = example


def healthy() -> Verdict:
    """A single assertion takes 7 microseconds."""
    return example(calls=1.0)
