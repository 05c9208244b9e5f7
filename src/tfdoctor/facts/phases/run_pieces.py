"""The run from its begin to its end as stretches of time, each divided into pieces of one phase and one line.

The recorder times calls exactly and samples the stack; a call's exact time is divided as its samples in the bucket
are. Where there is none, the nearest buckets' samples of the call stand for it. What the first steps of epochs take
beyond a usual step is the epoch's boundary, not a step: they wait for a new iterator, or until a shuffle buffer is
full.
"""

from bisect import bisect_left

from msgspec import structs

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.call_phases import LOOPS, OF_CALL, of_call, of_loop, of_sample
from tfdoctor.facts.phases.run_course import MS, RunCourse, numbered, usual_step
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import RunLog, SeenStack

NS = 1_000_000_000  # Nanoseconds in a second
NEAR = 2  # Buckets to either side whose samples stand for a call's time without any: a few s in the longest runs
# Share of a bucket that its calls must add up to; of less, the rest is unnamed, since the log is damaged.
COVERED = 0.95
# Usual steps up to which time after a training call is its loop's, as no sample shows anything else.
BRIEF_STEPS = 3
# Time after the last record of a killed process that counts as its end: a record is written once a second, and the
# launcher looks for its end about as often.
UNSEEN_END_S = 3.0
LEAST_S = 1e-9
# Buckets on either side of the traced ones whose steps are near them.
AROUND = 2
ENOUGH = 20  # Samples of steps near the traced ones, and of all, from which they are compared
# The calls that a step is in, at whose lines the stack of every step is.
TRAINING = (RunCall.FIT, RunCall.EPOCH, RunCall.STEP)
LONG = 1.5  # Times the usual step from which a first step is long, as the recorder defines a long one

# Calls that run the user's code: callbacks, generators, the layers of an eager model, functions that are traced.
WITH_OWN_LINES = frozenset({
    RunCall.FIT, RunCall.EPOCH, RunCall.STEP, RunCall.TRAIN, RunCall.TEST, RunCall.EVALUATE, RunCall.PREDICT,
    RunCall.FUNCTION, RunCall.TRACE,
})  # fmt: skip
# Calls whose own time is that of the line that makes them.
EXACT = WITH_OWN_LINES | {RunCall.COMPILE, RunCall.BUILD, RunCall.ADAPT, RunCall.SAVE}
Span = tuple[float, float, float]  # Begin and end in s, and ms of it


NOTHING = SeenStack(0)


class RunPiece(Record, kw_only=True):
    """Some ms of a phase; ``exact`` where a call at the line of ``seen`` was timed, not sampled."""

    phase: Phase
    ms: float
    seen: SeenStack = NOTHING
    samples: float = 0.0
    exact: bool = False

    def part(self, ms: float, phase: Phase) -> Self:
        """Return some of its time, in a phase."""
        share = ms / self.ms if self.ms else 0.0
        return replace(self, ms=ms, phase=phase, samples=self.samples * share)


