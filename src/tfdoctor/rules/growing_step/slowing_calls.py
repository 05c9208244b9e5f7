"""Calls that a loop makes again and again and that take longer and longer: of functions, sessions and models."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.phases.run_course import whole_run
from tfdoctor.facts.phases.run_growth import Trend, mean_growth
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import Line, RunLog
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Location

# Calls whose time the log adds up: a point of the trend is the mean of those in a bucket.
TOGETHER = (RunCall.FUNCTION,)
ALONE = (RunCall.PREDICT, RunCall.EVALUATE)  # Calls that the log tells one by one


NOT_MADE = RunCall.SCRIPT, ("", ("", 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowingCall:
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


@dataclass(frozen=True, slots=True)
class SlowingCalls:
    """The lines whose calls get slower, those that lose most first."""

    calls: tuple[SlowingCall, ...]

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Draw a trend through the calls of each line.

        Raises:
            Unavailable: the run was not recorded as a whole.
        """
        place, found = Places.of(recording), []
        for (name, line), (number, points) in _made(whole_run(recording)).items():
            trend, at = Trend.through(*np.array(points, np.float64).T), place(line)
            if at and trend and trend.low > 0 and trend.steady:
                first_ms, last_ms = trend.first, trend.last
                found.append(SlowingCall(name=name, at=at, calls=number, first_ms=first_ms, last_ms=last_ms))
        return cls(tuple(sorted(found, key=lambda call: -call.beyond_ms)))


def _made(log: RunLog) -> Mapping[tuple[str, Line], tuple[int, Sequence[tuple[float, float]]]]:
    """Return how often each line made which calls, and when one took how many ms."""
    made = {one.id: (one.call, (one.name, one.at)) for one in log.calls.values() if one.at}
    timed: dict[tuple[str, Line], list[tuple[int, float, float]]] = defaultdict(list)
    for bucket in log.buckets:
        middle = (bucket.start + bucket.end) / 2
        for call, number in bucket.entered.items():
            kind, line = made.get(int(call) if call.isdecimal() else -1, NOT_MADE)
            ms = bucket.calls.get(call, 0.0)
            if kind in TOGETHER and number and ms:
                timed[line].append((number, middle, ms / number))
    for span in log.spans:
        kind, line = made.get(span.call, NOT_MADE)
        if kind in ALONE and not span.open:
            timed[line].append((1, span.start, 1000 * (span.end - span.start)))
    return {
        line: (sum(number for number, _, _ in times), [(at, ms) for _, at, ms in times])
        for line, times in timed.items()
    }
