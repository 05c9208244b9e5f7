"""One training step, how steps follow each other, and which long ones the run pays for.

A shuffle buffer that is filled at the start of each pass, a file that is opened, or a generator that makes
several batches at once delays a few steps by much, again and again. Such steps are no accident: their wait is the
input's time, so the mean step counts. Where batches come in bursts, as from several workers, steps are short and
long in turn, and none is an outlier. Steps in which XLA compiles are exceptions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.timeline.trainer import matching
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.names import COMPILES

PS_PER_MS = 1_000_000_000
# Share of a step's time from which it counts as compiling, and share of the steps below which such steps are the
# exception.
COMPILING = 0.5
MOSTLY = 0.5  # Share of a long step's time beyond the median that the wait for input takes at least
# Smallest share of the traced time that stalls take beyond other steps; step-outlier has the same limit.
SHARE = 0.05
# Times the mean of the short steps that the long ones take at least: the time of a batch varies by less.
BURSTS = 2.0
# Separate occasions from which stalls recur: one may be chance, and adjacent long steps are one occasion.
OCCASIONS = 2


@dataclass(frozen=True, slots=True)
class Step:
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


def steps_between(starts_ps: NDArray[np.int64], ends_ps: NDArray[np.int64]) -> list[Step]:
    """Return steps by their (n,) starts and ends, numbered in order."""
    pairs = zip(starts_ps.tolist(), ends_ps.tolist(), strict=True)
    return [Step(number, start, end, end) for number, (start, end) in enumerate(pairs)]


def chain(steps: Iterable[Step]) -> list[Step]:
    """Sort steps and let each end, with its call, where the next one begins at the latest."""
    ordered = sorted(steps, key=lambda step: step.start_ps)
    next_starts = [step.start_ps for step in ordered[1:]]
    chained = [
        replace(step, call_end_ps=min(step.call_end_ps, following_ps), end_ps=following_ps)
        for step, following_ps in zip(ordered, next_starts, strict=False)
    ]
    return chained + ordered[len(chained) :]


def compilations(trace: Trace) -> Intervals:
    """Return when the compiler worked, by its own events, in ps."""
    return Intervals.any_of(matching(line, COMPILES) for line in trace.host_lines if len(line))


def exceptions(steps: Sequence[Step], compiling: Intervals) -> tuple[bool, ...]:
    """Return (steps,) which mostly compiled, provided that fewer steps did than did not."""
    mostly = tuple(
        compiling.within(step.start_ps, step.end_ps).total >= COMPILING * max(1, step.end_ps - step.start_ps)
        for step in steps
    )
    return mostly if sum(mostly) < COMPILING * len(mostly) else (False,) * len(mostly)


def input_stalls(  # noqa: PLR0913, PLR0917 - the traced steps, and what is known of the others
    steps: Sequence[Step],
    long: Sequence[bool],
    waits: Intervals,
    usual_ms: float,
    pass_steps: float | None,
    untraced: UntracedSteps | None = None,
    apart_ms: float = 0.0,
) -> tuple[bool, ...]:
    """Return (steps,) which of the long steps wait for input, if they recur; () otherwise.

    ``pass_steps`` are the training steps of one pass over the data; None is unknown. A single occasion recurs if
    it is at the end of a pass, and the traced steps hold a whole pass. Stalls that take little of the steps' time
    are left out, and those that the untraced steps lack, or the begins of their passes. ``apart_ms`` is the time
    of untraced steps that are long for another reason.
    """
    stalled = _stalled(steps, long, waits, usual_ms)
    stalls = [step for step, is_stall in zip(steps, stalled, strict=True) if is_stall]
    beyond_ms = sum((step.total_ms - usual_ms) * step.calls for step in stalls)
    share = beyond_ms / sum(step.total_ms * step.calls for step in steps)
    if share < SHARE or (untraced and untraced.contradict(share, len(steps), usual_ms, apart_ms)):
        return ()
    begins = [at for at, (before, now) in enumerate(pairwise((False, *stalled))) if now > before]
    recur = len(begins) >= OCCASIONS
    if not recur and pass_steps and sum(step.calls for step in steps) >= pass_steps:
        # The last step of a pass, or the first of the next one.
        begun = steps[begins[0]].number
        at_end = any(place and place % ceil(pass_steps) == 0 for place in (begun, begun + 1))
        longest_ms = max(step.total_ms for step in stalls)
        recur = at_end and not (untraced and untraced.begin_passes_as_usual(ceil(pass_steps), longest_ms))
    return stalled if recur else ()


def input_bursts(
    steps: Sequence[Step], steady: Sequence[bool], waits: Intervals, untraced: UntracedSteps | None = None
) -> tuple[bool, ...]:
    """Return (steps,) which steady steps are long because input comes in bursts; () where it does not.

    The wait for input is most of what the long steps take beyond the short ones, on several occasions, and the mean
    untraced step shows at least half of that.
    """
    times, among = np.array([step.total_ms for step in steps]), np.array(steady, np.bool_)
    ordered = np.sort(times[among])
    below, sums = np.arange(1, len(ordered)), np.cumsum(ordered)[:-1]
    if not len(below):
        return ()
    # The longest of the short steps, where those of two kinds differ most: Otsu's method.
    apart = (ordered.sum() - sums) / (len(ordered) - below) - sums / below
    long = among & (times > ordered[np.argmax(below * below[::-1] * apart**2)])
    short = among & ~long
    if not long.any() or not short.any() or times[long].mean() < BURSTS * times[short].mean():
        return ()
    usual_ms = float(np.median(times[short]))
    stalled = _stalled(steps, long.tolist(), waits, usual_ms)
    beyond_ms = times[np.array(stalled)].sum() - usual_ms * sum(stalled)
    begins = sum(now and not before for before, now in pairwise((False, *stalled)))
    if begins < OCCASIONS or beyond_ms < MOSTLY * (times[long] - usual_ms).sum():
        return ()
    mean_ms = untraced.mean_ms if untraced else None
    return () if mean_ms and mean_ms < usual_ms + beyond_ms / len(steps) / 2 else stalled


def _stalled(steps: Sequence[Step], long: Sequence[bool], waits: Intervals, usual_ms: float) -> tuple[bool, ...]:
    return tuple(
        is_long and waited_ms >= MOSTLY * (step.total_ms - usual_ms)
        for step, is_long in zip(steps, long, strict=True)
        for waited_ms in [waits.within(step.start_ps, step.end_ps).total / PS_PER_MS / step.calls]
    )
