"""The cases of python-in-loop: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.execution.python_in_loop import LoopLines, check

HISTOGRAM = Location("train.py", 36)


def example(
    *lines: TimedLine,
    seen: int = 11,
    samples: int = 12,
    body_ms: float | None = None,
    step: float | None = None,
    syncs_ms: float = 0.0,
    single: SingleOperations | None = None,
) -> Verdict:
    """Judge these lines of a loop over a dataset, in steps of ``step`` or that compute for 3 ms."""
    time_ms = sum(line.ms for line in lines) if body_ms is None else body_ms
    return check(
        LoopLines(lines, seen, samples, time_ms),
        Breakdown.of(host=time_ms, device=step - time_ms if step else 3.0),
        HostSyncs(1.0, 1.0, host_ms=syncs_ms) if syncs_ms else None,
        single,
    )


def sick() -> Verdict:
    """Histograms of the weights take 4 of each 7 ms step, in a loop over a dataset."""
    return example(TimedLine(HISTOGRAM, 9, 4.0, makes=False))


def healthy() -> Verdict:
    """The same loop, which makes histograms every 100 steps: 0.04 ms of each 3 ms step."""
    return example(TimedLine(HISTOGRAM, 9, 0.04, makes=False))
