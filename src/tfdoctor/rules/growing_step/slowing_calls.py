"""Calls that a loop makes again and again and that take longer and longer: of functions, sessions and models."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.phases.trend_line import TrendLine, mean_growth
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.run_log import CallPlace, Line, RunLog
from tfdoctor.terms.kinds import RunCall
from tfdoctor.terms.verdict import Location

TOGETHER = (RunCall.FUNCTION,)
"""Calls whose time the log adds up: a point of the trend is the mean of those in a bucket."""

ALONE = (RunCall.PREDICT, RunCall.EVALUATE)
"""Calls that the log tells one by one."""


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
        log, place, found = recording.run, Places.of(recording), list[SlowingCall]()
        if log is None:
            raise Unavailable("the run was not recorded as a whole")
        for (name, line), calls in _calls(log).items():
            at, trend = place(line), TrendLine.through(*np.array(calls.points, np.float64).T)
            if at and trend and trend.low > 0 and trend.steady:
                first_ms, last_ms = trend.first, trend.last
                found.append(SlowingCall(name=name, at=at, calls=calls.number, first_ms=first_ms, last_ms=last_ms))
        return cls(tuple(sorted(found, key=lambda call: -call.beyond_ms)))


Made = tuple[str, Line]
"""What is called, and the line that calls it."""


@dataclass(slots=True)
class _Calls:
    """The calls of a line: their number, and when one took how many ms."""

    number: int
    points: list[tuple[float, float]]

    def add(self, number: int, at_s: float, ms: float) -> None:
        """Add calls with the time of one."""
        self.number += number
        self.points.append((at_s, ms))


def _calls(log: RunLog) -> Mapping[Made, _Calls]:
    """Return the calls that the log adds up, with their mean in each bucket, and those that it tells one by one."""
    found: dict[Made, _Calls] = defaultdict(lambda: _Calls(0, []))
    together = {str(call.id): made for call in log.calls.values() if (made := _made(call, TOGETHER))}
    for bucket in log.buckets:
        for number in bucket.entered.keys() & together.keys():
            calls, ms = bucket.entered[number], bucket.calls.get(number, 0.0)
            if calls and ms:
                found[together[number]].add(calls, (bucket.start + bucket.end) / 2, ms / calls)
    alone = {call.id: made for call in log.calls.values() if (made := _made(call, ALONE))}
    for span in log.spans:
        if span.call in alone and not span.open:
            found[alone[span.call]].add(1, span.start, 1000 * (span.end - span.start))
    return found


def _made(call: CallPlace, kinds: tuple[RunCall, ...]) -> Made | None:
    return (call.name, call.at) if call.call in kinds and call.at else None
