"""What grows over the run: the time of a step, memory, graphs, live objects."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from types import MappingProxyType
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

FEWEST_CENSUSES = 3
"""Counts of live objects from which a type has a trend; from five on it can be certain."""


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


COUNTERS: Mapping[Grows, str] = MappingProxyType(
    {
        Grows.RESIDENT: "rss",
        Grows.RESERVED: "data",
        Grows.DEVICE: "device",
        Grows.BLOCKS: "blocks",
        Grows.GRAPH: "graph",
        Grows.FUNCTIONS: "functions",
        Grows.FILES: "files",
    }
)
"""The counter of what may grow."""


ONLY_ADDED = (Grows.GRAPH, Grows.FUNCTIONS)
"""Counts that only the program adds to: without noise, and over time the slower the longer that makes the steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A robust trend (Theil-Sen, without the first tenth): values at begin and end, and its 95 % interval.

    In ms for steps, in bytes for memory, else numbers; ``slope`` is per second of the run, or per step of what only
    the program adds to. ``steady`` says that both halves grow alike, not only the first: no warm-up, no plateau.
    """

    what: Grows
    first: float
    last: float
    slope: float
    low: float
    high: float
    steady: bool
    points: int
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
        buckets = _at_work(log)
        found = [*_lines(log, buckets), *_objects(log, buckets)]
        if not found:
            raise Unavailable("the run is too short to see what grows in it")
        covered = max(trend.end_s for _, _, trend in found) - min(t.begin_s for _, _, t in found)
        trends = tuple(_trend(log, what, name, line) for what, name, line in found)
        return cls(trends, covered)

    def of(self, what: Grows) -> Trend | None:
        """Return the trend of something; None where it was not measured."""
        return next((trend for trend in self.trends if trend.what is what), None)

    @property
    def objects(self) -> tuple[Trend, ...]:
        """The types of live objects that certainly grow in number, the fastest first."""
        found = [t for t in self.trends if t.what is Grows.OBJECTS and t.grows]
        return tuple(sorted(found, key=lambda trend: -trend.slope))


Measured = tuple[Grows, str, TrendLine]
"""What may grow, the type of an object, and its trend."""


def _at_work(log: RunLog) -> Sequence[Bucket]:
    """Return the buckets from the first to the last work on models.

    Data that are loaded before are no leak, and nothing grows while the loop waits for the end of its data.
    """
    course = RunCourse.of(log, CallTree.of(log))
    if course.first_work is None or course.last_called is None:
        return log.buckets
    return log.buckets[course.first_work : course.last_called + 1]


def _trend(log: RunLog, what: Grows, name: str, line: TrendLine) -> Trend:
    loop = main_loop(log)
    meanwhile = [b for b in log.buckets if b.end > line.begin_s and b.start < line.end_s]
    return Trend(
        what=what,
        first=line.first,
        last=line.last,
        slope=line.slope,
        low=line.low,
        high=line.high,
        steady=line.steady,
        points=line.points,
        name=name,
        over_steps=sum(steps.steps for bucket in meanwhile for steps in of_loop(bucket, loop)),
    )


def _lines(log: RunLog, buckets: Sequence[Bucket]) -> Iterator[Measured]:
    """Yield the trends of the main loop's steps and of the counters."""
    if step := TrendLine.through(*_columns(list(_steps(log)))):
        yield Grows.STEP, "", step
    done = list(accumulate(sum(steps.steps for steps in bucket.steps) for bucket in buckets))
    for what, counter in COUNTERS.items():
        values = [getattr(bucket.counters, counter) for bucket in buckets]
        seen = [at for at, value in enumerate(values) if value is not None]
        line = TrendLine.through(*_columns([(buckets[at].end, values[at]) for at in seen]))
        by_step = TrendLine.through(*_columns([(done[at], values[at]) for at in seen]), exact=True)
        if line and by_step and what in ONLY_ADDED:
            line = replace(by_step, begin_s=line.begin_s, end_s=line.end_s)
        if line:
            yield what, "", line


def _steps(log: RunLog) -> Iterator[tuple[float, float]]:
    """Yield the main loop's steps that the profiler did not slow, those of a bucket evenly over it.

    Where the recorder only counted them, their median stands for those of a bucket.
    """
    loop = main_loop(log)
    for bucket in log.buckets:
        width = bucket.end - bucket.start
        for steps in of_loop(bucket, loop):
            if not steps.traced:
                times = StepDurations.within(steps)
                each = times.ms if steps.each else [times.quantile(MIDDLE)]
                for number, ms in enumerate(each):
                    yield bucket.start + width * (number + MIDDLE) / len(each), float(ms)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    columns = np.array(points, np.float64).reshape(-1, 2).T
    return columns[0], columns[1]


def _objects(log: RunLog, buckets: Sequence[Bucket]) -> Iterator[Measured]:
    """Yield the trend of each type of live objects that was counted often enough while the run worked."""
    begin = buckets[0].start if buckets else 0.0
    points: dict[str, dict[float, float]] = defaultdict(dict)
    for census in sorted(log.censuses, key=lambda census: census.at_s):
        for name, number in census.types.items() if census.at_s >= begin else ():
            points[name][census.at_s] = number
    for name, counted in points.items():
        if len(counted) >= FEWEST_CENSUSES:
            yield Grows.OBJECTS, name, TrendLine.through_few(*_columns([*counted.items()]))
