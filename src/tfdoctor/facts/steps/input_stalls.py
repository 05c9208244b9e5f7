"""The long steps that wait for input again and again: the run pays for them, so the mean step does.

A shuffle buffer that is filled at the start of each pass, a file that is opened, or a generator that makes
several batches at once delays a few steps by much. Such steps are no accident: their wait is the input's time.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil

from tfdoctor.facts.steps.step import PS_PER_MS, Step
from tfdoctor.recording.agent import UntracedSteps
from tfdoctor.trace import Intervals

MOSTLY = 0.5
"""Share of a long step's time beyond the median that the wait for input takes at least."""

SHARE = 0.05
"""Smallest share of the traced time that stalls take beyond other steps; step-outlier has the same limit."""

OCCASIONS = 2
"""Separate occasions from which stalls recur: one may be chance, and adjacent long steps are one occasion."""


def input_stalls(  # noqa: PLR0913, PLR0917 - the traced steps, and what is known of the others
    steps: Sequence[Step],
    long: Sequence[bool],
    waits: Intervals,
    usual_ms: float,
    pass_steps: float | None,
    untraced: UntracedSteps | None = None,
    apart_ms: float = 0.0,
) -> tuple[bool, ...]:
    """Return (steps,) which of the long steps wait for input, if they recur; all False otherwise.

    ``pass_steps`` are the training steps of one pass over the data; None is unknown. A single occasion recurs if
    it is at the end of a pass, and the traced steps hold a whole pass. Stalls that take little of the steps' time
    are left out, and those that the untraced steps lack, or the begins of their passes. ``apart_ms`` is the time
    of untraced steps that are long for another reason.
    """
    stalled = tuple(
        is_long and _waits(step, waits, usual_ms) for step, is_long in zip(steps, long, strict=True)
    )
    stalls = [step for step, is_stall in zip(steps, stalled, strict=True) if is_stall]
    beyond_ms = sum((step.total_ms - usual_ms) * step.calls for step in stalls)
    share = beyond_ms / sum(step.total_ms * step.calls for step in steps)
    if share < SHARE or (untraced and untraced.contradict(share, len(steps), usual_ms, apart_ms)):
        return (False,) * len(stalled)
    begins = [at for at, (before, now) in enumerate(pairwise((False, *stalled))) if now > before]
    recur = len(begins) >= OCCASIONS
    if not recur and pass_steps and _ends_pass(steps, begins[0], pass_steps):
        longest_ms = max(step.total_ms for step in stalls)
        recur = not (untraced and untraced.begin_passes_as_usual(ceil(pass_steps), longest_ms))
    return stalled if recur else (False,) * len(stalled)


def _waits(step: Step, waits: Intervals, usual_ms: float) -> bool:
    waited_ms = waits.within(step.start_ps, step.end_ps).total / PS_PER_MS / step.calls
    return waited_ms >= MOSTLY * (step.total_ms - usual_ms)


def _ends_pass(steps: Sequence[Step], at: int, pass_steps: float) -> bool:
    """Whether one of the steps is the last of a pass or the first of the next one, and a whole pass was traced."""
    number = steps[at].number
    return sum(step.calls for step in steps) >= pass_steps and any(
        place and place % ceil(pass_steps) == 0 for place in (number, number + 1)
    )
