"""The time of a bucket of the log as pieces, each of one phase and one line of the user's.

The recorder times calls exactly and samples the stack; a call's exact time is divided as its samples in the bucket
are. Where there is none, the nearest buckets' samples of the call stand for it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from tfdoctor.facts.phases.call_phases import CallPhases
from tfdoctor.facts.phases.call_tree import CallTree, numbered
from tfdoctor.facts.phases.run_clock import MS
from tfdoctor.facts.phases.run_course import RunCourse
from tfdoctor.facts.phases.step_times import usual_step
from tfdoctor.recording.run_log import Bucket, Line, RunLog, SeenStack
from tfdoctor.terms.kinds import Phase, RunCall

NEAR = 2  # Buckets to either side whose samples stand for a call's time without any: a few s in the longest runs
# Share of a bucket that its calls must add up to; of less, the rest is unnamed, since the log is damaged.
COVERED = 0.95
# Usual steps up to which time after a training call is its loop's, as no sample shows anything else.
BRIEF_STEPS = 3

# Calls that run the user's code: callbacks, generators, the layers of an eager model.
WITH_OWN_LINES = frozenset({
    RunCall.FIT, RunCall.EPOCH, RunCall.STEP, RunCall.TRAIN, RunCall.TEST, RunCall.EVALUATE, RunCall.PREDICT,
    RunCall.FUNCTION,
})  # fmt: skip

# Calls whose own time is that of the line that makes them.
EXACT = WITH_OWN_LINES | {RunCall.TRACE, RunCall.COMPILE, RunCall.BUILD, RunCall.ADAPT, RunCall.SAVE}


class PieceLine(NamedTuple):
    """A line of the user's and what it calls; see SeenStack."""

    at: Line | None = None
    caller: Line | None = None
    calls: str = ""
    function: str = ""


NO_LINE = PieceLine()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPiece:
    """Some ms of a phase at a line; ``exact`` where a call at that line was timed, not sampled."""

    phase: Phase
    ms: float
    line: PieceLine = NO_LINE
    runs: str = ""
    samples: float = 0.0
    long: bool = False  # of a step longer than usual, after the usual time
    exact: bool = False
    repeats: bool | None = None  # whether a loop holds the line
    loops: int = 0  # loops that hold it, without those around a call that trains

    def part(self, ms: float, phase: Phase) -> Self:
        """Return some of its time, in a phase."""
        share = ms / self.ms if self.ms else 0.0
        return replace(self, ms=ms, phase=phase, samples=self.samples * share)