class BucketPieces:
    """Divides the buckets of a log."""

    def __init__(self, course: RunCourse) -> None:
        """Prepare for all buckets."""
        self.course, self.log = course, course.log
        self.usual_ms = usual_step(self.log)  # 0 is unknown
        self.functions = {stack.at: stack.function for stack in self.log.stacks.values() if stack.at}
        # What the samples of a call show in each bucket: stacks with their ms and their number of samples.
        self.seen: list[dict[int, list[tuple[SeenStack, float, float]]]] = []
        for bucket in self.log.buckets:
            counts, stacks = numbered(bucket.samples), self.log.stacks
            rows = ((stacks[n], ms, counts.get(n, 0.0)) for n, ms in numbered(bucket.stacks).items() if n in stacks)
            self.seen.append(by_key((row[0].call, row) for row in rows))
        times = summed(row for bucket in self.log.buckets for row in numbered(bucket.calls).items())
        made = Counter(trace.call for trace in self.log.traces)
        # The share of each training call that traces that is a usual step: the call runs its step as well.
        self.stepping = {
            call: min(1.0, self.usual_ms * max(1, made[call]) / ms)
            for call, ms in times.items()
            if course.kind(call) is RunCall.TRACE and call in course.training
        }

    def pieces(self, number: int) -> list[RunPiece]:
        """Return the pieces of a bucket, which sum to its length."""
        bucket, seen = self.log.buckets[number], self.seen[number]
        entered = numbered(bucket.entered)
        # Calls whose own time all comes before the tracing that ends in a later bucket.
        begun = {
            self.log.calls[trace.call].parent
            for trace in self.log.traces
            if bucket.start <= trace.start < bucket.end < trace.start + trace.ms / MS
            and trace.call in self.log.calls
        }
        length = (bucket.end - bucket.start) * MS
        calls = numbered(bucket.calls) or {call: sum(ms for _, ms, _ in stacks) for call, stacks in seen.items()}
        known = sum(calls.values())
        if complete := known >= COVERED * length:
            calls = {call: ms * length / known for call, ms in calls.items()}
        found: list[RunPiece] = []
        for call, ms in calls.items():
            traces = call in begun and entered.get(call, 0.0) <= 1
            phase = Phase.TRACING if traces else of_call(self.course, call, number)
            if phase is None:
                found += self._sampled(call, ms, number)
                continue
            stepping = self.stepping.get(call, 0.0) * ms
            for piece in self._placed(call, ms, number, phase):
                steps_ms = stepping * (piece.ms / ms)
                found += [piece.part(piece.ms - steps_ms, phase), piece.part(steps_ms, Phase.STEPS)]
        found.append(RunPiece(phase=Phase.UNNAMED, ms=0.0 if complete else length - known))
        return [piece for piece in found if piece.ms]

    def _sampled(self, call: int, ms: float, number: int) -> Iterator[RunPiece]:
        """Yield the pieces of a call whose samples say the phase: the nearest buckets' where it has none."""
        here = seen = self.seen[number].get(call, [])
        for other in (number + away * side for away in range(1, NEAR + 1) for side in (-1, 1)):
            if not seen and 0 <= other < len(self.seen):
                seen = self.seen[other].get(call, [])
        if not here and (brief := self._unseen(call, ms, number, known=bool(seen))):
            yield from self._placed(call, ms, number, brief)
            return
        total = sum(weight for _, weight, _ in seen)
        for stack, weight, count in seen:
            for phase, share in of_sample(self.course, call, stack, number):
                samples = share * count if here else 0.0
                yield self._piece(call, stack, phase, share * ms * weight / total, samples)

    def _unseen(self, call: int, ms: float, number: int, *, known: bool) -> Phase | None:
        """Return the phase of time without a sample; None where near samples must say it."""
        course, kind = self.course, self.course.kind(call)
        if kind in LOOPS:
            return of_loop(course, kind, number)
        if kind is RunCall.BETWEEN:
            calls, entered = self.log.calls, numbered(self.log.buckets[number].entered).items()
            steps = sum(  # of the loop that the call lies in
                count
                for other, count in entered
                if course.kind(other) is RunCall.STEP and calls[other].parent == calls[call].parent
            )
            if ms < BRIEF_STEPS * self.usual_ms * max(1.0, steps) or course.parent(call) in LOOPS:
                return Phase.STEPS
        if known:
            return None
        return course.models if kind is RunCall.FUNCTION else Phase.UNNAMED

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
        exact, seen, place = False, stack, self.log.calls.get(call)
        if place is not None and place.at:
            own = place.call not in WITH_OWN_LINES or not stack.at or stack.at == place.at
            exact = own and place.call in EXACT
            if exact or not (stack.at or stack.runs):
                caller = stack.caller if stack.at == place.at else None
                calls, function = self.course.label(call) or stack.calls, self.functions.get(place.at, "")
                seen = structs.replace(stack, at=place.at, caller=caller, calls=calls, function=function)
        return RunPiece(phase=phase, ms=ms, seen=seen, samples=samples, exact=exact)


