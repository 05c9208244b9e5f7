"""The user's lines in the training steps: what each takes of a step at the beginning of the run and at its end."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_course import whole_run
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import Bucket, Line, RunLog, SeenStack
from tfdoctor.terms.kinds import RunCall, RunWork
from tfdoctor.terms.verdict import Location

SKIPPED = 0.1  # Share of the steps that is left out at the beginning: they warm up
PART = 1 / 3  # Share of the other steps that is compared, at their beginning and at their end
TRAINING = (RunCall.STEP, RunCall.BETWEEN)  # Calls that train
AROUND = (RunCall.SCRIPT, RunCall.FUNCTION)  # Calls in whose loops steps may be
MAKES_GRAPH = (RunWork.TRACING, RunWork.BUILDING)  # Work that adds operations to a graph


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
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

    @property
    def sure(self) -> bool:
        """Whether there are enough samples to name it."""
        return self.samples >= ENOUGH


@dataclass(frozen=True, slots=True)
class StepLines:
    """The lines with time in the steps or between them, those that grow most first."""

    lines: tuple[StepLine, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Add up the stack samples of the steps, by line.

        Raises:
            Unavailable: the run was not recorded as a whole, or has too few steps.
        """
        log, place, lines = whole_run(recording), Places.of(recording), []
        first, last = _ends(log.buckets)
        if not first or not last:
            raise Unavailable("the run has too few training steps to compare the first with the last")
        before: dict[Line, float] = defaultdict(float)
        for line, _, ms, _ in _stacks(first, log):
            before[line] += ms
        after = defaultdict[Line, list[tuple[SeenStack, float, int]]](list)
        for line, stack, ms, samples in _stacks(last, log):
            after[line].append((stack, ms, samples))
        for line, seen in after.items():
            called: Counter[str] = Counter()
            for stack, _, samples in seen:
                called[stack.calls or ""] += samples
            if at := place(line):
                lines.append(
                    StepLine(
                        at=at,
                        first_ms=before[line] / _steps(first),
                        last_ms=sum(ms for _, ms, _ in seen) / _steps(last),
                        samples=called.total(),
                        calls=max(called, key=lambda calls: called[calls]),
                        graph_samples=sum(samples for stack, _, samples in seen if stack.work in MAKES_GRAPH),
                        function=seen[-1][0].function,
                    )
                )
        return cls(tuple(sorted(lines, key=lambda line: -line.grown_ms)))


def _steps(buckets: Iterable[Bucket]) -> int:
    return sum(steps.steps for bucket in buckets for steps in bucket.steps)


def _stacks(buckets: Iterable[Bucket], log: RunLog) -> Iterator[tuple[Line, SeenStack, float, int]]:
    """Yield the stacks in training steps or between them, with their line, ms and samples."""
    for bucket in buckets:
        for number, ms in bucket.stacks.items():
            stack = log.stacks.get(int(number)) if number.isdecimal() else None
            call = log.calls.get(stack.call) if stack else None
            kind = call.call if call else RunCall.SCRIPT
            if stack and stack.at and (kind in TRAINING or (stack.looped and kind in AROUND)):
                yield stack.at, stack, ms, bucket.samples.get(number, 0)


def _ends(buckets: Sequence[Bucket]) -> tuple[list[Bucket], list[Bucket]]:
    """Return the buckets at the beginning and at the end of the steps, which do not overlap."""
    total, done = _steps(buckets), 0
    first: list[Bucket] = []
    last: list[Bucket] = []
    for bucket in buckets:
        steps = _steps([bucket])
        middle = (done + steps / 2) / total if steps else -1.0
        done += steps
        if SKIPPED <= middle <= SKIPPED + PART * (1 - SKIPPED):
            first.append(bucket)
        elif middle >= 1 - PART * (1 - SKIPPED):
            last.append(bucket)
    return first, last
