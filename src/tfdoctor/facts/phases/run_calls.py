"""The calls of the run, by the user's line that makes them, and the tf.functions that were traced in it."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_course import MS, RunCourse, main_steps, numbered, usual_step, whole_run
from tfdoctor.facts.run.program import Places
from tfdoctor.recording.program import SourceLine
from tfdoctor.recording.run_log import AssignedNumber, CallPlace, FunctionTrace, RunLog

# Calls that a line of the user's makes; the others are parts of these, or of loops.
TOLD = (
    RunCall.FIT, RunCall.TRAIN, RunCall.EVALUATE, RunCall.PREDICT, RunCall.FUNCTION, RunCall.COMPILE, RunCall.BUILD,
    RunCall.ADAPT, RunCall.SAVE,
)  # fmt: skip

# Calls for each line that leads there from which a loop makes them: two may be written one after the other.
AGAIN = 3
ENDING = 2  # Calls of a line in each epoch that may be made at its end: of the model and of the best one so far
NUMBERED = 50  # Traces of a function that the recorder tells with their Python numbers, from the first on
TRUTHS = ("True", "False")
# Smallest share of the traces after the first that got new values: each value is traced anew for each shape, and a
# loop has up to three, such as of full and last batches, and of validation.
LEAST_NEW = 1 / 3


class MadeCall(Record, kw_only=True):
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


class RunCalls(Record):
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
        told = (one for one in course.of_kind(*TOLD) if one.id not in course.training)
        outer = (one for one in told if one.call not in course.around(one.id))
        groups = by_key(((one.call, one.name, one.at, course.parent(one.id)), one) for one in outer)
        calls = [totals.made(places, place) for places in groups.values()]
        fits, epochs = (totals.count(course.of_kind(kind)) for kind in (RunCall.FIT, RunCall.EPOCH))
        settings = recording.program.run if recording.program and fits == 1 else None
        planned, length = (settings.epochs, settings.steps_per_epoch) if settings else (None, None)
        return cls(
            calls=tuple(sorted((c for c in calls if c.count or c.ms), key=lambda call: -call.ms)),
            epochs=epochs or sum(steps.passes for _, steps in main_steps(course.log)), fits=fits,
            planned_epochs=int(planned) if planned else None, epoch_steps=int(length) if length else None,
        )  # fmt: skip

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
        times = [(at, call, ms) for at, one in enumerate(log.buckets) for call, ms in numbered(one.calls).items()]
        self.ms = defaultdict(float, summed((call, ms) for _, call, ms in times))
        entered = (row for one in log.buckets for row in numbered(one.entered).items())
        self.entered = defaultdict(float, summed(entered))
        self.buckets = by_key((call, number) for number, call, _ in times)  # numbers of those with a call
        self.spans = by_key((span.call, span) for span in log.spans)
        # Calls within one, at any depth.
        self.inner = by_key((outer.id, call) for call, above in self.course.above.items() for outer in above)

    def count(self, places: Iterable[CallPlace]) -> int:
        """Return how often calls were made; of those that are only told alone, how many were."""
        return sum(round(max(self.entered[one.id], len(self.spans.get(one.id, ())))) for one in places)

    def made(self, places: Sequence[CallPlace], place: Places) -> MadeCall:
        """Return calls of a kind at a line as one."""
        one, course, count = places[0], self.course, self.count(places)
        inner = [call for place in places for call in self.inner.get(place.id, ())]
        # Functions that a call calls are its own work.
        own = [call for call in inner if course.kind(call) in {RunCall.FUNCTION, one.call}]
        told = (span for place in places for span in self.spans.get(place.id, ()))
        spans = sorted(told, key=lambda span: span.start)
        numbers = [number for one in places for number in self.buckets.get(one.id, ())]
        first, last = min(numbers, default=0), max(numbers, default=0)
        before = course.trains and (last < course.first_step or (last == course.first_step and count == 1))
        after = course.trains and (first > course.last_step or (first == course.last_step and count == 1))
        # A bucket may hold a step and a call: where only fit trains, calls after the last fit come after it.
        fits = () if course.own_loop else course.of_kind(RunCall.FIT)
        ended = [span.end for one in fits for span in self.spans.get(one.id, ())]
        ids, stacks = {place.id for place in places}, course.log.stacks.values()
        callers = {stack.caller for stack in stacks if stack.at == one.at and stack.call in ids}
        within = course.parent(one.id)
        return MadeCall(
            call=one.call, name=one.name, at=place(one.at), count=count, within=within,
            ms=sum(self.ms[p.id] for p in places) + sum(self.ms[call] for call in own),
            looped=within is RunCall.SCRIPT and count >= AGAIN * max(1, len(callers)),
            nested_ms=sum(self.ms[call] for call in inner if call not in own),
            times_ms=tuple((span.end - span.start) * MS for span in spans),
            examples=_mean(span.examples for span in spans), batches=_mean(span.steps for span in spans),
            before_training=before,
            after_training=after or bool(spans and ended and spans[0].start >= max(ended)),
            models=len({span.model for span in spans if span.model is not None}) or None,
        )  # fmt: skip


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


class ChangingNumber(Record):
    """A parameter that got different Python values, with the line that assigned them, where that is known."""

    name: str
    values: tuple[str, ...]
    at: Location | None = None


class TracedDefinition(Record, kw_only=True):
    """All calls that traced a function of one name and line: new function objects of a line are one function.

    ``ms`` is their time without that of as many usual calls; ``first_ms`` that of the first one. ``alike_ms`` is
    that of the ``alike`` calls whose graph has as many operations, and uses as many weights, as that of an earlier
    one: the same graph, built again. ``defined`` is the user's line that defines the function; ``redefined``: most
    traces are of a Python function that was not traced before, so that the definition is run again and again.
    ``numbers`` are the parameters whose Python values account for the traces.
    """

    name: str
    at: Location | None  # the user's line that calls it
    tracings: int
    ms: float
    first_ms: float
    made: int = 1  # function objects
    within: RunCall = RunCall.SCRIPT
    starts_s: tuple[float, ...] = ()
    alike_ms: float = 0.0
    alike: int = 0
    defined: Location | None = None
    redefined: bool = False
    numbers: tuple[ChangingNumber, ...] = ()

    @property
    def again_ms(self) -> float:
        """The time of all but the first."""
        return max(0.0, self.ms - self.first_ms)


class RunTraces(Record):
    """The functions that were traced, those that took most first."""

    functions: tuple[TracedDefinition, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Group the calls that traced by the name of the function and the line that calls it.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        found = traced_definitions(RunCourse.of(whole_run(recording)), Places.of(recording))
        return cls(tuple(sorted(found, key=lambda one: -one.ms)))


def _usual_ms(course: RunCourse) -> dict[tuple[str, SourceLine | None], float]:
    """Return the mean time of the calls of each function that traced nothing."""
    buckets, ms, calls = course.log.buckets, defaultdict[Any, float](float), Counter[Any]()
    took = summed(row for bucket in buckets for row in numbered(bucket.calls).items())
    entered = summed(row for bucket in buckets for row in numbered(bucket.entered).items())
    for place in course.of_kind(RunCall.FUNCTION, RunCall.TEST):
        ms[place.name, place.at] += took.get(place.id, 0.0)
        if place.call is RunCall.FUNCTION:  # of a test both are entered
            calls[place.name, place.at] += int(entered.get(place.id, 0))
    calls.subtract((trace.name, trace.at) for trace in course.log.traces)
    return {key: ms[key] / count for key, count in calls.items() if count > 0}


def traced_definitions(course: RunCourse, place: Places) -> Iterator[TracedDefinition]:
    """Yield all calls that traced, by name, line and what is around; those within another one are part of it."""
    usual_ms = _usual_ms(course)
    found: dict[tuple[str, SourceLine | None, RunCall], list[FunctionTrace]] = defaultdict(list)
    end, step = 0.0, usual_step(course.log)
    for trace in sorted(course.log.traces, key=lambda trace: (trace.start, -trace.ms)):
        until = trace.start + trace.ms / MS
        if until > end or not found:
            end, kind = until, course.kind(trace.call)
            # Fit's training and its evaluation share names: they differ in the call around.
            within = course.parent(trace.call) if kind is RunCall.TRACE else kind
            found[trace.name, trace.at, within].append(trace)
    for (name, at, within), traces in found.items():
        trains = any(trace.call in course.training for trace in traces)
        usual = step if trains else usual_ms.get((name, at), 0.0)
        own = [max(0.0, trace.ms - usual) for trace in traces]
        again, known = list[float](), set[tuple[int, int]]()
        for trace, ms in zip(traces, own, strict=True):
            size = trace.operations, trace.variables
            again += [ms] if trace.operations and size in known else []
            known.add(size)
        yield TracedDefinition(
            name=name, at=place(at), tracings=len(traces), ms=sum(own), first_ms=own[0],
            made=len({trace.made for trace in traces}), within=within,
            starts_s=tuple(trace.start for trace in traces), alike_ms=sum(again), alike=len(again),
            defined=place(next((trace.defined for trace in traces if trace.defined), None)),
            redefined=2 * sum(not trace.kept for trace in traces) > len(traces),
            numbers=tuple(_changing(traces, place, course.log.assigned)),
        )  # fmt: skip


def _changing(
    traces: Sequence[FunctionTrace], place: Places, assigned: Sequence[AssignedNumber]
) -> Iterator[ChangingNumber]:
    """Yield the parameters whose Python numbers and texts account for the traces; none where shapes may.

    A truth value has two graphs at most, and is no reason to trace again and again.
    """
    told = traces[:NUMBERED]
    given: dict[str, dict[str, None]] = defaultdict(dict)
    function, call = traces[0].name, traces[0].at
    lines = {one.name: one.at for one in assigned if (one.function, one.call) == (function, call)}
    for one in (one for trace in told for one in trace.numbers if one.value not in TRUTHS):
        given[one.name][one.value] = None
        if one.at:
            lines.setdefault(one.name, one.at)
    changing = {name: tuple(values) for name, values in given.items() if len(values) > 1}
    new = {tuple((one.name, one.value) for one in trace.numbers if one.name in changing) for trace in told}
    if len(new) - 1 >= LEAST_NEW * (len(told) - 1):
        for name, values in changing.items():
            yield ChangingNumber(name, values, place(lines.get(name)))
