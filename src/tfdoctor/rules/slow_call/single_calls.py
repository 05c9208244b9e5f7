"""The tf.functions that Python calls many times in a step, each time for one example."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.operation_types import UPDATES
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.retracing import function_calls
from tfdoctor.facts.step_time.sampled_steps import SampledSteps, sampling_began, times_of
from tfdoctor.facts.step_time.slow_calls import SlowCall, SlowLine
from tfdoctor.facts.steps.steady_steps import SteadySteps
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.facts.timeline.trainer import trainers
from tfdoctor.recording import Recording
from tfdoctor.recording.program import PythonRecord, RecordedGraph, SourceLine
from tfdoctor.terms.verdict import Stage
from tfdoctor.trace import Intervals, Trace

MANY = 8.0
"""Calls per step from which on one call for all examples spares most of their time (seven eighths of it)."""

USEFUL = 0.5
"""Share of the calls' time in their operations from which on it is work that one call has to do as well."""


@dataclass(frozen=True, slots=True)
class SingleCall:
    """A tf.function and the user's line that calls it most often.

    ``calls`` is per training step, ``call_ms`` the mean time of one. The time of ``line`` is that of all calls but
    one, in ms per training step.
    """

    name: str
    calls: float
    call_ms: float
    line: SlowLine


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
        program = recording.program
        record = sampled.python
        if program is None or record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        began_ps = sampling_began(record, trace)
        if began_ps is None:
            raise Unavailable("the stack samples have no time in the trace")
        own = record.fed.function if record.fed else ""
        steady, locate = SteadySteps.of(steps), Places.of(recording)
        found = []
        for name in _singles(program.graphs) - {own}:
            caller = _caller(record, _calls_of(name, sampled.trace), began_ps)
            spans = _calls_of(name, trace)
            found.append(_call(name, spans, steady, activity, (caller, locate)))
        kept = [call for call in found if call]
        return cls(tuple(sorted(kept, key=lambda call: (-call.line.ms, call.name))))


def _calls_of(name: str, trace: Trace) -> Intervals:
    """Return when the trainer's threads call a function."""
    lines = trainers(line for line in trace.host_lines if len(line))
    return Intervals.union(span for line in lines for span in function_calls(line, name).spans)


Caller = tuple[SourceLine | None, int]


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


def _caller(record: PythonRecord, spans: Intervals, began_ps: int) -> Caller:
    """Return the user's line with most stack samples within spans, and how many; (None, 0) where there are none."""
    seen = Counter[SourceLine]()
    for place in record.places:
        if place.at is not None:
            seen[place.at] += int(spans.holds(times_of(place, began_ps)).sum())
    return next(iter(seen.most_common(1)), (None, 0))


def _call(
    name: str, spans: Intervals, steady: SteadySteps, activity: Activity, caller: tuple[Caller, Places]
) -> SingleCall | None:
    """Return the calls of one function; None where they are few, mostly operations, or at no known line."""
    (line, seen), locate = caller
    counts = [  # in each steady step
        sum(start <= begin < end for begin, _ in spans.within(start, end).spans) for start, end in steady.stretches
    ]
    at, calls, steps = locate(line), sum(counts) / steady.rounds, sum(map(bool, counts))
    whole_ms = steady.ms(spans)
    if at is None or not seen or calls < MANY:
        return None
    parts = _parts(spans, steady, activity)
    if parts[Stage.DEVICE] >= USEFUL * whole_ms:
        return None
    spared = {stage: time * (1.0 - 1.0 / calls) for stage, time in parts.items() if time}
    return SingleCall(name, calls, whole_ms / calls, SlowLine(at, SlowCall.SINGLE, seen, steps, spared))


def _parts(spans: Intervals, steady: SteadySteps, activity: Activity) -> dict[Stage, float]:
    """Divide the time of calls as Breakdown divides the step, in ms per training step."""
    computing = activity.of(Stage.DEVICE)
    others = activity.wait
    for stage in (Stage.INPUT, Stage.TRANSFER, Stage.COLLECTIVE):
        others |= activity.of(stage)
    own = spans - (computing | others)
    inside_ms = steady.ms(own & steady.calls)
    return {
        Stage.DEVICE: steady.ms(spans & computing),
        Stage.HOST: inside_ms,
        Stage.BETWEEN: max(0.0, steady.ms(own) - inside_ms),
    }
