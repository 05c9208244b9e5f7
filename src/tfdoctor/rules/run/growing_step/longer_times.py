"""What takes longer and longer over the run: lines in its steps, and calls that a loop makes again and again."""

import numpy as np

from tfdoctor.facts.kit import summed
from tfdoctor.facts.phases.run_course import numbered
from tfdoctor.facts.phases.run_growth import mean_growth
from tfdoctor.families.kit import *
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import Line, RunLog, SeenStack

SKIPPED = 0.1  # Share of the steps that is left out at the beginning: they warm up
COMPARED = 1 / 3  # Share of the other steps that is compared, at their beginning and at their end
TRAINING = (RunCall.STEP, RunCall.BETWEEN)  # Calls that train
AROUND = (RunCall.SCRIPT, RunCall.FUNCTION)  # Calls in whose loops steps may be
MAKES_GRAPH = (RunWork.TRACING, RunWork.BUILDING)  # Work that adds operations to a graph
# Calls whose time the log adds up: a point of the trend is the mean of those in a bucket.
TOGETHER = RunCall.FUNCTION
ALONE = (RunCall.PREDICT, RunCall.EVALUATE)  # Calls that the log tells one by one
Seen = tuple[SeenStack, float, int]  # A stack, with its ms and samples


class StepLine(Record, kw_only=True):
    """Time of a line per training step, in ms; ``samples`` are those at the end, ``calls`` what it calls most.

    ``graph_samples`` are those in which it makes operations of a graph; ``function`` is that which holds the line.
    """

    at: Location
    first_ms: float
    last_ms: float
    samples: int
    calls: str = ""
    graph_samples: int = 0
    function: str = ""

    @property
    def grown_ms(self) -> float:
        """What it takes longer at the end."""
        return self.last_ms - self.first_ms


class SlowingCall(Record):
    """All calls of a line, which certainly get slower: ms of one at the beginning and at the end."""

    name: str  # "Session.run"
    at: Location
    calls: int
    first_ms: float
    last_ms: float

    @property
    def beyond_ms(self) -> float:
        """What they take beyond the first one, as the trend has it."""
        return self.calls * mean_growth(self.first_ms, self.last_ms)


class LongerTimes(Record):
    """The user's lines in the steps, where those are enough, and the calls that get slower; most growth first."""

    lines: tuple[StepLine, ...] = ()
    calls: tuple[SlowingCall, ...] = ()

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Add up the stack samples of the steps by line, and draw a trend through the calls of each line.

        Raises:
            Unavailable: the run was not recorded as a whole.
        """
        log, place = run_course.whole_run(recording), Places.of(recording)
        found, made = [], {one.id: one for one in log.calls.values() if one.at}
        # By name and line: how many, when, ms of one.
        timed = defaultdict[tuple[str, Line | None], list[tuple[float, float, float]]](list)
        for bucket in log.buckets:
            for number_of, entered in numbered(bucket.entered).items():
                call, time_ms = made.get(number_of), bucket.calls.get(str(number_of), 0.0)
                if call and call.call is TOGETHER and entered and time_ms:
                    timed[call.name, call.at].append((entered, (bucket.start + bucket.end) / 2, time_ms / entered))
        for span in log.spans:
            if (call := made.get(span.call)) and call.call in ALONE and not span.open:
                timed[call.name, call.at].append((1, span.start, 1000 * (span.end - span.start)))
        for (name, line_at), points in timed.items():
            times, starts, each_ms = np.array(points, np.float64).T
            trend, at = Trend.through(starts, each_ms), place(line_at)
            if at and trend and trend.low > 0 and trend.steady:
                found.append(SlowingCall(name, at, int(times.sum()), trend.first, trend.last))
        return cls(_lines(log, place), tuple(sorted(found, key=lambda call: -call.beyond_ms)))


def _lines(log: RunLog, place: Places) -> tuple[StepLine, ...]:
    sizes, done, lines = [sum(steps.steps for steps in bucket.steps) for bucket in log.buckets], 0, []
    # At either end, which do not overlap: the number of steps, and the stacks of each line with ms and samples.
    compared, stacks = [0, 0], defaultdict[Line, tuple[list[Seen], list[Seen]]](lambda: ([], []))
    for bucket, steps in zip(log.buckets, sizes, strict=True):
        middle = (done + steps / 2) / sum(sizes) if steps else -1.0
        done += steps
        first = SKIPPED <= middle <= SKIPPED + COMPARED * (1 - SKIPPED)
        if not first and middle < 1 - COMPARED * (1 - SKIPPED):
            continue
        compared[not first] += steps
        for number_of, time_ms in numbered(bucket.stacks).items():
            stack = log.stacks.get(number_of)
            call = log.calls.get(stack.call) if stack else None
            kind = call.call if call else RunCall.SCRIPT
            if stack and stack.at and (kind in TRAINING or (stack.looped and kind in AROUND)):
                samples = bucket.samples.get(str(number_of), 0)
                stacks[stack.at][not first].append((stack, time_ms, samples))
    for line, (before, after) in stacks.items() if all(compared) else ():
        if (at := place(line)) and after:
            called = summed((stack.calls or "", samples) for stack, _, samples in after)
            lines.append(StepLine(
                at=at, first_ms=sum(time_ms for _, time_ms, _ in before) / compared[0],
                last_ms=sum(time_ms for _, time_ms, _ in after) / compared[1],
                samples=sum(called.values()), calls=next(iter(called)), function=after[-1][0].function,
                graph_samples=sum(samples for stack, _, samples in after if stack.work in MAKES_GRAPH),
            ))  # fmt: skip
    return tuple(sorted(lines, key=lambda line: -line.grown_ms))
