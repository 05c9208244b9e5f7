"""What grows over the run: the time of a step, memory, graphs, live objects.

A trend has an interval that noise, plateaus and drifts seldom pass. The slope is Theil and Sen's: the median of
the slopes of all pairs (Sen, "Estimates of the regression coefficient based on Kendall's tau", 1968). Its interval
lies between the slopes whose ranks Kendall's S leaves open, with the variance of S for ties (Kendall, "Rank
Correlation Methods", 1975). That is for independent noise. Memory drifts: each point begins where the last one
was. So the interval contains that of the mean increment between a few stretches as well (Student's t), which is
right for a drift by chance and too wide for noise.
"""

from itertools import accumulate

from tfdoctor.facts.kit import *
from tfdoctor.facts.phases.run_course import MIDDLE, Floats, RunCourse, StepDurations, main_steps, whole_run
from tfdoctor.recording.run_log import Bucket, RunLog
from tfdoctor.terms.student_t import student

# Share of the points at the begin that are left out: caches fill, memory pools grow, functions are traced.
WARM_UP = 0.1
# Points of a trend: medians of neighbours, so that single long steps and collections of garbage do not count.
MOST_POINTS = 100
FEWEST_POINTS = 8  # Points from which both halves can be looked at
# Standard errors to either side: 95 % for the whole; 99 % for the second half, so that of plateaus fewer than 1 in
# 100 are called growth.
SURE, SURER = 1.96, 2.576
HALF = 0.5
LEAST_S = 1e-9
# Stretches whose increments must agree. In 400 series of 300 points each: of noise, plateaus and single jumps none
# was called growth, of random walks 5 %, of lines that grow by six times the noise 99 %.
STRETCHES = 6
ENDS = 10  # The values at begin and end are medians of this part of the points
# Shares of all points at which a trend's first and last value lie: in the middle of those they stand for.
FIRST_AT, LAST_AT = WARM_UP + 0.5 * (1.0 - WARM_UP) / ENDS, 1.0 - 0.5 * (1.0 - WARM_UP) / ENDS
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
    Grows.RESIDENT: "rss", Grows.RESERVED: "data", Grows.DEVICE: "device", Grows.BLOCKS: "blocks",
    Grows.GRAPH: "graph", Grows.FUNCTIONS: "functions", Grows.FILES: "files",
}  # fmt: skip
# Counts that only the program adds to: without noise, and over time the slower the longer that makes the steps.
ONLY_ADDED = (Grows.GRAPH, Grows.FUNCTIONS)


def mean_growth(first: float, last: float) -> float:
    """Return by how much the mean of all points exceeds the first point, on the line through a trend's two values.

    The first value lies 14 % behind the first point, and on a line the mean has half of the whole growth.
    """
    return max(0.0, last - first) / (LAST_AT - FIRST_AT) / 2


