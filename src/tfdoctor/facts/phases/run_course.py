"""The course of a run by its log: its calls, and in which buckets its first and last steps and other work lie."""

import numpy.typing as npt

from tfdoctor.facts.kit import *
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import BucketSteps, CallPlace, RunLog, SeenStack

MS = 1000.0  # Milliseconds in a second
LEAST = 1e-6  # ms from which time counts: less is no time that a clock shows
# Calls that are parts of the one around them, and have no name of their own.
PARTS = (RunCall.STEP, RunCall.EPOCH, RunCall.BETWEEN, RunCall.TRACE)
TRAINING = {RunCall.STEP, RunCall.TRAIN}
MODEL_CALLS = TRAINING | {RunCall.TEST, RunCall.EVALUATE, RunCall.PREDICT, RunCall.FUNCTION}
LOOSE = (RunCall.SCRIPT, RunCall.BETWEEN)  # Calls whose time only the samples divide
Floats = npt.NDArray[np.float64]
BIN = 1.02  # Ratio of the ends of a bin, as the recorder chose it: a quantile is exact to 2 %
MIDDLE = 0.5
ROUNDING = 1e-9

# A line of the user's, and the one that called its function.
CalledLine = tuple[SourceLine | None, SourceLine | None]


class RunCourse(Record, kw_only=True):
    """Calls by number, and numbers of buckets; infinite, or None, where nothing of the kind happened.

    A tf.function is known to train only once it runs: the way there is a call of its own, at the line of its steps.
    ``work`` is what steps, evaluations, predictions and calls of models are together. ``last_called`` is the last
    one with such a call, where ``last_work`` may show the training loop alone, whose data have ended. ``tail`` is
    the share of the script's own time in the last bucket with such work that comes after it. ``own_loop`` says that
    a loop of the user's trains, not Keras' fit. ``repeated`` are lines, with their callers, that ran between steps:
    after the last step they end the last epoch. ``tested`` are those that samples show in a loop around a model's
    calls: the recorder knows such a loop only from its first call on. ``children``: how many processes that the
    process had started ran at the end of each bucket.
    """

    log: RunLog
    above: Mapping[int, tuple[CallPlace, ...]]  # the calls around each, innermost first
    training: frozenset[int]  # calls that are a step, the way into one, or trace the function of one
    entries: Mapping[SourceLine | None, str]  # functions that train, by line
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
    children: tuple[int, ...] = ()

    @classmethod
    def of(cls, log: RunLog) -> Self:
        """Read the calls, and look through the buckets once."""
        above, training, entries = _calls(log)
        course = cls(log=log, above=above, training=training, entries=entries)
        kind = course.kind
        own_loop = not all(RunCall.FIT in course.around(place.id) for place in course.of_kind(RunCall.STEP))
        stacks = [[log.stacks[n] for n in numbered(bucket.stacks) if n in log.stacks] for bucket in log.buckets]
        steps, called, work, user, children, count = [], [], [], [], [], 0
        for number, (bucket, seen) in enumerate(zip(log.buckets, stacks, strict=True)):
            kinds = set(map(kind, numbered(bucket.calls)))
            loose = [stack for stack in seen if kind(stack.call) in LOOSE]
            if trains := bool(bucket.steps) or bool((kinds | set(map(kind, numbered(bucket.entered)))) & TRAINING):
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
        repeats = [stack for stack in between if kind(stack.call) in LOOSE and not stack.looped]
        tail = 1.0  # of the script's own time in the last bucket, what comes after an evaluation or prediction
        if work:
            last = log.buckets[work[-1]]
            outside = [span.end for span in log.spans if kind(span.call) in {RunCall.EVALUATE, RunCall.PREDICT}]
            ends = [end for end in outside if last.start < end <= last.end]
            loose_ms = sum(ms for call, ms in numbered(last.calls).items() if kind(call) in LOOSE)
            tail = min(1.0, (last.end - max(ends)) * MS / loose_ms) if ends and loose_ms else 1.0
        return replace(
            course, own_loop=own_loop,
            first_step=min(steps, default=inf), last_step=max(steps, default=inf),
            first_work=min(work, default=None), last_work=max(work, default=inf),
            last_called=max(called, default=None),
            first_user=min(user, default=None), last_user=max(user, default=None),
            tail=tail, repeated=frozenset((stack.at, stack.caller) for stack in repeats),
            tested=frozenset((s.at, s.caller) for s in log.stacks.values() if s.at and s.tested),
            children=tuple(children),
        )  # fmt: skip

    def kind(self, call: int) -> RunCall:
        """Return what a call is; of a number that the log does not define, the script."""
        place = self.log.calls.get(call)
        return place.call if place else RunCall.SCRIPT

    def around(self, call: int) -> Iterator[RunCall]:
        """Yield the kinds of the calls around a call, innermost first."""
        return (place.call for place in self.above.get(call, ()))

    def parent(self, call: int) -> RunCall:
        """Return the kind of the call around a call."""
        return next(self.around(call), RunCall.SCRIPT)

    def of_kind(self, *kinds: RunCall) -> tuple[CallPlace, ...]:
        """Return the places of calls of these kinds."""
        return tuple(place for place in self.log.calls.values() if place.call in kinds)

    def label(self, call: int) -> str:
        """Return the name of the function that is called: of parts of fit, that of fit; "" is unknown."""
        if call not in self.log.calls:
            return ""
        around = (self.log.calls[call], *self.above[call])
        name = next((place.name for place in around if place.call not in PARTS), "")
        if around[0].call is RunCall.TRACE and around[-1].call is RunCall.SCRIPT:
            name = name or around[0].name  # traced by another thread
        return name or (self.entries.get(around[0].at, "") if call in self.training else "")

    @property
    def trains(self) -> bool:
        """Whether the process trains at all."""
        return self.first_step < inf

    @property
    def models(self) -> Phase:
        """What a call of a model is that does not train."""
        return Phase.EVALUATION if self.trains else Phase.PREDICTION


