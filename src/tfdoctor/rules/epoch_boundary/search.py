"""The search for work between epochs: validation, prediction, saving, waits, and lines in Python."""

from collections.abc import Iterable, Iterator

from tfdoctor.facts.phases.run_calls import MadeCall, RunCalls
from tfdoctor.facts.phases.run_phases import RunPhases
from tfdoctor.facts.phases.run_steps import RunSteps
from tfdoctor.facts.run_work.call_overhead import (
    FEW_ROWS,
    LARGE_ROWS,
    SMALL_BATCH_MS,
    call_overheads,
    in_each_epoch,
    rows_per_batch,
)
from tfdoctor.facts.run_work.line_groups import line_groups
from tfdoctor.rules.epoch_boundary.causes import RARELY, BoundaryCause, BoundaryWork
from tfdoctor.terms.kinds import Phase, RunCall
from tfdoctor.terms.verdict import Location

WITHIN_FIT = (RunCall.FIT, RunCall.EPOCH)

SELDOM = 0.2
"""Share of a validation's time that remains where it runs in every fifth epoch."""

FEWEST_FIRST = 3
"""Long first steps from which on they come with each epoch: the first one of all also traces."""


def between_epochs(
    phases: RunPhases, calls: RunCalls, steps: RunSteps | None, *, validation: float
) -> list[BoundaryCause]:
    """Return all work between epochs that is known, what saves most first.

    Validation counts from a ratio to the training steps on.
    """
    saves = [one for one in per_epoch(calls, RunCall.SAVE) if not calls.within_epochs(one)]
    loops = [one.call for one in call_overheads(calls, RunCall.PREDICT)]  # slow-prediction's
    predicts = [one for one in per_epoch(calls, RunCall.PREDICT) if one not in loops]
    filling = list(_filling(steps))
    waits, fits = {cause.at for cause in filling}, {call.at for call in calls.of(RunCall.FIT)}
    sampled = line_groups(phases.at(Phase.BOUNDARIES))
    groups = [(group, group.at) for group in sampled if group.at and group.at not in waits]
    found = [
        *_validations(calls, steps, validation),
        *_of_calls(predicts, BoundaryWork.PREDICTION, Phase.PREDICTION),
        *_of_calls(saves, BoundaryWork.SAVING, Phase.SAVING),
        *filling,
        *(
            BoundaryCause.of_group(group, at, _usual(phases, at, calls.epochs), fits=at in fits)
            for group, at in groups
        ),
    ]
    return sorted(found, key=lambda cause: -cause.saved_ms)


def _usual(phases: RunPhases, at: Location, epochs: int) -> float:
    """Return the share of the time at a line, 0 to 1, without what the longest stretch has beyond all others.

    All of it where the account joins the stretches of several epochs.
    """
    times = [span.end_s - span.start_s for span in phases.spans if span.phase is Phase.BOUNDARIES and span.at == at]
    *_, second, longest = (0.0, 0.0, *sorted(times))
    return 1.0 - (longest - second) / sum(times) if len(times) >= epochs - 1 and second else 1.0


def _validations(calls: RunCalls, steps: RunSteps | None, least: float) -> Iterator[BoundaryCause]:
    """Yield validations that take longer than all training steps."""
    if steps is None or not steps.total_ms:
        return
    for call in per_epoch(calls, RunCall.EVALUATE):
        if call.at is None or call.ms < least * steps.total_ms:
            continue
        work, left = _judged(call, calls.epochs, steps)
        yield BoundaryCause(
            work=work, at=call.at, phase=Phase.EVALUATION, time_ms=call.ms, left=left, calls=call.count
        )


def _judged(call: MadeCall, epochs: int, steps: RunSteps) -> tuple[BoundaryWork, float]:
    """Return what is wrong with a validation, and the share of it that remains."""
    rows = rows_per_batch(call)
    batch_ms = call.each_ms / call.batches if call.batches else None
    if rows and batch_ms and rows <= FEW_ROWS and batch_ms <= SMALL_BATCH_MS:
        return BoundaryWork.SMALL_BATCHES, rows / LARGE_ROWS
    if call.count > 2 * epochs:
        return BoundaryWork.OFTEN, epochs / call.count
    if batch_ms and batch_ms > steps.median_ms:  # without gradients, and yet longer than with them
        return BoundaryWork.VALIDATION, steps.median_ms / batch_ms
    return BoundaryWork.VALIDATION, SELDOM


def _of_calls(made: Iterable[MadeCall], work: BoundaryWork, phase: Phase) -> Iterator[BoundaryCause]:
    for one in made:
        if one.at:
            yield BoundaryCause(work=work, at=one.at, phase=phase, time_ms=one.ms, left=RARELY, calls=one.count)


def per_epoch(calls: RunCalls, kind: RunCall) -> tuple[MadeCall, ...]:
    """Return the calls of a kind within fit, or about once in each epoch of the user's loop."""
    made = calls.of(kind)
    within = [call for call in made if call.within in WITHIN_FIT and 2 * call.count >= calls.epochs]
    loops = [
        call
        for call in in_each_epoch(made, calls.epochs)
        if call not in within and not call.before_training and not call.after_training
    ]
    return (*within, *loops)


def _filling(steps: RunSteps | None) -> Iterator[BoundaryCause]:
    """Yield the wait for the first batch of each epoch; its median, since the first step of all also traces."""
    long = steps.long if steps else None
    if steps is None or long is None or steps.at is None or long.first < FEWEST_FIRST:
        return
    waits_ms = min(long.first_beyond_ms, long.first * long.first_median_ms)
    yield BoundaryCause(
        work=BoundaryWork.FILLING, at=steps.at, phase=Phase.BOUNDARIES, time_ms=waits_ms, calls=long.first
    )