class Trend(Record, kw_only=True):
    """A slope with the lower end of its 95 % interval, and the values at begin and end, without the first tenth.

    In ms for steps, in bytes for memory, else a number; ``slope`` is per second of the run, or per step of what
    only the program adds to. ``steady`` says that both halves grow alike: no warm-up, no plateau.
    """

    what: Grows = Grows.STEP
    name: str = ""  # of OBJECTS: the type
    over_steps: int = 0  # steps meanwhile
    slope: float
    low: float
    steady: bool
    first: float
    last: float
    begin_s: float = 0.0
    end_s: float = 0.0

    @property
    def grows(self) -> bool:
        """Whether it certainly grows, and has not stopped."""
        return self.low > 0 and self.steady

    @classmethod
    def through(cls, times: Floats, values: Floats, *, exact: bool = False) -> Self | None:
        """Return the trend of many points in order; None where they are too few. ``exact`` ones have no noise."""
        start = int(len(times) * WARM_UP)
        times, values = times[start:], values[start:]
        if len(times) > MOST_POINTS:
            times, values = _medians(times, values, MOST_POINTS)
        if len(times) < FEWEST_POINTS or not times[-1] > times[0]:
            return None
        slope, low = _sen(times, values, SURE)
        # The mean increment per s between the medians of a few stretches, with its interval.
        at, level = _medians(times, values, STRETCHES)
        rates = np.diff(level) / np.maximum(np.diff(at), LEAST_S)
        drift, error = rates.mean(), student(len(rates) - 1) * float(rates.std(ddof=1)) / np.sqrt(len(rates))
        middle = len(times) // 2
        later, least = _sen(times[middle:], values[middle:], SURER)
        few = max(1, len(times) // ENDS)
        return cls(
            slope=slope, low=min(low, float(drift - error)),
            steady=(exact or least > 0) and later >= HALF * slope > 0,
            first=float(np.median(values[:few])), last=float(np.median(values[-few:])),
            begin_s=float(times[0]), end_s=float(times[-1]),
        )  # fmt: skip

    @classmethod
    def through_few(cls, times: Floats, values: Floats) -> Self:
        """Return the trend of three points or more; it is steady if each is above the one before."""
        slope, low = _sen(times, values, SURE)
        rises = all(after > before for before, after in pairwise(values))
        middle = len(values) // 2 - 1
        last_half = (values[-1] - values[middle]) / (times[-1] - times[middle])
        return cls(
            slope=slope, low=low, steady=rises and bool(last_half >= HALF * slope),
            first=float(values[0]), last=float(values[-1]), begin_s=float(times[0]), end_s=float(times[-1]),
        )  # fmt: skip


def _medians(times: Floats, values: Floats, number: int) -> tuple[Floats, Floats]:
    both, (size, longer) = np.stack((times, values)), divmod(len(times), number)
    end = longer * (size + 1)  # of the groups with one point more
    parts = both[:, :end].reshape(2, -1, size + 1), both[:, end:].reshape(2, -1, size)
    at, level = np.concatenate([np.median(part, axis=2) for part in parts], axis=1)
    return at, level


def _sen(times: Floats, values: Floats, errors: float) -> tuple[float, float]:
    """Return the median slope of all pairs of points, and the low end of its interval; -inf if they say nothing."""
    before, after = np.triu_indices(len(times), 1)
    apart = times[after] - times[before]
    slopes = np.sort(((values[after] - values[before])[apart > 0]) / apart[apart > 0])
    if not len(slopes):
        return 0.0, -np.inf
    slope = float(np.median(slopes))
    points = len(values)
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    tied = float((ties * (ties - 1) * (2 * ties + 5)).sum())
    variance = max(0.0, (points * (points - 1) * (2 * points + 5) - tied) / 18)  # of Kendall's S
    open_ranks = errors * np.sqrt(variance)
    low = int(np.floor((len(slopes) - open_ranks) / 2))
    return slope, float(slopes[low]) if low >= 0 else -np.inf


class RunGrowth(Record):
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
        course, steps = RunCourse.of(log), main_steps(log)
        buckets: Sequence[Bucket] = log.buckets
        if course.first_work is not None and course.last_called is not None:
            # Data loaded before are no leak, and nothing grows while the loop waits for the end of its data.
            buckets = log.buckets[course.first_work : course.last_called + 1]
        points, trends = [], []
        for at, own in steps:  # those of a bucket lie evenly over it; of counted ones, their median stands for them
            bucket, times = log.buckets[at], StepDurations.of((at, own))
            each = times.ms if own.each else [times.quantile(MIDDLE)]
            for number, ms in enumerate(each if not own.traced else ()):  # the profiler slows traced ones
                points.append(
                    (bucket.start + (bucket.end - bucket.start) * (number + MIDDLE) / len(each), float(ms))
                )
        of_steps = Trend.through(*_columns(points))
        found = [*([of_steps] if of_steps else []), *_counted(log, buckets)]
        if not found:
            raise Unavailable("the run is too short to see what grows in it")
        for trend in found:
            meanwhile = {n for n, b in enumerate(log.buckets) if b.end > trend.begin_s and b.start < trend.end_s}
            trends.append(replace(trend, over_steps=sum(own.steps for number, own in steps if number in meanwhile)))
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


def _counted(log: RunLog, buckets: Sequence[Bucket]) -> Iterator[Trend]:
    """Yield the trends of counters, and of each type of live objects that was counted often enough meanwhile."""
    done = list(accumulate(sum(steps.steps for steps in bucket.steps) for bucket in buckets))
    for what, counter in COUNTERS.items():
        values = [getattr(bucket.counters, counter) for bucket in buckets]
        seen = [at for at, value in enumerate(values) if value is not None]
        line = Trend.through(*_columns([(buckets[at].end, values[at]) for at in seen]))
        by_step = Trend.through(*_columns([(done[at], values[at]) for at in seen]), exact=True)
        if line and by_step and by_step.steady and what in ONLY_ADDED:  # else it may grow before the steps
            line = replace(by_step, begin_s=line.begin_s, end_s=line.end_s)
        if line:
            yield replace(line, what=what)
    begin = buckets[0].start if buckets else 0.0
    censuses = sorted((one for one in log.censuses if one.at_s >= begin), key=lambda census: census.at_s)
    points = by_key((name, (one.at_s, number)) for one in censuses for name, number in one.types.items())
    for name, counted in points.items():
        if len(last_ones := dict(counted)) >= FEWEST_CENSUSES:  # of several at one time, the last
            line = Trend.through_few(*_columns([*last_ones.items()]))
            yield replace(line, what=Grows.OBJECTS, name=name)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[Floats, Floats]:
    columns = np.array(points, np.float64).reshape(-1, 2).T
    return columns[0], columns[1]
