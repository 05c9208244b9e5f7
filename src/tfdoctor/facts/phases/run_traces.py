"""The tf.functions that were traced in the run: how often, how long, and at which line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.call_tree import CallTree
from tfdoctor.facts.phases.traced_calls import Definition, Tracings, tracings
from tfdoctor.facts.run.program import Places
from tfdoctor.kinds import RunCall
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import FunctionTrace, TracedNumber
from tfdoctor.verdict import Location


@dataclass(frozen=True, slots=True)
class ChangingNumber:
    """A parameter that got different Python values, with the line that assigned them, where that is known."""

    name: str
    values: tuple[str, ...]
    at: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedDefinition:
    """All calls that traced a function of one name and line: new function objects of a line are one function.

    ``ms`` is their time without that of as many usual calls; ``first_ms`` that of the first one. ``alike_ms`` is
    that of calls whose graph has as many operations, and uses as many weights, as that of an earlier one: the same
    graph, built again. ``defined``
    is the user's line that defines the function.
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
    defined: Location | None = None
    numbers: tuple[ChangingNumber, ...] = ()

    @property
    def again_ms(self) -> float:
        """The time of all but the first."""
        return max(0.0, self.ms - self.first_ms)


@dataclass(frozen=True, slots=True)
class RunTraces:
    """The functions that were traced, those that took most first."""

    functions: tuple[TracedDefinition, ...]
    total_ms: float = 0.0

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Group the calls that traced by the name of the function and the line that calls it.

        Raises:
            Unavailable: the run as a whole was not recorded.
        """
        log = recording.run
        if log is None:
            raise Unavailable(
                "the run as a whole was not recorded", "record it with `tfdoctor profile`"
            )
        place = Places.of(recording)
        groups = tracings(log, CallTree.of(log), _usual_calls(recording))
        found = sorted((_definition(group, place) for group in groups), key=lambda one: -one.ms)
        return cls(tuple(found), sum(one.ms for one in found))


def _definition(group: Tracings, place: Places) -> TracedDefinition:
    return TracedDefinition(
        name=group.name,
        at=place(group.at),
        tracings=len(group.traces),
        ms=sum(map(group.own_ms, group.traces)),
        first_ms=group.own_ms(group.traces[0]),
        made=len({trace.made for trace in group.traces}),
        within=group.within,
        starts_s=tuple(trace.start for trace in group.traces),
        alike_ms=sum(map(group.own_ms, _alike(group.traces))),
        defined=place(next((trace.defined for trace in group.traces if trace.defined), None)),
        numbers=tuple(_changing(group.traces, place)),
    )


def _changing(traces: Sequence[FunctionTrace], place: Places) -> Iterator[ChangingNumber]:
    """Yield the parameters that got different values in the calls that traced."""
    given: dict[str, list[TracedNumber]] = {}
    for trace in traces:
        for one in trace.numbers:
            given.setdefault(one.name, []).append(one)
    for name, found in given.items():
        values = tuple(dict.fromkeys(one.value for one in found))
        if len(values) > 1:
            at = next((one.at for one in found if one.at), None)
            yield ChangingNumber(name, values, place(at))


def _alike(traces: Sequence[FunctionTrace]) -> Iterator[FunctionTrace]:
    """Yield the calls that built a graph of as many operations and weights as an earlier one did."""
    known: set[tuple[int, int]] = set()
    for trace in traces:
        size = trace.operations, trace.variables
        if trace.operations and size in known:
            yield trace
        known.add(size)


def _usual_calls(recording: Recording) -> dict[Definition, float]:
    """Return the time of a call of each function that the recorder timed without tracing, in ms."""
    seen = recording.manifest.steps.functions if recording.manifest else ()
    return {(one.name, one.at): one.call_ms for one in seen if one.call_ms}
