"""The user's lines that the host's time of a step goes to, by stack samples on the trace's clock."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.breakdown import WORKING, Breakdown, working
from tfdoctor.facts.step_time.sampled_steps import SampledSteps, sampling_began, times_of
from tfdoctor.facts.steps.steps import Steps, StepSpans
from tfdoctor.facts.timeline.activity import Activity
from tfdoctor.recording import Recording
from tfdoctor.recording.program import PythonRecord, SeenPlace, SourceLine
from tfdoctor.terms.verdict import Location, Stage
from tfdoctor.trace import Intervals, Trace
from tfdoctor.trace.intervals import pairs_of

K = TypeVar("K")


class LineWork(StrEnum):
    """What kind of thing a line does, by the functions below it."""

    READING = "reading"  # copies a tensor to NumPy
    CONVERTING = "converting"  # makes tensors of arrays and Python values
    ENTERING = "entering"  # starts a compiled function of TensorFlow, and returns from it
    DISPATCHING = "dispatching"  # waits in one between two of its operations: not the line's own work
    LOOPING = "looping"  # the framework's own work for each step: Keras' iterator and metrics, checks of arguments
    OPERATIONS = "operations"  # runs TensorFlow operations one by one, or Python code of TensorFlow and Keras
    PYTHON = "python"  # Python's own work and that of other packages


WITHIN = (LineWork.ENTERING, LineWork.DISPATCHING, LineWork.LOOPING)
"""What TensorFlow and Keras do for a compiled function: apart from the work of the line that calls it."""

LOOPS = ("fit", "train_on_batch")
"""Functions of Keras that train: what they do besides is not the choice of the line that calls them."""

CALL = "polymorphic_function.Function.__call__"
"""The end of the name of TensorFlow's way into a compiled function, which checks the arguments."""

READS = frozenset(("numpy", "_numpy", "__array__", "__float__", "__int__", "__bool__", "item"))
"""Methods of tensors and variables that copy the value to the host."""

CONVERTS = frozenset(
    ("convert_to_eager_tensor", "convert_to_tensor", "constant", "_constant_impl",
     "_constant_eager_impl", "tensor_conversion_function")
)  # fmt: skip
"""Functions of TensorFlow that make a tensor of another value."""

ENTERS = "quick_execute"
"""The function of TensorFlow that runs a compiled function, in every version since 2.0."""

KERAS = ("keras", "tf_keras")
LIBRARIES = ("tensorflow", *KERAS)
"""Packages whose functions run TensorFlow operations."""


@dataclass(frozen=True, slots=True)
class HostLine:
    """A line of the user's in one part of the step; ``ms`` per training step.

    ``calls`` has the functions that the line calls with the number of samples in them, most first; "" is
    the line itself, or a function written in C that the line does not call by a module's name.
    """

    at: Location | None
    seen: int
    ms: float
    callback: str = ""
    calls: Mapping[str, int] = field(default_factory=dict)
    callers: Mapping[Location, int] = field(default_factory=dict)
    work: LineWork = LineWork.PYTHON

    @property
    def main_call(self) -> str:
        """The function that the line is in most often; "" where it is the line itself."""
        return next(iter(self.calls), "")

    @property
    def caller(self) -> Location | None:
        """The user's line that called the line's function most often; None where none was seen."""
        return next(iter(self.callers), None)