def _calls(log: RunLog) -> tuple[dict[int, tuple[CallPlace, ...]], frozenset[int], dict[SourceLine | None, str]]:
    """Return the calls around each call, those that train, and the functions that do, by line."""
    above = {}
    for call in log.calls:
        around: dict[int, CallPlace] = {}
        parent = log.calls[call].parent
        # A damaged log may name one as its own parent.
        while parent is not None and parent in log.calls and parent not in {call, *around}:
            around[parent] = log.calls[parent]
            parent = log.calls[parent].parent
        above[call] = tuple(around.values())
    places = log.calls.values()
    steps = {place.at for place in places if place.call is RunCall.STEP and place.at}
    functions = [place for place in places if place.call is RunCall.FUNCTION and place.at in steps]
    own = {place.id for place in places if place.call is RunCall.STEP} | {place.id for place in functions}
    traces = {
        call
        for call, outer in above.items()
        if log.calls[call].call is RunCall.TRACE and any(place.id in own for place in outer)
    }
    tested = {(place.at, place.name) for place in places if place.call is RunCall.TEST}
    training_last = sorted(functions, key=lambda place: (place.at, place.name) not in tested)
    return above, frozenset(own | traces), {place.at: place.name for place in training_last}


def whole_run(recording: Recording) -> RunLog:
    """Return the log of the run.

    Raises:
        Unavailable: it was not recorded.
    """
    if recording.run is None:
        raise Unavailable("the run as a whole was not recorded")
    return recording.run


def numbered(entries: Mapping[str, float]) -> dict[int, float]:
    """Return the entries of a bucket by number, without those that are no amount."""
    return {int(key): value for key, value in entries.items() if key.isdecimal() and value > LEAST}


def sampled(log: RunLog) -> Iterator[tuple[SeenStack, float, float]]:
    """Yield each stack with its ms and its samples in the whole run."""
    ms, samples = (
        summed(row for bucket in log.buckets for row in numbered(getattr(bucket, of)).items())
        for of in ("stacks", "samples")
    )
    return ((stack, ms.get(number, 0.0), samples.get(number, 0.0)) for number, stack in log.stacks.items())


class StepDurations(Record):
    """Durations in ms per step, in order, each of ``calls`` calls that ended in bucket number ``bucket``."""

    ms: Floats
    calls: Floats
    bucket: npt.NDArray[np.int64]

    @classmethod
    def of(cls, *steps: tuple[int, BucketSteps]) -> Self:
        """Take the steps of buckets, each with its bucket's number."""
        rows = []
        for number, some in steps:
            each = max(1.0, some.steps / some.calls) if some.calls else 1.0
            if some.each:
                rows += [(ms / each, 1.0, number) for ms in some.each]
            elif some.bins:
                bins = {int(key): count for key, count in some.bins.items() if key.lstrip("-").isdecimal()}
                rows += [(BIN ** (at + MIDDLE) / 1000 / each, float(n), number) for at, n in sorted(bins.items())]
            elif some.calls:
                rows.append((some.ms / some.calls / each, float(some.calls), number))
        columns = np.array(rows, np.float64).reshape(-1, 3).T
        return cls(columns[0], columns[1], columns[2].astype(np.int64))

    @property
    def count(self) -> float:
        """The number of calls."""
        return float(self.calls.sum())

    def quantile(self, share: float) -> float:
        """Return the duration that this share of the calls does not exceed; 0 where there is none."""
        if not len(self.ms):
            return 0.0
        position = share * (self.count - 1)
        order = np.argsort(self.ms, kind="stable")
        last = np.cumsum(self.calls[order]) - 1.0
        at = np.searchsorted(last, np.array([np.floor(position), np.ceil(position)]) - ROUNDING)
        low, high = self.ms[order][np.minimum(at, len(order) - 1)]
        return float(low + (high - low) * (position % 1.0))

    def where(self, chosen: npt.NDArray[np.bool_]) -> Self:
        """Return some of the steps."""
        return type(self)(self.ms[chosen], self.calls[chosen], self.bucket[chosen])


def main_loop(log: RunLog) -> tuple[str, SourceLine | None]:
    """Return the source and the line of the loop whose steps took most time; "" and None where none is known."""
    return next(iter(summed(((one.source, one.at), one.ms) for _, one in log.steps)), ("", None))


def main_steps(log: RunLog) -> list[tuple[int, BucketSteps]]:
    """Return the steps of the loop with the most time, bucket by bucket, each with the bucket's number."""
    loop = main_loop(log)
    return [(number, steps) for number, steps in log.steps if (steps.source, steps.at) == loop and steps.calls]


def usual_step(log: RunLog) -> float:
    """Return the median step in ms, of those that trace no function; 0 is unknown."""
    return StepDurations.of(*main_steps(log)).quantile(MIDDLE)