def begin_and_end(log: RunLog, manifest: Manifest | None) -> tuple[float, float]:
    """Return when the run began and ended, in s since its process began; its command began a little earlier.

    The launcher's times count where it started this process itself, else those of the process alone.
    """
    last = max(log.process.began, log.end.end if log.end else 0.0, *(bucket.end for bucket in log.buckets))
    times, zero = manifest.times if manifest else None, log.process.started_monotonic_ns
    if not (times and zero and times.started_ns and times.pid == log.process.pid):
        return 0.0, max(last, 0.0)
    end = 0.0 if times.ended_ns is None else (times.ended_ns - zero) / NS
    return min(0.0, (times.started_ns - zero) / NS), max(last, end)


class Stretch(Record):
    """Some time of the run, in s since the process began; ``number`` is that of its bucket, None of a gap."""

    start: float
    end: float
    pieces: tuple[RunPiece, ...]
    number: int | None = None


def stretches(course: RunCourse, begin: float, end: float) -> list[Stretch]:
    """Return all time of the run from s to s, without gaps."""
    found: list[Stretch] = []
    divided, first, at = BucketPieces(course), first_steps(course), begin
    for number, bucket in enumerate(course.log.buckets):
        found += _gap(at, bucket.start, Phase.UNNAMED if found else Phase.START)
        pieces, left = divided.pieces(number), 0.0
        for begun, ended, ms in reversed(first[: bisect_left(first, (bucket.end,))]):
            if ended <= bucket.start:
                break  # they do not overlap
            left += ms * ((min(ended, bucket.end) - max(begun, bucket.start)) / (ended - begun))
        steps = sorted(
            (piece for piece in pieces if piece.phase is Phase.STEPS), key=lambda piece: not piece.seen.long
        )
        moved = [piece for piece in pieces if piece.phase is not Phase.STEPS] if left else pieces
        for piece in steps if left else ():  # a part of long first steps is the boundaries'
            taken = min(piece.ms, left)
            left -= taken
            moved += [piece.part(taken, Phase.BOUNDARIES), piece.part(piece.ms - taken, Phase.STEPS)]
        found.append(Stretch(bucket.start, bucket.end, tuple(piece for piece in moved if piece.ms), number))
        at = bucket.end
    if not found:
        began = min(end, course.log.process.began)
        found, at = list(_gap(at, began, Phase.START)), began
    ends = course.log.end is not None or end - at <= UNSEEN_END_S
    return [*found, *_gap(at, end, Phase.END if ends else Phase.UNNAMED)]


def _gap(start: float, end: float, phase: Phase) -> Iterator[Stretch]:
    if end - start > LEAST_S:
        yield Stretch(start, end, (RunPiece(phase=phase, ms=(end - start) * MS),))


def first_steps(course: RunCourse) -> list[Span]:
    """Return long first steps, in order, with the ms beyond a usual step that no other call explains."""
    log, merged, found = course.log, list[tuple[float, float]](), []
    others = [(span.start, span.end) for span in log.spans if course.kind(span.call) in OF_CALL]
    for start, end in sorted(others + [(trace.start, trace.start + trace.ms / MS) for trace in log.traces]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    for step in log.long_steps:
        end, explained = step.start + step.ms / MS, 0.0
        if step.first and step.ms > LONG * step.usual_ms and end > step.start:
            # A call that traces contains its step.
            for begun, ended in merged[max(0, bisect_left(merged, (step.start, step.start)) - 1) :]:
                if begun >= end:
                    break
                explained += max(0.0, min(ended, end) - max(begun, step.start))
            found.append((step.start, end, max(0.0, step.ms - max(step.usual_ms, MS * explained))))
    return sorted(found)


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