@dataclass(frozen=True, slots=True)
class HostLines:
    """The lines of each part of the step in which Python works, the most frequent first.

    Samples count while neither the device nor a copy works and no batch is awaited, as Breakdown divides the
    step: a line that waits for the device is not the host's. ``around`` are the lines that call the function in
    which the training call is: they hold the training, so that the lines of that function are not theirs.
    """

    parts: Mapping[Stage, tuple[HostLine, ...]]
    around: frozenset[Location] = frozenset()

    @classmethod
    def measure(
        cls, recording: Recording, trace: Trace, sampled: SampledSteps, breakdown: Breakdown, framework: Framework
    ) -> Self:
        """Sort each sample into the part of the step that it fell into.

        Raises:
            Unavailable: the stack was not sampled, or the samples have no time in the trace.
        """
        record = sampled.python
        if record is None:
            raise Unavailable(f"the stack of Python was not sampled{framework.with_tfdoctor}")
        began_ps = sampling_began(record, trace)
        if began_ps is None:
            raise Unavailable(
                "the stack samples have no time in the trace (an older recording, or TensorFlow before 2.5)"
            )
        host_time = HostTime.of(sampled.steps, sampled.activity)
        times = {place: times_of(place, began_ps) for place in record.places}
        locate = Places.of(recording)
        return cls(
            {
                stage: _lines(host_time.sort(stage, times), locate, breakdown[stage])
                for stage in (Stage.HOST, Stage.BETWEEN)
            },
            frozenset(filter(None, map(locate, _around(recording, record)))),
        )

    def own(self, stage: Stage) -> tuple[HostLine, ...]:
        """Return the lines of a part that work themselves, without those that wait for a function's operations."""
        lines = self.parts.get(stage, ())
        return tuple(line for line in lines if line.work is not LineWork.DISPATCHING)

    @property
    def dispatching_ms(self) -> float:
        """The host's time between the operations of compiled functions, in ms per step."""
        lines = self.parts.get(Stage.HOST, ())
        return sum(line.ms for line in lines if line.work is LineWork.DISPATCHING)


@dataclass(frozen=True, slots=True, eq=False)
class HostTime:
    """When a step is the host's: within and between calls, while nothing else works."""

    spans: StepSpans
    call_ends_ps: NDArray[np.int64]  # (steps,)
    works_ps: NDArray[np.int64]  # (steps, 2) the first and the last time that the device works in a call
    busy: Intervals  # other work

    @classmethod
    def of(cls, steps: Steps, activity: Activity) -> Self:
        """Take what Breakdown gives to the device, copies, collectives and input for other work."""
        device, chosen = activity.of(Stage.DEVICE), steps.steady_steps
        ends = np.array([step.call_end_ps for step in chosen], np.int64)
        works = pairs_of(device.within(one.start_ps, one.call_end_ps).bounds_ps for one in chosen)
        return cls(StepSpans.of(steps), ends, works, working(activity, *WORKING))

    def sort(
        self, stage: Stage, times_ps: Mapping[SeenPlace, NDArray[np.int64]]
    ) -> dict[tuple[SeenPlace, LineWork], int]:
        """Return how many samples of each place lie in a part, by what the place does at those times."""
        counts: dict[tuple[SeenPlace, LineWork], int] = {}
        for place, every in times_ps.items():
            latest = np.searchsorted(self.spans.starts_ps, every, side="right") - 1
            between = every >= self.call_ends_ps[latest]
            part = between if stage is Stage.BETWEEN else ~between
            chosen = self.spans.holds(every) & part & ~self.busy.holds(every)
            times, work, waits = every[chosen], work_of(place), 0
            if work is LineWork.ENTERING:  # after the call's first operation and before its last
                first, last = self.works_ps[latest[chosen]].T
                waits = int(((first < times) & (times < last)).sum())
            counts[place, LineWork.DISPATCHING] = waits
            counts[place, work] = len(times) - waits
        return {key: count for key, count in counts.items() if count}

    def part(self, time_ps: int, others: Mapping[Stage, Intervals]) -> Stage | None:
        """Return the part of a steady step at a time: one of the others, the host's, or between calls.

        ``others`` has the parts in which other work counts first. None is a part that is not in it.
        """
        at = np.array([time_ps])
        if self.busy.holds(at)[0]:
            return next((stage for stage, spans in others.items() if spans.holds(at)[0]), None)
        latest = np.searchsorted(self.spans.starts_ps, time_ps, side="right") - 1
        return Stage.BETWEEN if time_ps >= self.call_ends_ps[latest] else Stage.HOST


