"""The calls of the run: fit, evaluate, predict, compile, save and others, by the user's line that makes them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tfdoctor.facts.phases.call_tree import CallTree, numbered
from tfdoctor.facts.phases.run_clock import MS, whole_run
from tfdoctor.facts.phases.run_course import RunCourse
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

    @classmethod
    def of(cls, call: RunCall, at: Location, count: int, each_ms: float, **more: Any) -> Self:  # noqa: ANN401 - its fields
        """Build calls from their mean time, for examples and tests."""
        parts: dict[str, Any] = {"name": f"Model.{call}", "ms": count * each_ms}
        return cls(call=call, at=at, count=count, **(parts | more))

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
        totals, place = _Totals.of(whole_run(recording)), Places.of(recording)
        tree = totals.tree
        groups: dict[tuple[RunCall, str, Line | None, RunCall], list[CallPlace]] = defaultdict(list)
        for one in tree.of_kind(*TOLD):
            if not tree.trains(one.id) and not tree.within(one.id, one.call):
                groups[one.call, one.name, one.at, tree.parent(one.id)].append(one)
        calls = [_made(places, totals, place) for places in groups.values()]
        fits = totals.count(tree.of_kind(RunCall.FIT))
        settings = recording.program.run if recording.program and fits == 1 else None
        planned, length = (settings.epochs, settings.steps_per_epoch) if settings else (None, None)
        return cls(
            calls=tuple(sorted((c for c in calls if c.count or c.ms), key=lambda call: -call.ms)),
            epochs=totals.count(tree.of_kind(RunCall.EPOCH))
            or sum(steps.passes for steps in main_steps(totals.log)),
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


@dataclass(frozen=True, slots=True)
class _Totals:
    """The log's times and numbers of calls, by the number of the place."""

    log: RunLog
    tree: CallTree
    course: RunCourse
    ms: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    entered: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    buckets: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # numbers of those with a call
    spans: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))
    inner: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # calls within one, at any depth

    @classmethod
    def of(cls, log: RunLog) -> Self:
        tree = CallTree.of(log)
        own = cls(log, tree, RunCourse.of(log, tree))
        for number, bucket in enumerate(log.buckets):
            for call, count in numbered(bucket.entered).items():
                own.entered[call] += count
            for call, time in numbered(bucket.calls).items():
                own.ms[call] += time
                own.buckets[call].append(number)
        for span in log.spans:
            own.spans[span.call].append(span)
        for call, outer in tree.above.items():
            for around in outer:
                own.inner[around.id].append(call)
        return own

    def count(self, places: Iterable[CallPlace]) -> int:
        """Return how often calls were made; of those that are only told alone, how many were."""
        return sum(round(max(self.entered[one.id], len(self.spans[one.id]))) for one in places)


def _made(places: Sequence[CallPlace], totals: _Totals, place: Places) -> MadeCall:
    one, tree = places[0], totals.tree
    inner = [call for place in places for call in totals.inner[place.id]]
    # Functions that a call calls are its own work.
    own = [call for call in inner if tree.kind(call) in {RunCall.FUNCTION, one.call}]
    spans = sorted((span for place in places for span in totals.spans[place.id]), key=lambda span: span.start)
    count, within = totals.count(places), tree.parent(one.id)
    before, after = _apart(places, spans, totals)
    stacks = [stack for stack in totals.log.stacks.values() if stack.at == one.at]
    callers = {stack.caller for stack in stacks if stack.call in {place.id for place in places}}
    return MadeCall(
        call=one.call,
        name=one.name,
        at=place(one.at),
        count=count,
        ms=sum(totals.ms[p.id] for p in places) + sum(totals.ms[call] for call in own),
        within=within,
        function=next((stack.function for stack in stacks if one.at), ""),
        looped=within is RunCall.SCRIPT and count >= AGAIN * max(1, len(callers)),
        nested_ms=sum(totals.ms[call] for call in inner if call not in own),
        times_ms=tuple((span.end - span.start) * MS for span in spans),
        examples=_mean(span.examples for span in spans),
        batches=_mean(span.steps for span in spans),
        before_training=before,
        after_training=after,
        models=len({span.model for span in spans if span.model is not None}) or None,
    )


def _apart(places: Sequence[CallPlace], spans: Sequence[Span], totals: _Totals) -> tuple[bool, bool]:
    """Return whether all of some calls are made before the first training step, and whether after the last one.

    A bucket may hold a step and a call: where only fit trains, calls that begin after the last fit come after it.
    """
    course, once = totals.course, totals.count(places) == 1
    numbers = [number for one in places for number in totals.buckets[one.id]]
    first, last = min(numbers, default=0), max(numbers, default=0)
    before = after = False
    if course.trains:
        before = last < course.first_step or (last == course.first_step and once)
        after = first > course.last_step or (first == course.last_step and once)
    fits = totals.tree.of_kind(RunCall.FIT) if not course.own_loop else ()
    ended = [span.end for one in fits for span in totals.spans[one.id]]
    return before, after or bool(spans and ended and spans[0].start >= max(ended))


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
