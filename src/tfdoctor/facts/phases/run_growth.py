"""What grows over the run: the time of a step, memory, graphs, live objects."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.call_tree import CallTree
from tfdoctor.facts.phases.run_clock import whole_run
from tfdoctor.facts.phases.run_course import RunCourse
from tfdoctor.facts.phases.step_times import MIDDLE, Floats, StepDurations, main_loop, of_loop
from tfdoctor.facts.phases.trend_line import TrendLine
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import Bucket, RunLog

FEWEST_CENSUSES = 3  # Counts of live objects from which a type has a trend; from five on it can be certain


class Grows(StrEnum):
    """What may grow."""

    STEP = "step time"
    RESIDENT = "resident memory"
    RESERVED = "reserved memory"
    DEVICE = "device memory"
    BLOCKS = "Python's memory blocks"
    GRAPH = "operations of the default graph"
    FUNCTIONS = "traced functions"
    FILES = "open files"
    OBJECTS = "live Python objects"


# The counter of what may grow.
COUNTERS = {
    Grows.RESIDENT: "rss",
    Grows.RESERVED: "data",
    Grows.DEVICE: "device",
    Grows.BLOCKS: "blocks",
    Grows.GRAPH: "graph",
    Grows.FUNCTIONS: "functions",
    Grows.FILES: "files",
}

# Counts that only the program adds to: without noise, and over time the slower the longer that makes the steps.
ONLY_ADDED = (Grows.GRAPH, Grows.FUNCTIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend(TrendLine):
    """The trend of something, in ms for steps, in bytes for memory, else a number.

    ``slope`` is per second of the run, or per step of what only the program adds to.
    """

    what: Grows
    name: str = ""  # of OBJECTS: the type
    over_steps: int = 0  # steps meanwhile

    @property
    def grows(self) -> bool:
        """Whether it certainly grows, and has not stopped."""
        return self.low > 0 and self.steady


@dataclass(frozen=True, slots=True)
class RunGrowth:
    """The trends that could be measured."""

    trends: tuple[Trend, ...]
    seconds: float  # of the run that they cover

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Measure each trend between the first and the last work on models; without such work, over the whole run.

        Raises:
            Unavailable: the run as a whole was not recorded, or it is too short for a trend.
        """
        log = whole_run(recording)
        course = RunCourse.of(log, CallTree.of(log))
        buckets: Sequence[Bucket] = log.buckets
        if course.first_work is not None and course.last_called is not None:
            # Data loaded before are no leak, and nothing grows while the loop waits for the end of its data.
            buckets = log.buckets[course.first_work : course.last_called + 1]
        found = [*_lines(log, buckets), *_objects(log, buckets)]
        if not found:
            raise Unavailable("the run is too short to see what grows in it")
        loop, trends = main_loop(log), []
        for trend in found:
            meanwhile = [b for b in log.buckets if b.end > trend.begin_s and b.start < trend.end_s]
            over = sum(steps.steps for bucket in meanwhile for steps in of_loop(bucket, loop))
            trends.append(replace(trend, over_steps=over))
        covered = max(trend.end_s for trend in found) - min(trend.begin_s for trend in found)
        return cls(tuple(trends), covered)

    def of(self, what: Grows) -> Trend | None:
        """Return the trend of something; None where it was not measured."""
        return next((trend for trend in self.trends if trend.what is what), None)

    @property
    def objects(self) -> tuple[Trend, ...]:
        """The types of live objects that certainly grow in number, the fastest first."""
        found = [t for t in self.trends if t.what is Grows.OBJECTS and t.grows]
        return tuple(sorted(found, key=lambda trend: -trend.slope))


def _lines(log: RunLog, buckets: Sequence[Bucket]) -> Iterator[Trend]:
    if step := TrendLine.through(*_columns(list(_steps(log)))):
        yield Trend(**asdict(step), what=Grows.STEP)
    done = list(accumulate(sum(steps.steps for steps in bucket.steps) for bucket in buckets))
    for what, counter in COUNTERS.items():
        values = [getattr(bucket.counters, counter) for bucket in buckets]
        seen = [at for at, value in enumerate(values) if value is not None]
        line = TrendLine.through(*_columns([(buckets[at].end, values[at]) for at in seen]))
        by_step = TrendLine.through(*_columns([(done[at], values[at]) for at in seen]), exact=True)
        if line and by_step and by_step.steady and what in ONLY_ADDED:  # else it may grow before the steps
            line = replace(by_step, begin_s=line.begin_s, end_s=line.end_s)
        if line:
            yield Trend(**asdict(line), what=what)


def _steps(log: RunLog) -> Iterator[tuple[float, float]]:
    """Yield the main loop's steps that the profiler did not slow, those of a bucket evenly over it.

    Where the recorder only counted them, their median stands for those of a bucket.
    """
    loop = main_loop(log)
    for bucket in log.buckets:
        width = bucket.end - bucket.start
        for steps in of_loop(bucket, loop):
            times = StepDurations.within((0, steps))
            each = times.ms if steps.each else [times.quantile(MIDDLE)]
            for number, ms in enumerate(each if not steps.traced else ()):
                yield bucket.start + width * (number + MIDDLE) / len(each), float(ms)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    columns = np.array(points, np.float64).reshape(-1, 2).T
    return columns[0], columns[1]


def _objects(log: RunLog, buckets: Sequence[Bucket]) -> Iterator[Trend]:
    """Yield the trend of each type of live objects that was counted often enough while the run worked."""
    begin = buckets[0].start if buckets else 0.0
    points: dict[str, dict[float, float]] = defaultdict(dict)
    for census in sorted(log.censuses, key=lambda census: census.at_s):
        for name, number in census.types.items() if census.at_s >= begin else ():
            points[name][census.at_s] = number
    for name, counted in points.items():
        if len(counted) >= FEWEST_CENSUSES:
            line = TrendLine.through_few(*_columns([*counted.items()]))
            yield Trend(**asdict(line), what=Grows.OBJECTS, name=name)
