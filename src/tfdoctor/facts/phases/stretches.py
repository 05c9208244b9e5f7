"""The run from its begin to its end as stretches of time, each divided into pieces of phases and lines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.bucket_pieces import BucketPieces, RunPiece
from tfdoctor.facts.phases.call_tree import CallTree
from tfdoctor.facts.phases.first_steps import FirstSteps
from tfdoctor.facts.phases.run_clock import MS, RunClock
from tfdoctor.facts.phases.run_course import RunCourse
from tfdoctor.recording.run_log import RunLog
from tfdoctor.terms.kinds import Phase

UNSEEN_END_S = 3.0
"""Time after the last record of a killed process that counts as its end: a record is written once a second, and the
launcher looks for its end about as often."""

LEAST_S = 1e-9


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some time of the run, in s since the process began; ``number`` is that of its bucket, None of a gap."""

    start: float
    end: float
    pieces: tuple[RunPiece, ...]
    number: int | None = None

    @classmethod
    def all(cls, start: float, end: float, phase: Phase) -> Self:
        """Return time of one phase."""
        return cls(start, end, (RunPiece(phase=phase, ms=(end - start) * MS),))


def stretches(log: RunLog, tree: CallTree, course: RunCourse, clock: RunClock) -> list[Stretch]:
    """Return all time from the begin of the run to its end, without gaps."""
    found: list[Stretch] = []
    divided = BucketPieces.of(log, tree, course)
    first_steps = FirstSteps.of(log, tree)
    at = clock.begin
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
        yield Stretch.all(start, end, phase)
