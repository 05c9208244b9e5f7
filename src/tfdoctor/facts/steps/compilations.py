"""When XLA's compiler was at work on any thread of the host."""

from collections.abc import Sequence

from tfdoctor.facts.steps.step import Step
from tfdoctor.facts.timeline.trainer import matching
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import COMPILES

MOSTLY = 0.5
"""Share of a step from which it is one of compiling, and share of the steps up to which such are the exception."""


def compilations(trace: Trace) -> Intervals:
    """Return when the compiler's own events say that it worked, in ps."""
    found = Intervals()
    for line in trace.host_lines:
        if len(line):
            found |= matching(line, COMPILES)
    return found


def exceptions(steps: Sequence[Step], compiling: Intervals) -> tuple[bool, ...]:
    """Return (steps,) which were spent mostly on compiling, where these are fewer than the others."""
    found = tuple(
        compiling.within(s.start_ps, s.end_ps).total >= MOSTLY * max(1, s.end_ps - s.start_ps)
        for s in steps
    )
    return found if sum(found) < MOSTLY * len(found) else (False,) * len(found)