def _around(recording: Recording, record: PythonRecord) -> set[SourceLine | None]:
    """Return the lines that call the function in which the training call is."""
    calls = {fed.at for fed in (record.fed, record.feeds) if fed}
    if recording.manifest:
        calls.add(recording.manifest.steps.at)
    seen = (*record.places, *(recording.run.stacks.values() if recording.run else ()))
    return {one.caller for one in seen if one.at and one.at in calls}


def _lines(seen: Mapping[tuple[SeenPlace, LineWork], int], locate: Places, part_ms: float) -> tuple[HostLine, ...]:
    """Divide the time of a part among its lines by their samples, most first.

    What a line does itself and its waits within a compiled function are two entries.
    """
    groups: dict[tuple[object, ...], dict[tuple[SeenPlace, LineWork], int]] = defaultdict(dict)
    for (place, work), count in seen.items():
        kind = work if work in WITHIN else None
        groups[place.at, place.callback, kind][place, work] = count
    each_ms = part_ms / max(1, sum(seen.values()))
    lines = [_line(group, locate, each_ms) for group in groups.values()]
    return tuple(sorted(lines, key=lambda line: -line.seen))


def _line(group: Mapping[tuple[SeenPlace, LineWork], int], locate: Places, each_ms: float) -> HostLine:
    (first, _), count = next(iter(group)), sum(group.values())
    callers = summed((locate(place.caller), number) for (place, _), number in group.items())
    return HostLine(
        locate(first.at),
        count,
        count * each_ms,
        first.callback,
        summed((shown(place), number) for (place, _), number in group.items()),
        {caller: number for caller, number in callers.items() if caller},
        next(iter(summed((work, number) for (_, work), number in group.items()))),
    )


def summed(counts: Iterable[tuple[K, int]]) -> dict[K, int]:
    """Add numbers by key, most first."""
    total: Counter[K] = Counter()
    for key, number in counts:
        total[key] += number
    return dict(total.most_common())


def by_caller(lines: Iterable[HostLine]) -> tuple[HostLine, ...]:
    """Merge the lines of functions of the user's by the line that calls the function, most first."""
    groups: dict[Location, list[HostLine]] = defaultdict(list)
    for line in lines:
        if line.caller and not line.callback:
            groups[line.caller].append(line)
    merged = []
    for caller, group in groups.items():
        calls = summed((name, number) for line in group for name, number in line.calls.items())
        work = next(iter(summed((line.work, line.seen) for line in group)))
        seen, time_ms = sum(line.seen for line in group), sum(line.ms for line in group)
        merged.append(HostLine(caller, seen, time_ms, calls=calls, work=work))
    return tuple(sorted(merged, key=lambda line: -line.seen))


def work_of(place: SeenPlace) -> LineWork:
    """Return what kind of thing a sampled line does."""
    calls, runs = place.calls.rpartition(".")[2], place.runs.rpartition(".")[2]
    if not _in_library(place.calls):
        return LineWork.PYTHON
    if calls in READS:
        return LineWork.READING
    if calls in CONVERTS or (place.inside and runs in CONVERTS):  # of the compiled function's arguments
        return LineWork.CONVERTING
    if place.inside and runs == ENTERS:
        return LineWork.ENTERING
    of_keras = place.calls.partition(".")[0] in KERAS and calls in LOOPS
    of_call = place.inside and place.calls.endswith(CALL)
    own = (of_keras or of_call) and not place.callback
    return LineWork.LOOPING if own else LineWork.OPERATIONS


def shown(place: SeenPlace) -> str:
    """Return the function to name: what the line calls, or what TensorFlow does inside its own calls."""
    return place.runs if place.inside and _in_library(place.calls) else place.calls


def _in_library(name: str) -> bool:
    return name.partition(".")[0] in LIBRARIES
