"""The run from its begin to its end as stretches of time, each divided into pieces of phases and lines.

What the first steps of epochs take beyond a usual step is the epoch's boundary, not a step: they wait for a new
iterator, or until a shuffle buffer is full.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.bucket_pieces import BucketPieces, RunPiece
from tfdoctor.facts.phases.call_phases import OF_CALL
from tfdoctor.facts.phases.call_tree import CallTree
from tfdoctor.facts.phases.run_clock import MS, RunClock
from tfdoctor.facts.phases.run_course import RunCourse
from tfdoctor.recording.run_log import RunLog
from tfdoctor.terms.kinds import Phase

# Time after the last record of a killed process that counts as its end: a record is written once a second, and the
# launcher looks for its end about as often.
UNSEEN_END_S = 3.0

LEAST_S = 1e-9

LONG = 1.5  # Times the usual step from which a first step is long, as the recorder defines a long one


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some time of the run, in s since the process began; ``number`` is that of its bucket, None of a gap."""

    start: float
    end: float
    pieces: tuple[RunPiece, ...]
    number: int | None = None


def stretches(log: RunLog, tree: CallTree, course: RunCourse, clock: RunClock) -> list[Stretch]:
    """Return all time from the begin of the run to its end, without gaps."""
    found: list[Stretch] = []
    divided, first_steps, at = BucketPieces.of(log, tree, course), FirstSteps.of(log, tree), clock.begin
    for number, bucket in enumerate(log.buckets):
        found += _gap(at, bucket.start, Phase.UNNAMED if found else Phase.START)
        pieces = first_steps.move(bucket.start, bucket.end, divided.pieces(number))
        found.append(Stretch(bucket.start, bucket.end, tuple(pieces), number))
        at = bucket.end
    if not found:
        began = min(clock.end, log.process.began)
        found, at = list(_gap(at, began, Phase.START)), began
    ends = clock.finished or clock.end - at <= UNSEEN_END_S
    return [*found, *_gap(at, clock.end, Phase.END if ends else Phase.UNNAMED)]


def _gap(start: float, end: float, phase: Phase) -> Iterator[Stretch]:
    if end - start > LEAST_S:
        yield Stretch(start, end, (RunPiece(phase=phase, ms=(end - start) * MS),))


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """Long first steps as begin, end and ms beyond a usual step that no other call explains; in order."""

    steps: tuple[tuple[float, float, float], ...]

    @classmethod
    def of(cls, log: RunLog, tree: CallTree) -> Self:
        """Take those that the log names."""
        calls = [(span.start, span.end) for span in log.spans if tree.kind(span.call) in OF_CALL]
        traces = [(trace.start, trace.start + trace.ms / MS) for trace in log.traces]
        others, found = _union(calls + traces), []
        for step in log.long_steps:
            end = step.start + step.ms / MS
            if step.first and step.ms > LONG * step.usual_ms and end > step.start:
                # A call that traces contains its step.
                explained = MS * _overlap(others, step.start, end)
                found.append((step.start, end, max(0.0, step.ms - max(step.usual_ms, explained))))
        return cls(tuple(sorted(found)))

    def move(self, start: float, end: float, pieces: list[RunPiece]) -> list[RunPiece]:
        """Return the pieces of a bucket, from s to s, with its part of these steps moved to the boundaries."""
        left = 0.0
        for begun, ended, ms in reversed(self.steps[: bisect_left(self.steps, (end,))]):
            if ended <= start:
                break  # they do not overlap
            left += ms * ((min(ended, end) - max(begun, start)) / (ended - begun))
        steps = sorted((piece for piece in pieces if piece.phase is Phase.STEPS), key=lambda piece: not piece.long)
        if not left or not steps:
            return pieces
        moved = [piece for piece in pieces if piece.phase is not Phase.STEPS]
        for piece in steps:
            taken = min(piece.ms, left)
            left -= taken
            moved += [piece.part(taken, Phase.BOUNDARIES), piece.part(piece.ms - taken, Phase.STEPS)]
        return [piece for piece in moved if piece.ms]


def _union(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _overlap(merged: Sequence[tuple[float, float]], start: float, end: float) -> float:
    total = 0.0
    for begun, ended in merged[max(0, bisect_left(merged, (start, start)) - 1) :]:
        if begun >= end:
            break
        total += max(0.0, min(ended, end) - max(begun, start))
    return total
