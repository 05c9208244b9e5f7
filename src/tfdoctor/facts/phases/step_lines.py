"""How far the steps of a run spend their time as those around the traced ones do: by the lines of all samples."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_pieces import RunPiece, Stretch
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
    near, every = StepLines(), StepLines()
    for part in parts:
        for piece in (piece for piece in part.pieces if piece.phase is Phase.STEPS):
            every.add(piece, comparable=not piece.seen.long or piece.seen.at not in calls)
            if part.number is not None and first <= part.number <= last and not piece.seen.long:
                near.add(piece)
    if min(near.samples, every.samples) < ENOUGH:
        return None
    return sum(min(ms / near.ms, every.lines.get(at, 0.0) / every.ms) for at, ms in near.lines.items())


class StepLines:
    """The ms of each line that is comparable, of all, and the number of samples."""

    def __init__(self) -> None:
        """Start with none."""
        self.lines: dict[SourceLine | None, float] = {}
        self.ms = self.samples = 0.0

    def add(self, piece: RunPiece, *, comparable: bool = True) -> None:
        """Count a piece."""
        self.ms += piece.ms
        self.samples += piece.samples
        if comparable:
            self.lines[piece.seen.at] = self.lines.get(piece.seen.at, 0.0) + piece.ms
