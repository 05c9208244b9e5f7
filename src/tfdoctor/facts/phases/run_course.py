"""The course of a run: in which buckets its first and last steps and other work on models lie."""

from dataclasses import dataclass
from math import inf
from typing import Self

from tfdoctor.facts.phases.call_tree import CallTree, numbered
from tfdoctor.facts.phases.run_clock import MS
from tfdoctor.recording.run_log import Bucket, Line, RunLog, SeenStack
from tfdoctor.terms.kinds import Phase, RunCall, RunWork

Shares = tuple[tuple[Phase, float], ...]  # Phases with the share of some time in each; the shares sum to 1
CalledLine = tuple[Line | None, Line | None]  # A line of the user's, and the one that called its function

TRAINING = {RunCall.STEP, RunCall.TRAIN}
MODEL_CALLS = TRAINING | {RunCall.TEST, RunCall.EVALUATE, RunCall.PREDICT, RunCall.FUNCTION}
LOOSE = (RunCall.SCRIPT, RunCall.BETWEEN)  # Calls whose time only the samples divide


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCourse:
    """Numbers of buckets; infinite, or None, where nothing of the kind happened.

    ``work`` is what steps, evaluations, predictions and calls of models are together. ``last_called`` is the last
    one with such a call, where ``last_work`` may show the training loop alone, whose data have ended. ``tail`` is
    the share of the script's own time in the last bucket with such work that comes after it. ``own_loop`` says that
    a loop of the user's trains, not Keras' fit. ``repeated`` are lines, with their callers, that ran between steps:
    after the last step they end the last epoch. ``tested`` are those that samples show in a loop around a model's
    calls: the recorder knows such a loop only from its first call on. ``other_framework``: another
    one than TensorFlow trains, so that the script's own work may be anything. ``children``: how many processes
    that the process had started ran at the end of each bucket.
    """

    first_step: float = inf
    last_step: float = inf
    first_work: int | None = None
    last_work: float = inf
    last_called: int | None = None
    first_user: int | None = None
    last_user: int | None = None
    tail: float = 1.0
    own_loop: bool = False
    repeated: frozenset[CalledLine] = frozenset()
    tested: frozenset[CalledLine] = frozenset()
    other_framework: bool = False
    children: tuple[int, ...] = ()

    @classmethod
    def of(cls, log: RunLog, tree: CallTree) -> Self:
        """Look for them."""
        own_loop = not all(tree.within(place.id, RunCall.FIT) for place in tree.of_kind(RunCall.STEP))
        stacks = [[log.stacks[n] for n in numbered(bucket.stacks) if n in log.stacks] for bucket in log.buckets]
        steps, called, work, user, children, count = [], [], [], [], [], 0
        for number, (bucket, seen) in enumerate(zip(log.buckets, stacks, strict=True)):
            kinds = {tree.kind(call) for call in numbered(bucket.calls)}
            entered = {tree.kind(call) for call in numbered(bucket.entered)}
            loose = [stack for stack in seen if tree.kind(stack.call) in LOOSE]
            if trains := bool(bucket.steps) or bool((kinds | entered) & TRAINING):
                steps.append(number)
            if trains or kinds & MODEL_CALLS or any(s.work is RunWork.MODEL or s.tested for s in loose):
                called.append(number)
            if called[-1:] == [number] or (own_loop and any(stack.looped for stack in loose)):
                work.append(number)
            if kinds - {RunCall.SCRIPT} or any(stack.at for stack in seen):
                user.append(number)
            # They are not counted in each bucket.
            count = count if bucket.counters.children is None else bucket.counters.children
            children.append(count)
        between = [stack for seen in stacks[steps[0] + 1 : steps[-1]] for stack in seen] if steps else []
        repeats = [stack for stack in between if tree.kind(stack.call) in LOOSE and not stack.looped]
        return cls(
            first_step=min(steps, default=inf),
            last_step=max(steps, default=inf),
            first_work=min(work, default=None),
            last_work=max(work, default=inf),
            last_called=max(called, default=None),
            first_user=min(user, default=None),
            last_user=max(user, default=None),
            tail=_tail(log.buckets[work[-1]], log, tree) if work else 1.0,
            own_loop=own_loop,
            repeated=frozenset((stack.at, stack.caller) for stack in repeats),
            tested=frozenset((s.at, s.caller) for s in log.stacks.values() if s.at and s.tested),
            other_framework=log.other_framework is not None,
            children=tuple(children),
        )

    @property
    def trains(self) -> bool:
        """Whether the process trains at all."""
        return self.first_step < inf

    @property
    def models(self) -> Phase:
        """What a call of a model is that does not train."""
        return Phase.EVALUATION if self.trains else Phase.PREDICTION

    def ordinary(self, stack: SeenStack, number: int) -> Shares:
        """Return what the script's own Python in a bucket is, by its time, and by its line after the last step."""
        if self.other_framework:
            return ((Phase.OWN, 1.0),)
        repeats = stack.at is not None and (stack.at, stack.caller) in self.repeated
        if repeats and number >= self.last_step:
            return ((Phase.BOUNDARIES, 1.0),)
        if number > self.last_work:
            return ((Phase.END, 1.0),)
        between = Phase.BOUNDARIES if self.first_step < number <= self.last_step else Phase.PREPARING
        if number != self.last_work:
            return ((between, 1.0),)
        return ((between, 1.0 - self.tail), (Phase.END, self.tail))

    def awaits_children(self, number: int) -> bool:
        """Return whether some of the children in a bucket may be waited for.

        Those that live on while it works with models are not: they log, prepare data, or help others to start.
        """
        first, counts = self.first_work, self.children
        if first is None:
            return True
        begin, end = (number, first) if number <= first else (min(number, int(self.last_work)), number)
        most = max(1, *counts[max(0, number - 1) : number + 1])
        return most > min(counts[begin : end + 1])

    def without_line(self, number: int, *, finished: bool) -> Phase:
        """Return what time without a line of the user's is: the interpreter's start or end, else unnamed."""
        if self.first_user is None or self.last_user is None:
            return Phase.UNNAMED
        if number <= self.first_user:
            return Phase.START
        return Phase.END if finished and number > self.last_user else Phase.UNNAMED


def _tail(bucket: Bucket, log: RunLog, tree: CallTree) -> float:
    """Return which share of the script's own time in a bucket comes after its last evaluation or prediction."""
    ends = [
        span.end
        for span in log.spans
        if tree.kind(span.call) in {RunCall.EVALUATE, RunCall.PREDICT} and bucket.start < span.end <= bucket.end
    ]
    loose = sum(ms for call, ms in numbered(bucket.calls).items() if tree.kind(call) in LOOSE)
    if not ends or not loose:
        return 1.0
    return min(1.0, (bucket.end - max(ends)) * MS / loose)
