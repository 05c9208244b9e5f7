"""The long steps that wait for input again and again: the run pays for them, so the mean step does.

A shuffle buffer that is filled at the start of each pass, a file that is opened, or a generator that makes
several batches at once delays a few steps by much. Such steps are no accident: their wait is the input's time.
"""

from collections.abc import Sequence
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
    beyond_ms = sum(
        (step.total_ms - usual_ms) * step.calls
        for step, is_stall in zip(steps, stalled, strict=True)
        if is_stall
    )
    share = beyond_ms / sum(step.total_ms * step.calls for step in steps)
    if share < SHARE or (untraced and untraced.contradict(share, len(steps), usual_ms, apart_ms)):
        return (False,) * len(stalled)
    begins = [
        at for at, is_stall in enumerate(stalled) if is_stall and not (at and stalled[at - 1])
    ]
    if len(begins) >= OCCASIONS:
        return stalled
    ends = any(_ends_pass(steps, stalled, at, pass_steps) for at in begins)
    if ends and not (pass_steps and untraced and _as_usual(steps, stalled, pass_steps, untraced)):
        return stalled
    return (False,) * len(stalled)


def _waits(step: Step, waits: Intervals, usual_ms: float) -> bool:
    waited_ms = waits.within(step.start_ps, step.end_ps).total / PS_PER_MS / step.calls
    return waited_ms >= MOSTLY * (step.total_ms - usual_ms)


def _as_usual(
    steps: Sequence[Step], stalled: Sequence[bool], pass_steps: float, untraced: UntracedSteps
) -> bool:
    """Whether untraced passes begin without a step as long as the longest stall."""
    longest_ms = max(
        step.total_ms for step, is_stall in zip(steps, stalled, strict=True) if is_stall
    )
    return untraced.begin_passes_as_usual(ceil(pass_steps), longest_ms)


def _ends_pass(
    steps: Sequence[Step], stalled: Sequence[bool], at: int, pass_steps: float | None
) -> bool:
    """Whether a stall begins in the last step of a pass or in the first of the next one."""
    traced = sum(step.calls for step in steps)
    if pass_steps is None or traced < pass_steps or not stalled[at]:
        return False
    return any(
        number and number % ceil(pass_steps) == 0
        for number in (steps[at].number, steps[at].number + 1)
    )