Seen = tuple[SeenStack, float, float]  # A stack with its ms and its number of samples in a bucket


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketPieces:
    """Divides the buckets of a log."""

    log: RunLog
    phases: CallPhases
    seen: Sequence[Mapping[int, Sequence[Seen]]]  # of each bucket: what the samples of a call show
    usual_ms: float  # of a step; 0 is unknown
    stepping: Mapping[int, float]  # of traces: the share of a usual step
    functions: Mapping[Line, str]  # the user's function of a line

    @classmethod
    def of(cls, log: RunLog, tree: CallTree, course: RunCourse) -> Self:
        """Prepare for all buckets."""
        usual = usual_step(log)
        return cls(
            log=log,
            phases=CallPhases(tree, course, log.end is not None),
            seen=[_seen(bucket, log) for bucket in log.buckets],
            usual_ms=usual,
            stepping=_stepping(log, tree, usual),
            functions={stack.at: stack.function for stack in log.stacks.values() if stack.at},
        )

    def pieces(self, number: int) -> list[RunPiece]:
        """Return the pieces of a bucket, which sum to its length."""
        calls, rest = _call_times(self.log.buckets[number], self.seen[number])
        found: list[RunPiece] = []
        for call, ms in calls.items():
            tracing = self._leads_to_tracing(call, number)
            phase = Phase.TRACING if tracing else self.phases.of_call(call, number)
            if phase is None:
                found += self._sampled(call, ms, number)
                continue
            stepping = self.stepping.get(call, 0.0) * ms
            for piece in self._placed(call, ms, number, phase):
                steps_ms = stepping * (piece.ms / ms)
                found += [piece.part(piece.ms - steps_ms, phase), piece.part(steps_ms, Phase.STEPS)]
        found.append(RunPiece(phase=Phase.UNNAMED, ms=rest))
        return [piece for piece in found if piece.ms]

    def _leads_to_tracing(self, call: int, number: int) -> bool:
        """Return whether all of a call's own time in a bucket comes before the tracing that ends in a later one."""
        bucket, places = self.log.buckets[number], self.phases.tree.places
        begun = any(
            bucket.start <= trace.start < bucket.end < trace.start + trace.ms / MS
            and trace.call in places
            and places[trace.call].parent == call
            for trace in self.log.traces
        )
        return begun and numbered(bucket.entered).get(call, 0.0) <= 1

    def _sampled(self, call: int, ms: float, number: int) -> Iterator[RunPiece]:
        """Yield the pieces of a call whose samples say the phase: the nearest buckets' where it has none."""
        here = seen = self.seen[number].get(call, ())
        for other in (number + away * side for away in range(1, NEAR + 1) for side in (-1, 1)):
            if not seen and 0 <= other < len(self.seen):
                seen = self.seen[other].get(call, ())
        if not here and (brief := self._unseen(call, ms, number, known=bool(seen))):
            yield from self._placed(call, ms, number, brief)
            return
        total = sum(weight for _, weight, _ in seen)
        for stack, weight, count in seen:
            for phase, share in self.phases.of_sample(call, stack, number):
                samples = share * count if here else 0.0
                yield self._piece(call, stack, phase, share * ms * weight / total, samples)

    def _unseen(self, call: int, ms: float, number: int, *, known: bool) -> Phase | None:
        """Return the phase of time without a sample; None where near samples must say it."""
        tree, kind = self.phases.tree, self.phases.tree.kind(call)
        if kind in {RunCall.FIT, RunCall.EPOCH}:
            return self.phases.of_loop(kind, number)
        if kind is RunCall.BETWEEN:
            steps = sum(  # of the loop that the call lies in
                count
                for other, count in numbered(self.log.buckets[number].entered).items()
                if tree.kind(other) is RunCall.STEP and tree.places[other].parent == tree.places[call].parent
            )
            if ms < BRIEF_STEPS * self.usual_ms * max(1.0, steps) or self.phases.in_fit(call):
                return Phase.STEPS
        if known:
            return None
        return self.phases.course.models if kind is RunCall.FUNCTION else Phase.UNNAMED

    def _placed(self, call: int, ms: float, number: int, phase: Phase) -> Iterator[RunPiece]:
        """Yield the pieces of a call of one phase, at its line or at lines of the user's within it."""
        seen = self.seen[number].get(call) or [(SeenStack(0, call), 1.0, 0.0)]
        total = sum(weight for _, weight, _ in seen)
        for stack, weight, count in seen:
            yield self._piece(call, stack, phase, ms * weight / total, count)

    def _piece(self, call: int, stack: SeenStack, phase: Phase, ms: float, samples: float) -> RunPiece:
        """Return a piece at the sample's line, or at that of the call, whose time is exact.

        The call's counts where it runs no code of the user's, or the sample shows none.
        """
        line, exact = PieceLine(stack.at, stack.caller, stack.calls or "", stack.function), False
        place = self.phases.tree.places.get(call)
        if place is not None and place.at:
            own = place.call not in WITH_OWN_LINES or not stack.at or stack.at == place.at
            exact = own and place.call in EXACT
            if exact or not (stack.at or stack.runs):
                caller = stack.caller if stack.at == place.at else None
                label = self.phases.tree.label(place.id) or stack.calls or ""
                line = PieceLine(place.at, caller, label, self.functions.get(place.at, ""))
        return RunPiece(
            phase=phase, ms=ms, line=line, runs=stack.runs or "", samples=samples, long=stack.long, exact=exact,
            repeats=stack.repeats, loops=stack.loops,
        )  # fmt: skip


def _seen(bucket: Bucket, log: RunLog) -> dict[int, list[Seen]]:
    counts, by_call = numbered(bucket.samples), defaultdict[int, list[Seen]](list)
    for number, ms in numbered(bucket.stacks).items():
        if number in log.stacks:
            stack = log.stacks[number]
            by_call[stack.call].append((stack, ms, counts.get(number, 0.0)))
    return dict(by_call)


def _call_times(bucket: Bucket, seen: Mapping[int, Sequence[Seen]]) -> tuple[dict[int, float], float]:
    """Return each call's ms in a bucket, and the ms that no call explains; they sum to its length."""
    length = (bucket.end - bucket.start) * MS
    calls = numbered(bucket.calls) or {call: sum(ms for _, ms, _ in stacks) for call, stacks in seen.items()}
    known = sum(calls.values())
    if known < COVERED * length:
        return calls, length - known
    return {call: ms * length / known for call, ms in calls.items()}, 0.0


def _stepping(log: RunLog, tree: CallTree, usual: float) -> dict[int, float]:
    """Return which share of each training call that traces is a usual step: the call runs its step as well."""
    times: dict[int, float] = defaultdict(float)
    for bucket in log.buckets:
        for call, ms in numbered(bucket.calls).items():
            times[call] += ms
    made = Counter(trace.call for trace in log.traces)
    return {
        call: min(1.0, usual * max(1, made[call]) / ms)
        for call, ms in times.items()
        if tree.kind(call) is RunCall.TRACE and tree.trains(call)
    }
