"""The tf.functions that Python calls many times in a step, each time for one example."""

from tfdoctor.facts.step_time.breakdown import WORKING, working
from tfdoctor.facts.step_time.python_work import function_calls
from tfdoctor.facts.step_time.sampled_steps import SampledSteps, sampling_began, times_of
from tfdoctor.facts.timeline.host_events import trainers
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.program import RecordedGraph
from tfdoctor.trace import Intervals, Trace

MANY = 8.0  # Calls per step from which on one call for all examples spares most of their time (seven eighths of it)
# Share of the calls' time in their operations from which on it is work that one call has to do as well.
USEFUL = 0.5


class SingleCall(Record):
    """A tf.function and the user's line that calls it most often.

    ``calls`` is per training step, ``call_ms`` the mean time of one. The time of ``line`` is that of all calls but
    one, in ms per training step.
    """

    name: str
    calls: float
    call_ms: float
    line: TimedLine


class SingleCalls(Record):
    """Functions that are called MANY times per step or more for one example, and mostly compute little.

    Left out are functions that update variables, the training function, and calls that are mostly operations.
    """

    calls: tuple[SingleCall, ...] = ()

    @classmethod
    def measure(
        cls, recording: Recording, trace: Trace, steps: Steps, activity: Activity, sampled: SampledSteps,
        framework: Framework,
    ) -> Self:  # fmt: skip
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
        steady, locate, found = SteadySteps.of(steps), Places.of(recording), []
        for name in _singles(program.graphs) - {record.fed.function if record.fed else ""}:
            spans, seen = _calls_of(name, sampled.trace), Counter[Location | None]()
            for place in record.places:
                seen[locate(place.at)] += int(spans.holds(times_of(place, began_ps)).sum())
            seen.pop(None, None)
            at, number_of = next(iter(seen.most_common(1)), (None, 0))
            spans = _calls_of(name, trace)
            counts = [  # in each steady step
                sum(start <= begin < end for begin, _ in spans.within(start, end).spans)
                for start, end in steady.stretches.spans
            ]
            calls, whole_ms = sum(counts) / steady.rounds, steady.ms(spans)
            device_ms = steady.ms(spans & activity.of(Stage.DEVICE))
            if at is None or not number_of or calls < MANY or device_ms >= USEFUL * whole_ms:
                continue
            # Their time is divided as Breakdown divides the step.
            host_ms, between_ms = steady.split_ms(spans - working(activity, *WORKING))
            parts = {Stage.DEVICE: device_ms, Stage.HOST: host_ms, Stage.BETWEEN: between_ms}
            spared = {stage: time * (1.0 - 1.0 / calls) for stage, time in parts.items() if time}
            shown = [place for place, times in enumerate(counts) if times]
            line = TimedLine.slow(at, SlowCall.SINGLE, number_of, shown, spared)
            found.append(SingleCall(name, calls, whole_ms / calls, line))
        return cls(tuple(sorted(found, key=lambda call: (-call.line.ms, call.name))))


def _calls_of(name: str, trace: Trace) -> Intervals:
    """Return when the trainer's threads call a function."""
    return Intervals.any_of(function_calls(line, name) for line in trainers(trace.host_lines))


def _singles(graphs: Iterable[RecordedGraph]) -> set[str]:
    """Return the names of the functions that were traced for one example, for no batch, and update nothing.

    The first dimensions of all their array arguments are 1, or open in some of the graphs: an open one alone serves
    both. What updates variables is left out, since the next call needs this one's result.
    """
    firsts, types = defaultdict[str, list[set[int | None]]](list), defaultdict[str, set[str]](set)
    for graph in graphs:
        if graph.kind != "function" or not graph.name or graph.outer:
            continue
        types[graph.name] |= {operation.type for operation in graph.operations}
        given = (one for one in graph.operations if one.type == "Placeholder" and one.name not in graph.captured)
        shapes = [shape for one in given if one.outputs and (shape := one.outputs[0][1])]
        # A vector may be anything.
        firsts[graph.name].append({one[0] if len(one) > 1 or one[0] in {1, None} else 0 for one in shapes})
    return {
        name
        for name, found in firsts.items()
        if {1} in found and set[int | None]().union(*found) <= {1, None}
        if not any(map(UPDATES.fullmatch, types[name]))
    }
