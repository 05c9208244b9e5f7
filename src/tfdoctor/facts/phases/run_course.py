"""The course of a run: in which buckets its first and last steps and other work on models lie."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.call_tree import CallTree, numbered
from tfdoctor.facts.phases.run_clock import MS
from tfdoctor.recording.run_log import Bucket, Line, RunLog, SeenStack
from tfdoctor.terms.kinds import Phase, RunCall, RunWork

Shares = tuple[tuple[Phase, float], ...]
"""Phases with the share of some time in each; the shares sum to 1."""

CalledLine = tuple[Line | None, Line | None]
"""A line of the user's, and the one that called its function."""

MODEL_CALLS = (RunCall.STEP, RunCall.TRAIN, RunCall.TEST, RunCall.EVALUATE, RunCall.PREDICT, RunCall.FUNCTION)
TRAINING = (RunCall.STEP, RunCall.TRAIN)
LOOSE = (RunCall.SCRIPT, RunCall.BETWEEN)
"""Calls whose time only the samples divide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCourse:
    """Numbers of buckets; None where nothing of the kind happened.

    ``work`` is what steps, evaluations, predictions and calls of models are together. ``last_called`` is the last
    one with such a call, where ``last_work`` may show the training loop alone, whose data have ended. ``tail`` is
    the share of the script's own time in the last bucket with such work that comes after it. ``own_loop`` says that
    a loop of the user's trains, not Keras' fit. ``repeated`` are lines, with their callers, that ran between steps:
    after the last step they end the last epoch. ``tested`` are those that samples show in a loop around a model's
    calls: the recorder knows such a loop only from its first call on. ``other_framework``: another
    one than TensorFlow trains, so that the script's own work may be anything. ``children``: how many processes
    that the process had started ran at the end of each bucket.
    """

    first_step: int | None = None
    last_step: int | None = None
    first_work: int | None = None
    last_work: int | None = None
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
        in_fit = [tree.within(place.id, RunCall.FIT) for place in tree.of_kind(RunCall.STEP)]
        own_loop, buckets = not all(in_fit), list(enumerate(log.buckets))
        steps = [n for n, bucket in buckets if _steps(bucket, tree)]
        work = [n for n, bucket in buckets if _works(bucket, log, tree, own_loop=own_loop)]
        called = [n for n in work if _works(log.buckets[n], log, tree, own_loop=False)]
        user = [n for n, bucket in buckets if _shows_user(bucket, log, tree)]
        return cls(
            first_step=min(steps, default=None),
            last_step=max(steps, default=None),
            first_work=min(work, default=None),
            last_work=max(work, default=None),
            last_called=max(called, default=None),
            first_user=min(user, default=None),
            last_user=max(user, default=None),
            tail=_tail(log.buckets[max(work)], log, tree) if work else 1.0,
            own_loop=own_loop,
            repeated=frozenset(_repeated(log, tree, steps)),
            tested=frozenset((s.at, s.caller) for s in log.stacks.values() if s.at and s.tested),
            other_framework=log.other_framework is not None,
            children=tuple(_children(log.buckets)),
        )

    @property
    def trains(self) -> bool:
        """Whether the process trains at all."""
        return self.first_step is not None

    @property
    def models(self) -> Phase:
        """What a call of a model is that does not train."""
        return Phase.EVALUATION if self.trains else Phase.PREDICTION

    def before_training(self, number: int) -> bool:
        """Return whether a bucket lies before the first step, or contains it; so do all where nothing trains."""
        return self.first_step is None or number <= self.first_step

    def ends_before_training(self, number: int) -> bool:
        """Return whether a bucket ends before the first step: a function that trains later does not train in it."""
        return self.first_step is not None and number < self.first_step

    def ordinary(self, stack: SeenStack, number: int) -> Shares:
        """Return what the script's own Python in a bucket is, by its time, and by its line after the last step."""
        if self.other_framework:
            return ((Phase.OWN, 1.0),)
        repeats = stack.at is not None and (stack.at, stack.caller) in self.repeated
        if repeats and self.last_step is not None and number >= self.last_step:
            return ((Phase.BOUNDARIES, 1.0),)
        if self.last_work is None or number < self.last_work:
            return ((self._between(number), 1.0),)
        if self.after_work(number):
            return ((Phase.END, 1.0),)
        return ((self._between(number), 1.0 - self.tail), (Phase.END, self.tail))

    def awaits_children(self, number: int) -> bool:
        """Return whether some of the children in a bucket may be waited for.

        Those that live on while it works with models are not: they log, prepare data, or help others to start.
        """
        first, last, counts = self.first_work, self.last_work, self.children
        if first is None or last is None:
            return True
        begin, end = (number, first) if number <= first else (min(number, last), number)
        most = max(1, *counts[max(0, number - 1) : number + 1])
        return most > min(counts[begin : end + 1])

    def after_steps(self, number: int) -> bool:
        """Return whether a bucket lies after the last step: the training loop has no data any more."""
        return self.last_step is not None and number > self.last_step

    def after_work(self, number: int) -> bool:
        """Return whether a bucket lies after the last step, evaluation and prediction."""
        return self.last_work is not None and number > self.last_work

    def tests(self, stack: SeenStack) -> bool:
        """Return whether a sample lies in a loop around calls of a model that do not train."""
        return stack.tested or (stack.at, stack.caller) in self.tested

    def _between(self, number: int) -> Phase:
        apart = self.before_training(number) or self.after_steps(number)
        return Phase.PREPARING if apart else Phase.BOUNDARIES

    def without_line(self, number: int, *, finished: bool) -> Phase:
        """Return what time without a line of the user's is: the interpreter's start or end, else unnamed."""
        if self.first_user is None or self.last_user is None:
            return Phase.UNNAMED
        if number <= self.first_user:
            return Phase.START
        return Phase.END if finished and number > self.last_user else Phase.UNNAMED

    def starting(self, number: int) -> bool:
        """Return whether a bucket lies before the first one that shows a line of the user's."""
        return self.first_user is not None and number < self.first_user


