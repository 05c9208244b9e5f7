"""The calls of the run: fit, evaluate, predict, compile, save and others, by the user's line that makes them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.run_course import MS, RunCourse, numbered, whole_run
from tfdoctor.facts.phases.step_times import main_steps
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import CallPlace, Line, RunLog, Span
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Location

# Calls that a line of the user's makes; the others are parts of these, or of loops.
TOLD = (
    RunCall.FIT, RunCall.TRAIN, RunCall.EVALUATE, RunCall.PREDICT, RunCall.FUNCTION, RunCall.COMPILE, RunCall.BUILD,
    RunCall.ADAPT, RunCall.SAVE,
)  # fmt: skip

# Calls for each line that leads there from which a loop makes them: two may be written one after the other.
AGAIN = 3
ENDING = 2  # Calls of a line in each epoch that may be made at its end: of the model and of the best one so far


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """All calls of a kind that a line of the user's makes; times in ms of the run.

    ``ms`` contains what the calls call in turn, except ``nested_ms``, which is that of other kinds within them.
    ``within`` is the kind of the call around them. ``times_ms`` are single calls in order, of those that the
    recording tells alone. ``examples`` is their number per call, where known.
    """

    call: RunCall
    name: str  # "Model.predict"
    at: Location | None
    count: int
    ms: float
    within: RunCall = RunCall.SCRIPT
    function: str = ""  # the user's function that holds the line
    looped: bool = False  # made again and again at this line by a loop of the user's
    nested_ms: float = 0.0
    times_ms: tuple[float, ...] = ()
    examples: float | None = None
    batches: float | None = None
    before_training: bool = False
    after_training: bool = False
    models: int | None = None  # different model objects that it was made on; None is unknown

    @property
    def each_ms(self) -> float:
        """The mean time of one call."""
        return self.ms / self.count if self.count else 0.0


@dataclass(frozen=True, slots=True)
class RunCalls:
    """The calls of the run by line, those that take most first, and its epochs."""

    calls: tuple[MadeCall, ...]
    epochs: int = 0  # that were begun, of fit or as passes over a training dataset
    planned_epochs: int | None = None  # as fit was told; None is unknown
    fits: int = 0
    epoch_steps: int | None = None  # of one epoch of the only fit; None is unknown

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Group the calls of the log by kind, name, line and what is around them.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        totals, place = _Totals(whole_run(recording)), Places.of(recording)
        course = totals.course
        groups: dict[tuple[RunCall, str, Line | None, RunCall], list[CallPlace]] = defaultdict(list)
        for one in course.of_kind(*TOLD):
            if one.id not in course.training and not course.within(one.id, one.call):
                groups[one.call, one.name, one.at, course.parent(one.id)].append(one)
        calls = [totals.made(places, place) for places in groups.values()]
        fits, epochs = (totals.count(course.of_kind(kind)) for kind in (RunCall.FIT, RunCall.EPOCH))
        settings = recording.program.run if recording.program and fits == 1 else None
        planned, length = (settings.epochs, settings.steps_per_epoch) if settings else (None, None)
        return cls(
            calls=tuple(sorted((c for c in calls if c.count or c.ms), key=lambda call: -call.ms)),
            epochs=epochs or sum(steps.passes for _, steps in main_steps(course.log)),
            planned_epochs=int(planned) if planned else None,
            fits=fits,
            epoch_steps=int(length) if length else None,
        )

    def of(self, *kinds: RunCall) -> tuple[MadeCall, ...]:
        """Return the calls of these kinds, those that take most first."""
        return tuple(call for call in self.calls if call.call in kinds)

    def within_epochs(self, call: MadeCall) -> bool:
        """Return whether a line makes a call again and again while epochs last, and not only at their ends."""
        return call.count >= max(AGAIN, ENDING * self.epochs + 1)


class _Totals:
    """The log's times and numbers of calls, by the number of the place."""

    def __init__(self, log: RunLog) -> None:
        self.course = RunCourse.of(log)
        self.ms, self.entered = defaultdict[int, float](float), defaultdict[int, float](float)
        self.buckets = defaultdict[int, list[int]](list)  # numbers of those with a call
        self.spans = defaultdict[int, list[Span]](list)
        self.inner = defaultdict[int, list[int]](list)  # calls within one, at any depth
        for number, bucket in enumerate(log.buckets):
            for call, count in numbered(bucket.entered).items():
                self.entered[call] += count
            for call, time in numbered(bucket.calls).items():
                self.ms[call] += time
                self.buckets[call].append(number)
        for span in log.spans:
            self.spans[span.call].append(span)
        for call, outer in self.course.above.items():
            for around in outer:
                self.inner[around.id].append(call)

    def count(self, places: Iterable[CallPlace]) -> int:
        """Return how often calls were made; of those that are only told alone, how many were."""
        return sum(round(max(self.entered[one.id], len(self.spans[one.id]))) for one in places)

    def made(self, places: Sequence[CallPlace], place: Places) -> MadeCall:
        """Return calls of a kind at a line as one."""
        one, course, count = places[0], self.course, self.count(places)
        inner = [call for place in places for call in self.inner[place.id]]
        # Functions that a call calls are its own work.
        own = [call for call in inner if course.kind(call) in {RunCall.FUNCTION, one.call}]
        spans = sorted((span for place in places for span in self.spans[place.id]), key=lambda span: span.start)
        before, after = self._apart(places, spans, once=count == 1)
        stacks = [stack for stack in course.log.stacks.values() if stack.at == one.at]
        callers = {stack.caller for stack in stacks if stack.call in {place.id for place in places}}
        within = course.parent(one.id)
        return MadeCall(
            call=one.call, name=one.name, at=place(one.at), count=count, within=within,
            ms=sum(self.ms[p.id] for p in places) + sum(self.ms[call] for call in own),
            function=next((stack.function for stack in stacks if one.at), ""),
            looped=within is RunCall.SCRIPT and count >= AGAIN * max(1, len(callers)),
            nested_ms=sum(self.ms[call] for call in inner if call not in own),
            times_ms=tuple((span.end - span.start) * MS for span in spans),
            examples=_mean(span.examples for span in spans), batches=_mean(span.steps for span in spans),
            before_training=before, after_training=after,
            models=len({span.model for span in spans if span.model is not None}) or None,
        )  # fmt: skip

    def _apart(self, places: Sequence[CallPlace], spans: Sequence[Span], *, once: bool) -> tuple[bool, bool]:
        """Return whether all of some calls are made before the first training step, and whether after the last one.

        A bucket may hold a step and a call: where only fit trains, calls that begin after the last fit come after.
        """
        course = self.course
        numbers = [number for one in places for number in self.buckets[one.id]]
        first, last = min(numbers, default=0), max(numbers, default=0)
        before = after = False
        if course.trains:
            before = last < course.first_step or (last == course.first_step and once)
            after = first > course.last_step or (first == course.last_step and once)
        fits = () if course.own_loop else course.of_kind(RunCall.FIT)
        ended = [span.end for one in fits for span in self.spans[one.id]]
        return before, after or bool(spans and ended and spans[0].start >= max(ended))


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
