"""The first steps of epochs: what they take beyond a usual step is the epoch's boundary, not a step.

They wait for a new iterator, or until a shuffle buffer is full.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.bucket_pieces import RunPiece
from tfdoctor.facts.phases.call_phases import OF_CALL
from tfdoctor.facts.phases.call_tree import CallTree
from tfdoctor.facts.phases.run_clock import MS
from tfdoctor.recording.run_log import RunLog
from tfdoctor.terms.kinds import Phase

LONG = 1.5
"""Times the usual step from which a first step is long, as the recorder defines a long one."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class FirstSteps:
    """Long first steps as begin, end and ms beyond a usual step that no other call explains; in order."""

    steps: tuple[tuple[float, float, float], ...]

    @classmethod
    def of(cls, log: RunLog, tree: CallTree) -> Self:
        """Take those that the log names."""
        calls = [(span.start, span.end) for span in log.spans if tree.kind(span.call) in OF_CALL]
        traces = [(trace.start, trace.start + trace.ms / MS) for trace in log.traces]
        others, found = union(calls + traces), []
        for step in log.long_steps:
            end = step.start + step.ms / MS
            if step.first and step.ms > LONG * step.usual_ms and end > step.start:
                # A call that traces contains its step.
                explained = MS * overlap(others, step.start, end)
                beyond = max(0.0, step.ms - max(step.usual_ms, explained))
                found.append((step.start, end, beyond))
        return cls(tuple(sorted(found)))

    def move(self, start: float, end: float, pieces: list[RunPiece]) -> list[RunPiece]:
        """Return the pieces of a bucket, from s to s, with its part of these steps moved to the boundaries."""
        left = sum(
            ms * ((min(ended, end) - max(begun, start)) / (ended - begun))
            for begun, ended, ms in self._near(start, end)
        )
        steps = [piece for piece in pieces if piece.phase is Phase.STEPS]
        steps.sort(key=lambda piece: not piece.long)
        if not left or not steps:
            return pieces
        moved = [piece for piece in pieces if piece.phase is not Phase.STEPS]
        for piece in steps:
            taken = min(piece.ms, left)
            left -= taken
            moved += [piece.part(taken, Phase.BOUNDARIES), piece.part(piece.ms - taken, Phase.STEPS)]
        return [piece for piece in moved if piece.ms]

    def _near(self, start: float, end: float) -> Iterator[tuple[float, float, float]]:
        """Yield the steps that lie in a bucket, the last one first; they do not overlap."""
        for step in reversed(self.steps[: bisect_left(self.steps, (end,))]):
            if step[1] <= start:
                return
            yield step


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals in order, those that overlap as one."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def overlap(merged: Sequence[Interval], start: float, end: float) -> float:
    """Return how much of merged intervals lies between two times."""
    total = 0.0
    for begun, ended in merged[max(0, bisect_left(merged, (start, start)) - 1) :]:
        if begun >= end:
            break
        total += max(0.0, min(ended, end) - max(begun, start))
    return total
