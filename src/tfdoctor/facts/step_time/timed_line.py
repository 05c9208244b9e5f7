"""A line of the user's with its time, by stack samples."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Self, TypeVar

from tfdoctor.facts.run.program import Places
from tfdoctor.facts.step_time.line_work import LineWork, SlowCall, slow_call, work_of
from tfdoctor.recording.program import SeenPlace
from tfdoctor.terms.verdict import Location, Stage

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class TimedLine:
    """A line in stack samples; ``ms`` per training step, of them ``parts_ms`` where it works in several parts.

    ``calls`` has the functions that the line calls with the number of samples in them, most first; "" is
    the line itself, or a function written in C that the line does not call by a module's name.
    """

    at: Location | None
    seen: int
    ms: float = 0.0
    callback: str = ""  # the method of a Keras callback that it is in: "Weights.on_train_batch_end"
    calls: Mapping[str, int] = field(default_factory=dict)
    callers: Mapping[Location, int] = field(default_factory=dict)
    work: LineWork = LineWork.PYTHON
    makes: bool | None = None  # it makes the arguments of the training function; None is unknown
    kind: SlowCall | None = None  # of its calls, where it is judged together with other lines
    steps: frozenset[int] = frozenset()  # positions of the traced steps that show it
    parts_ms: Mapping[Stage, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        seen: Mapping[SeenPlace, int],
        locate: Places,
        each_ms: float = 0.0,
        *,
        named: Callable[[SeenPlace], str] = attrgetter("calls"),
        work: LineWork | None = None,
    ) -> Self:
        """Join the samples of a line's places, each of so many ms."""
        (first, *_), number = seen, sum(seen.values())
        callers = summed((locate(place.caller), count) for place, count in seen.items())
        return cls(
            locate(first.at),
            number,
            number * each_ms,
            first.callback,
            summed((named(place), count) for place, count in seen.items()),
            {caller: count for caller, count in callers.items() if caller},
            work or next(iter(summed((work_of(place), count) for place, count in seen.items()))),
        )

    @classmethod
    def slow(
        cls, at: Location, kind: SlowCall, seen: int, steps: Collection[int], parts: Mapping[Stage, float]
    ) -> Self:
        """Return a line that makes costly calls, by the parts of the step that they fall into."""
        return cls(at, seen, sum(parts.values()), kind=kind, steps=frozenset(steps), parts_ms=parts)

    @property
    def main_call(self) -> str:
        """The function that the line is in most often; "" where it is the line itself."""
        return next(iter(self.calls), "")

    @property
    def call(self) -> SlowCall | None:
        """The kind of its calls, where they cost much per call."""
        return self.kind or slow_call(self.main_call)

    @property
    def caller(self) -> Location | None:
        """The user's line that called the line's function most often; None where none was seen."""
        return next(iter(self.callers), None)


def summed(counts: Iterable[tuple[K, int]]) -> dict[K, int]:
    """Add numbers by key, most first."""
    total: Counter[K] = Counter()
    for key, number in counts:
        total[key] += number
    return dict(total.most_common())


def by_caller(lines: Iterable[TimedLine]) -> tuple[TimedLine, ...]:
    """Merge the lines of functions of the user's by the line that calls the function, most first."""
    groups: dict[Location, list[TimedLine]] = defaultdict(list)
    for line in lines:
        if line.caller and not line.callback:
            groups[line.caller].append(line)
    merged = []
    for caller, group in groups.items():
        calls = summed((name, number) for line in group for name, number in line.calls.items())
        work = next(iter(summed((line.work, line.seen) for line in group)))
        seen, time_ms = sum(line.seen for line in group), sum(line.ms for line in group)
        merged.append(TimedLine(caller, seen, time_ms, calls=calls, work=work))
    return tuple(sorted(merged, key=lambda line: -line.seen))
