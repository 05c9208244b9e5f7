"""How far the steps of a run spend their time as those around the traced ones do: by the lines of all samples."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_pieces import Stretch
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import RunLog

# Buckets on either side of the traced ones whose steps are near them.
AROUND = 2
ENOUGH = 20  # Samples of steps near the traced ones, and of all, from which they are compared
# The calls that a step is in, at whose lines the stack of every step is.
TRAINING = (RunCall.FIT, RunCall.EPOCH, RunCall.STEP)


def lines_that_train(recording: Recording) -> frozenset[SourceLine]:
    """Return the lines of the calls that train, and of the loops around them: they do not say what a step does."""
    log, manifest = recording.run, recording.manifest
    lines = [call.at for call in log.calls.values() if call.call in TRAINING] if log else []
    lines += [one.frames[0][:2] for one in log.training if one.frames] if log else []
    if manifest:
        lines += [manifest.steps.at, *(loop.at for loop in manifest.steps.candidates)]
        lines += [manifest.window.at] if manifest.window else []
    return frozenset(line for line in lines if line)


def alike(parts: Sequence[Stretch], log: RunLog, calls: Collection[SourceLine]) -> float | None:
    """Return the share of the time of all steps that is divided into lines as near the traced ones, 0 to 1.

    That is the sum over lines of the smaller of two shares: near the traced steps, without long ones, and in all.
    At ``calls`` that train nothing shows whether long steps do the same: there those count that are not long. None
    is unknown: no step was traced, or too few were sampled.
    """
    traced = [number for number, one in log.steps if one.traced]
    if not traced:
        return None
    first, last = min(traced) - AROUND, max(traced) + AROUND
    every = [(one, part.number) for part in parts for one in part.pieces if one.phase is Phase.STEPS]
    near = [one for one, number in every if number is not None and first <= number <= last and not one.seen.long]
    if min(sum(one.samples for one in near), sum(one.samples for one, _ in every)) < ENOUGH:
        return None
    comparable = summed((one.seen.at, one.ms) for one, _ in every if not one.seen.long or one.seen.at not in calls)
    near_ms, all_ms = sum(one.ms for one in near), sum(one.ms for one, _ in every)
    lines = summed((one.seen.at, one.ms) for one in near)
    return sum(min(ms / near_ms, comparable.get(at, 0.0) / all_ms) for at, ms in lines.items())
