"""The user's lines in the training steps: what each takes of a step at the beginning of the run and at its end."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.run_phases import ENOUGH
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import Bucket, Line, RunLog
from tfdoctor.terms.kinds import RunCall, RunWork
from tfdoctor.terms.verdict import Location

SKIPPED = 0.1
"""Share of the steps that is left out at the beginning: they warm up."""

PART = 1 / 3
"""Share of the other steps that is compared, at their beginning and at their end."""

TRAINING = (RunCall.STEP, RunCall.BETWEEN)
"""Calls that train."""

AROUND = (RunCall.SCRIPT, RunCall.FUNCTION)
"""Calls in whose loops steps may be."""

MAKES_GRAPH = (RunWork.TRACING, RunWork.BUILDING)
"""Work that adds operations to a graph."""


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
        if recording.run is None:
            raise Unavailable("the run was not recorded as a whole")
        first, last = _ends(recording.run.buckets)
        if not first or not last:
            raise Unavailable("the run has too few training steps to compare the first with the last")
        before, after = _Steps.of(first, recording.run), _Steps.of(last, recording.run)
        place, lines = Places.of(recording), []
        for line, ms in after.ms.items():
            seen = {calls: number for (of, calls), number in after.samples.items() if of == line}
            if at := place(line):
                lines.append(
                    StepLine(
                        at=at,
                        first_ms=before.ms.get(line, 0.0) / before.steps,
                        last_ms=ms / after.steps,
                        samples=sum(seen.values()),
                        calls=max(seen, key=lambda calls: seen[calls], default=""),
                        graph_samples=after.graph[line],
                        function=after.functions[line],
                    )
                )
        return cls(tuple(sorted(lines, key=lambda line: -line.grown_ms)))


@dataclass(slots=True)
class _Steps:
    """Steps in some stretches of time, with the time and the samples of their lines, by what these call."""

    steps: int = 0
    ms: dict[Line, float] = field(default_factory=dict)
    samples: Counter[tuple[Line, str]] = field(default_factory=Counter)
    graph: Counter[Line] = field(default_factory=Counter)
    functions: dict[Line, str] = field(default_factory=dict)

    @classmethod
    def of(cls, buckets: Sequence[Bucket], run: RunLog) -> Self:
        part = cls(sum(steps.steps for bucket in buckets for steps in bucket.steps))
        for bucket in buckets:
            for number, taken_ms in bucket.stacks.items():
                stack = run.stacks.get(int(number)) if number.isdecimal() else None
                call = run.calls.get(stack.call) if stack else None
                kind = call.call if call else RunCall.SCRIPT
                if stack and stack.at and (kind in TRAINING or (stack.looped and kind in AROUND)):
                    seen = bucket.samples.get(number, 0)
                    part.ms[stack.at] = part.ms.get(stack.at, 0.0) + taken_ms
                    part.samples[stack.at, stack.calls or ""] += seen
                    part.functions[stack.at] = stack.function
                    part.graph[stack.at] += seen if stack.work in MAKES_GRAPH else 0
        return part


def _ends(buckets: Sequence[Bucket]) -> tuple[list[Bucket], list[Bucket]]:
    """Return the buckets at the beginning and at the end of the steps, which do not overlap."""
    numbers = [sum(steps.steps for steps in bucket.steps) for bucket in buckets]
    total, done = sum(numbers), 0
    first: list[Bucket] = []
    last: list[Bucket] = []
    for bucket, steps in zip(buckets, numbers, strict=True):
        middle = (done + steps / 2) / total if steps else -1.0
        done += steps
        if SKIPPED <= middle <= SKIPPED + PART * (1 - SKIPPED):
            first.append(bucket)
        elif middle >= 1 - PART * (1 - SKIPPED):
            last.append(bucket)
    return first, last