def stacks_in(bucket: Bucket, log: RunLog) -> Iterator[SeenStack]:
    """Yield the stacks that a bucket's samples show."""
    return (log.stacks[number] for number in numbered(bucket.stacks) if number in log.stacks)


def _children(buckets: Sequence[Bucket]) -> Iterator[int]:
    """Yield how many children run at the end of each bucket; they are not counted in each."""
    count = 0
    for bucket in buckets:
        count = count if bucket.counters.children is None else bucket.counters.children
        yield count


def _repeated(log: RunLog, tree: CallTree, steps: Sequence[int]) -> Iterator[CalledLine]:
    """Yield the lines of the script between buckets with steps, and their callers."""
    for bucket in log.buckets[steps[0] + 1 : steps[-1]] if steps else ():
        for stack in stacks_in(bucket, log):
            if tree.kind(stack.call) in LOOSE and not stack.looped:
                yield stack.at, stack.caller


def _steps(bucket: Bucket, tree: CallTree) -> bool:
    calls = (*numbered(bucket.calls), *numbered(bucket.entered))
    return bool(bucket.steps) or any(tree.kind(call) in TRAINING for call in calls)


def _works(bucket: Bucket, log: RunLog, tree: CallTree, *, own_loop: bool) -> bool:
    kinds = {tree.kind(call) for call in numbered(bucket.calls)}
    if kinds & set(MODEL_CALLS) or _steps(bucket, tree):
        return True
    loose = (stack for stack in stacks_in(bucket, log) if tree.kind(stack.call) in LOOSE)
    return any(stack.work is RunWork.MODEL or stack.tested or (stack.looped and own_loop) for stack in loose)


def _shows_user(bucket: Bucket, log: RunLog, tree: CallTree) -> bool:
    called = any(tree.kind(call) is not RunCall.SCRIPT for call in numbered(bucket.calls))
    return called or any(stack.at for stack in stacks_in(bucket, log))


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
