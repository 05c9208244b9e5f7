"""The tf.functions that Python calls many times in a step, each time for one example."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.operation_types import UPDATES
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import WORKING, working
from tfdoctor.facts.step_time.python_work import function_calls
from tfdoctor.facts.step_time.sampled_steps import SampledSteps, sampling_began, times_of
from tfdoctor.facts.step_time.timed_line import SlowCall, TimedLine
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import trainers
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedGraph
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace import Intervals, Trace

MANY = 8.0  # Calls per step from which on one call for all examples spares most of their time (seven eighths of it)
# Share of the calls' time in their operations from which on it is work that one call has to do as well.
USEFUL = 0.5


@dataclass(frozen=True, slots=True)
class SingleCall:
    """A tf.function and the user's line that calls it most often.

    ``calls`` is per training step, ``call_ms`` the mean time of one. The time of ``line`` is that of all calls but
    one, in ms per training step.
    """

    name: str
    calls: float
    call_ms: float
    line: TimedLine


@dataclass(frozen=True, slots=True)
class SingleCalls:
    """Functions that are called MANY times per step or more for one example, and mostly compute little.

    A function takes one example where a graph of it has arguments of which the first dimension is 1, and no graph
    has one of which it is larger: a graph with an open first dimension serves both. Left out are functions that
    update variables, the training function, and calls that are mostly operations.
    """

    calls: tuple[SingleCall, ...] = ()

    @classmethod
    def measure(
        cls,
        recording: Recording,
        trace: Trace,
        steps: Steps,
        activity: Activity,
        sampled: SampledSteps,
        framework: Framework,
    ) -> Self:
        """Count the calls in the steady steps, and find their lines by the stack samples within them.

        Raises:
            Unavailable: the stack was not sampled, or the samples have no time in the trace.
        """
        program, record = recording.program, sampled.python
        if program is None or record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        began_ps = sampling_began(record, trace)
        if began_ps is None:
            raise Unavailable("the stack samples have no time in the trace")
        own = record.fed.function if record.fed else ""
        steady, locate = SteadySteps.of(steps), Places.of(recording)
        found = []
        for name in _singles(program.graphs) - {own}:
            spans = _calls_of(name, sampled.trace)
            seen = Counter[Location | None]()
            for place in record.places:
                seen[locate(place.at)] += int(spans.holds(times_of(place, began_ps)).sum())
            seen.pop(None, None)
            at, number = next(iter(seen.most_common(1)), (None, 0))
            call = _call(name, _calls_of(name, trace), steady, activity, at, number)
            found += [call] if call else []
        return cls(tuple(sorted(found, key=lambda call: (-call.line.ms, call.name))))


def _calls_of(name: str, trace: Trace) -> Intervals:
    """Return when the trainer's threads call a function."""
    return Intervals.any_of(function_calls(line, name) for line in trainers(trace.host_lines))


def _singles(graphs: Iterable[RecordedGraph]) -> set[str]:
    """Return the names of the functions that were traced for one example, for no batch, and update nothing.

    The first dimensions of all their array arguments are 1, or open in some of the graphs.
    """
    by_name: dict[str, list[RecordedGraph]] = defaultdict(list)
    for graph in graphs:
        if graph.kind == "function" and graph.name and not graph.outer:
            by_name[graph.name].append(graph)
    names = set()
    for name, own in by_name.items():
        found = [set(_examples(graph)) for graph in own]
        types = {operation.type for graph in own for operation in graph.operations}
        one = {1} in found and set[int | None]().union(*found) <= {1, None}
        if one and not any(map(UPDATES.fullmatch, types)):  # else the next call needs this one's result
            names.add(name)
    return names


def _examples(graph: RecordedGraph) -> Iterator[int | None]:
    """Yield the first dimension of each array argument; 0 for a vector, which may be anything."""
    for operation in graph.operations:
        given = operation.type == "Placeholder" and operation.name not in graph.captured
        shape = operation.outputs[0][1] if given and operation.outputs else None
        if shape:
            yield shape[0] if len(shape) > 1 or shape[0] in {1, None} else 0


def _call(
    name: str, spans: Intervals, steady: SteadySteps, activity: Activity, at: Location | None, seen: int
) -> SingleCall | None:
    """Return the calls of one function; None where they are few, mostly operations, or at no known line.

    Their time is divided as Breakdown divides the step.
    """
    counts = [  # in each steady step
        sum(start <= begin < end for begin, _ in spans.within(start, end).spans) for start, end in steady.stretches
    ]
    calls, whole_ms = sum(counts) / steady.rounds, steady.ms(spans)
    if at is None or not seen or calls < MANY:
        return None
    host_ms, between_ms = steady.split_ms(spans - working(activity, *WORKING))
    device_ms = steady.ms(spans & activity.of(Stage.DEVICE))
    if device_ms >= USEFUL * whole_ms:
        return None
    parts = {Stage.DEVICE: device_ms, Stage.HOST: host_ms, Stage.BETWEEN: between_ms}
    spared = {stage: time * (1.0 - 1.0 / calls) for stage, time in parts.items() if time}
    shown = [place for place, number in enumerate(counts) if number]
    return SingleCall(name, calls, whole_ms / calls, TimedLine.slow(at, SlowCall.SINGLE, seen, shown, spared))
