"""One training step, and how steps follow each other."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.timeline.host_events import matching
from tfdoctor.trace.names import COMPILES

PS_PER_MS = 1_000_000_000


class Step(Record):
    """One call of the training step, in ps since the profile's start.

    ``calls`` training steps ran inside it (``steps_per_execution``); ``call_end_ps`` is when the
    call returned, ``end_ps`` when the next one began.
    """

    number: int
    start_ps: int
    call_end_ps: int
    end_ps: int
    calls: int = 1

    @property
    def total_ms(self) -> float:
        """Milliseconds per training step."""
        return (self.end_ps - self.start_ps) / PS_PER_MS / self.calls


def bounds_of(steps: Iterable[Step]) -> NDArray[np.int64]:
    """Return (2, n) when steps begin, and when they end."""
    return pairs_of((step.start_ps, step.end_ps) for step in steps).T


def steps_between(starts_ps: NDArray[np.int64], ends_ps: NDArray[np.int64]) -> list[Step]:
    """Return steps by their (n,) starts and ends, numbered in order."""
    pairs = zip(starts_ps.tolist(), ends_ps.tolist(), strict=True)
    return [Step(number, start, end, end) for number, (start, end) in enumerate(pairs)]


def chain(steps: Iterable[Step]) -> list[Step]:
    """Sort steps and let each end, with its call, where the next one begins at the latest."""
    ordered = sorted(steps, key=lambda step: step.start_ps)
    chained = (
        Step(step.number, step.start_ps, min(step.call_end_ps, next_ps), next_ps, step.calls)
        for step, next_ps in zip(ordered, (step.start_ps for step in ordered[1:]), strict=False)
    )
    return [*chained, *ordered[-1:]]


def compilations(trace: Trace) -> Intervals:
    """Return when XLA's compiler worked, by its own events on any thread of the host, in ps."""
    return Intervals.any_of(matching(line, COMPILES) for line in trace.host_lines if len(line))
