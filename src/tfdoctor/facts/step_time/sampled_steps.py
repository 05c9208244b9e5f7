"""The stack samples in traced steps: the measured ones, and calls that were traced only to be sampled."""

from itertools import compress

from tfdoctor.facts.chart import Chart
from tfdoctor.facts.kit import *
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import UNKNOWN, WORKING, Breakdown, working
from tfdoctor.facts.step_time.timed_line import (
    WITHIN,
    LineWork,
    Samples,
    SlowCall,
    TimedLine,
    lines_of,
    shown,
    slow_call,
    work_of,
)
from tfdoctor.facts.steps.known_steps import marked_step
from tfdoctor.facts.steps.step import chain, compilations
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.recording.program import FedCall, PythonRecord, SeenPlace
from tfdoctor.recording.run_log import RunLog
from tfdoctor.trace.events import LIMIT_PS
from tfdoctor.trace.names import SAMPLED

PS_PER_NS, PS_PER_US = 1_000, 1_000_000
MODELS = {SlowCall.PREDICT, SlowCall.MODEL}  # Calls of a model
READ = "ReadVariableOp"  # TensorFlow's operation that reads a variable, such as the weights of a layer


class SampledSteps(Record, eq=False):
    """The trace with the calls after the measured steps, its steps, what ran when, and the samples that count.

    Such calls show where Python is, and not how long a step takes: frequent samples cost time. Of ``python``, the
    samples after the measured steps are those in calls that are as long as a steady step; None is not sampled.
    """

    trace: Trace
    steps: Steps
    activity: Activity
    python: PythonRecord | None

    @classmethod
    def measure(cls, trace: Trace, recording: Recording, steps: Steps, activity: Activity) -> Self:
        """Add the calls that were traced for samples, where there are any.

        Whether one is steady is judged beside the measured steps. After the last one the loop may have been left:
        it is none of them.
        """
        python, whole = recording.program.python if recording.program else None, trace.sampled
        if whole is None:
            return cls(trace, steps, activity, python)
        marks = (event for event in whole.host_events(SAMPLED) if "step_num" in event.stats)
        calls = chain(marked_step(event, max(1, int(event.stats.get("steps", 1)))) for event in marks)[:-1]
        discarded = recording.manifest.steps.discarded if recording.manifest else ()
        every = (*steps.steps, *(call for call in calls if call.number not in discarded))
        judged = Steps.of(every, steps.source, compiling=compilations(whole))
        steady = (*steps.steady, *judged.steady[len(steps.steps) :])
        together = replace(steps, steps=every, steady=steady, stalled=())
        began_ps, end_ps = sampling_began(python, whole) if python else None, steps.steps[-1].end_ps
        if python is not None and began_ps is not None:
            in_steady, places = together.steady_spans, []
            for place in python.places:
                times = times_of(place, began_ps)
                kept = tuple(compress(place.when_us, (times < end_ps) | in_steady.holds(times)))
                places += [replace(place, when_us=kept, seen=len(kept))] if kept else []
            python = replace(python, places=tuple(places))
        return cls(whole, together, Chart([whole, recording]).fact(Activity), python)


def sampling_began(python: PythonRecord, trace: Trace) -> int | None:
    """Return when the stack samples began, in ps from the start of the trace; None where a clock is unknown."""
    if python.began_unix_ns is None or trace.started_unix_ns is None:
        return None
    return (python.began_unix_ns - trace.started_unix_ns) * PS_PER_NS


def times_of(place: SeenPlace, began_ps: int) -> NDArray[np.int64]:
    """Return (n,) when a place was sampled, in ps from the start of the trace, within the limits of its times."""
    times = (began_ps + when * PS_PER_US for when in place.when_us)
    return np.array([min(max(time, -LIMIT_PS), LIMIT_PS) for time in times], np.int64)


# The samples of a place, (n,) each: the part of the step, as in Breakdown, UNKNOWN where a copy or a collective
# counts first; and whether one is after the first operation of the call, and before its last one.
PlacedSamples = tuple[SeenPlace, NDArray[np.str_], NDArray[np.bool_]]


def placed_samples(trace: Trace, sampled: SampledSteps, framework: Framework) -> Iterator[PlacedSamples]:
    """Yield the samples of the trainer's thread in steady steps, also in those that are traced for samples alone.

    Raises:
        Unavailable: the stack was not sampled, or the samples have no time in the trace.
    """
    record, steps, ran = sampled.python, sampled.steps, sampled.activity
    if record is None:
        raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
    began_ps = sampling_began(record, trace)
    if began_ps is None:
        raise Unavailable(
            "the stack samples have no time in the trace (an older recording, or TensorFlow before 2.5)"
        )
    starts, call_ends, ends = np.array([(s.start_ps, s.call_end_ps, s.end_ps) for s in steps.steps], np.int64).T
    device, steady = ran.of(Stage.DEVICE), np.array(steps.steady, bool)
    operations = pairs_of(device.within(one.start_ps, one.call_end_ps).bounds_ps for one in steps.steps)
    others = {Stage.DEVICE: device, Stage.INPUT: working(ran, Stage.INPUT), UNKNOWN: working(ran, *WORKING)}
    for place in record.places:
        times = times_of(place, began_ps)
        at = np.searchsorted(starts, times, side="right") - 1
        inside = (at >= 0) & (times < ends[at]) & steady[at]
        times, at = times[inside], at[inside]
        first, last = operations[at].T
        part = np.where(times >= call_ends[at], str(Stage.BETWEEN), str(Stage.HOST))
        part = np.select([spans.holds(times) for spans in others.values()], [str(one) for one in others], part)
        yield place, part, (first < times) & (times < last)


