"""When XLA's compiler ran, on any thread of the host."""

from collections.abc import Sequence

from tfdoctor.facts.steps.step import Step
from tfdoctor.facts.timeline.trainer import matching
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import COMPILES

# Share of a step's time from which it counts as compiling, and share of the steps below which such steps are the
# exception.
MOSTLY = 0.5


def compilations(trace: Trace) -> Intervals:
    """Return when the compiler worked, by its own events, in ps."""
    return Intervals.any_of(matching(line, COMPILES) for line in trace.host_lines if len(line))


def exceptions(steps: Sequence[Step], compiling: Intervals) -> tuple[bool, ...]:
    """Return (steps,) which mostly compiled, provided that fewer steps did than did not."""
    mostly = tuple(
        compiling.within(step.start_ps, step.end_ps).total >= MOSTLY * max(1, step.end_ps - step.start_ps)
        for step in steps
    )
    return mostly if sum(mostly) < MOSTLY * len(mostly) else (False,) * len(mostly)
