"""The tf.functions that were traced in the run: how often, how long, and at which line."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.phases.run_course import MS, RunCourse, whole_run
from tfdoctor.facts.phases.step_times import usual_step
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import FunctionTrace, Line
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Location

NUMBERED = 50  # Traces of a function that the recorder tells with their Python numbers, from the first on
TRUTHS = ("True", "False")
# Smallest share of the traces after the first that got new values: each value is traced anew for each shape, and a
# loop has up to three, such as of full and last batches, and of validation.
LEAST_NEW = 1 / 3


@dataclass(frozen=True, slots=True)
class ChangingNumber:
    """A parameter that got different Python values, with the line that assigned them, where that is known."""

    name: str
    values: tuple[str, ...]
    at: Location | None = None

    @property
    def is_text(self) -> bool:
        """Whether the values are texts, which no tensor replaces."""
        return self.values[0][:1] in {"'", '"'}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDefinition:
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


@dataclass(frozen=True, slots=True)
class RunTraces:
    """The functions that were traced, those that took most first."""

    functions: tuple[TracedDefinition, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Group the calls that traced by the name of the function and the line that calls it.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        timed = recording.manifest.steps.functions if recording.manifest else ()
        usual_ms = {(one.name, one.at): one.call_ms for one in timed if one.call_ms}
        found = _definitions(RunCourse.of(whole_run(recording)), Places.of(recording), usual_ms)
        return cls(tuple(sorted(found, key=lambda one: -one.ms)))


def first_tracings_ms(course: RunCourse) -> float:
    """Return the time of the first tracing of each definition."""
    return sum(one.first_ms for one in _definitions(course, Places(), {}))


def _definitions(
    course: RunCourse, place: Places, usual_ms: Mapping[tuple[str, Line | None], float]
) -> Iterator[TracedDefinition]:
    """Yield all calls that traced, by name, line and what is around; those within another one are part of it.

    ``usual_ms`` has usual calls of functions, as far as the recorder timed them; of training ones it is a step.
    """
    found: dict[tuple[str, Line | None, RunCall], list[FunctionTrace]] = defaultdict(list)
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
            numbers=tuple(_changing(traces, place)),
        )  # fmt: skip


def _changing(traces: Sequence[FunctionTrace], place: Places) -> Iterator[ChangingNumber]:
    """Yield the parameters whose Python numbers and texts account for the traces; none where shapes may.

    A truth value has two graphs at most, and is no reason to trace again and again.
    """
    told = traces[:NUMBERED]
    given: dict[str, dict[str, None]] = defaultdict(dict)
    lines: dict[str, Line] = {}
    for one in (one for trace in told for one in trace.numbers if one.value not in TRUTHS):
        given[one.name][one.value] = None
        if one.at:
            lines.setdefault(one.name, one.at)
    changing = {name: tuple(values) for name, values in given.items() if len(values) > 1}
    new = {tuple((one.name, one.value) for one in trace.numbers if one.name in changing) for trace in told}
    if len(new) - 1 >= LEAST_NEW * (len(told) - 1):
        for name, values in changing.items():
            yield ChangingNumber(name, values, place(lines.get(name)))