class HostLines(Record):
    """The lines of each part of the step in which Python works, the most frequent first.

    Samples count while neither the device nor a copy works and no batch is awaited, as Breakdown divides the
    step: a line that waits for the device is not the host's.
    """

    parts: Mapping[Stage, tuple[TimedLine, ...]]

    @classmethod
    def measure(
        cls, trace: Trace, recording: Recording, sampled: SampledSteps, framework: Framework, breakdown: Breakdown
    ) -> Self:
        """Sort each sample into the part of the step that it fell into.

        What a line does itself and its waits within a compiled function are two entries.
        """
        divided = {stage: list[Samples]() for stage in (Stage.HOST, Stage.BETWEEN)}  # in which Python works
        for place, part, amid in placed_samples(trace, sampled, framework):
            work = work_of(place)
            for stage, samples in divided.items():
                here = part == stage
                waits = here & amid & (work is LineWork.ENTERING)
                samples.append((place, LineWork.DISPATCHING, int(waits.sum())))
                samples.append((place, work if work in WITHIN else None, int((here & ~waits).sum())))
        locate = Places.of(recording)
        return cls({stage: lines_of(own, locate, breakdown[stage], shown) for stage, own in divided.items()})

    @property
    def dispatching_ms(self) -> float:
        """The host's time between the operations of compiled functions, in ms per step."""
        lines = self.parts.get(Stage.HOST, ())
        return sum(line.ms for line in lines if line.work is LineWork.DISPATCHING)


class StackSamples(Record):
    """The lines of the trainer's thread, the most frequent first, without samples taken while TensorFlow trained.

    ``new_arguments`` has the shapes of the arguments that were other arrays at the next call. ``models_at`` are
    the lines of models whose results decide what these arguments are: actions in a game, which fill a memory.
    """

    places: tuple[TimedLine, ...] = ()
    called_at: Location | None = None
    new_arguments: tuple[tuple[int, ...], ...] = ()
    function: str = ""  # the training function's name in the trace; "" is unknown
    models_at: frozenset[Location] = frozenset()

    @classmethod
    def measure(cls, recording: Recording, framework: Framework, sampled: SampledSteps | None) -> Self:
        """Read the program record; of calls that were traced for samples only, those in steady calls.

        Raises:
            Unavailable: the recording has no stack samples.
        """
        program = recording.program
        record = sampled.python if sampled else program.python if program else None
        if record is None:
            cure = "" if recording.run else framework.with_tfdoctor
            raise Unavailable(f"the stack of Python between two steps was not sampled{cure}")
        locate, fed = Places.of(recording), record.fed or FedCall()
        places = _with_makers(record.places, recording.run, fed)
        makers = (one for one in places if one.makes and one.at != fed.at)
        graphs = [one for one in (program.graphs if program else ()) if not one.outer and one.kind != "dataset"]
        others = (operation for one in graphs if one.name != fed.function for operation in one.operations)
        reads = any(operation.type == READ for operation in others)  # variables, in another function
        lines = (
            TimedLine(locate(one.at), one.seen, 0.0, one.callback, {one.calls: one.seen}, makes=one.makes)
            for one in places
            if not one.inside
        )
        models = (
            locate(one.at)
            for one in makers
            if (reads if work_of(one) is LineWork.ENTERING else slow_call(one.calls) in MODELS)
        )
        new = tuple(argument.shape for argument in fed.arguments if argument.new_object)
        return cls(tuple(lines), locate(fed.at), new, fed.function, frozenset(filter(None, models)))

    @property
    def makers(self) -> tuple[TimedLine, ...]:
        """The lines that make the arguments of the training function, other than mostly by calls that are slow."""
        slow = Counter[Location | None]()
        for place in self.places:
            slow[place.at] += place.seen if place.call else -place.seen
        made = (one for one in self.places if one.makes and not one.call and slow[one.at] < 0)
        return tuple(made) if self.new_arguments else ()

    def share(self, places: Iterable[TimedLine]) -> float:
        """Return the share of the stack samples at these places, 0 to 1."""
        every = sum(place.seen for place in self.places)
        return sum(place.seen for place in places) / every if every else 0.0


def _with_makers(places: Sequence[SeenPlace], run: RunLog | None, fed: FedCall) -> Sequence[SeenPlace]:
    """Return places that say whether they make what a call is fed, as far as its loop is known."""
    spans = next((one.lines for one in (run.makers if run else ()) if one.at == fed.at), None)
    if spans is None:
        return places
    looped = {line for first, last in spans for line in range(first, last + 1)}
    return [replace(one, makes=one.looped in looped) if one.looped else one for one in places]
