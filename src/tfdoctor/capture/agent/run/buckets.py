"""What the file is told: what happened in one bucket of time after another, whose width grows with the run."""

from __future__ import annotations

import math

from .counters import Counters
from .stacks import Stacks
from .step_times import MOST, Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .clock import CallClock
    from .places import CallSite

    Told = list[dict[str, object]]

SHORTEST_S = 0.5

GROWTH = 400  # A bucket is at most so small a part of the run so far: a week has some 3,000 of them
# Bytes of the file after each of which buckets become twice as wide: a program of many calls fills 64 MB never.
DOUBLES_EACH = 8_000_000


class Buckets:
    """Adds up what the clock, the samples and the counters say since the file was last told."""

    def __init__(self, clock: CallClock, began_ns: int, started_ns: int) -> None:
        self.clock, self.started = clock, started_ns
        self.stacks, self.counters = Stacks(clock), Counters(clock)
        self.start, self.each_left = began_ns, MOST
        self.totals: dict[CallSite, int] = {}
        self.entered: dict[CallSite, int] = {}
        self.steps: dict[CallSite, Ended] = {}
        self.calls = 0  # that train, of the whole run so far
        self.ms: dict[str, float] = {}
        self.samples: dict[str, int] = {}

    def seconds(self, ns: int) -> float:
        """Return a moment in s since the process was started."""
        return round((ns - self.started) / 1e9, 6)

    def is_full(self, now: int, size: int = 0) -> bool:
        """Say whether a bucket is wide enough by now, where the file has so many bytes."""
        width = max(SHORTEST_S, self.seconds(now) / GROWTH) * math.pow(2.0, size / DOUBLES_EACH)
        return now - self.start >= 0.9 * width * 1e9

    def told(self) -> Told:
        """Return the new calls, stacks, spans and traces: what the file gets at once."""
        clock = self.clock
        told: Told = []
        while clock.places.new:
            told.append(clock.places.new.popleft().describe())
        stacks, self.stacks.new = self.stacks.new, []
        told += stacks
        for waiting in (clock.spans, clock.traces, clock.steps.long, clock.kept.new):
            while waiting:
                told.append(self._in_seconds(waiting.popleft()))
        return told

    def _in_seconds(self, line: dict[str, object]) -> dict[str, object]:
        for name in ("start", "end"):
            value = line.get(name)
            if isinstance(value, int):
                line[name] = self.seconds(value)
        return line

    def bucket(self, *, closes: bool) -> dict[str, object]:
        """Return the present bucket; `closes` says that another one begins."""
        totals, now = self.clock.read()
        entered = dict(self.clock.entered)
        self._add()
        line: dict[str, object] = {
            "kind": "bucket",
            "start": self.seconds(self.start),
            "end": self.seconds(now),
            "calls": {
                str(place.number): round((ns - self.totals.get(place, 0)) / 1e6, 3)
                for place, ns in totals.items()
                if ns > self.totals.get(place, 0)
            },
            "entered": {
                str(place.number): number - self.entered.get(place, 0)
                for place, number in entered.items()
                if number > self.entered.get(place, 0)
            },
            "stacks": self.ms,
            "samples": self.samples,
            "steps": [ended.describe(place) for place, ended in self.steps.items()],
            "counters": self.counters.read(self.start / 1e9),
        }
        if closes:
            self.totals, self.entered, self.start = totals, entered, now
            self.steps, self.ms, self.samples = {}, {}, {}
        return line

    def _add(self) -> None:
        """Add what came since the last time to the present bucket."""
        ms, samples = self.stacks.take()
        for number, time in ms.items():
            self.ms[number] = round(self.ms.get(number, 0.0) + time, 2)
        for number, count in samples.items():
            self.samples[number] = self.samples.get(number, 0) + count
        steps, self.each_left = self.clock.steps.take(self.each_left)
        for place, ended in steps.items():
            self.calls += ended.calls
            known = self.steps.setdefault(place, ended)
            if known is not ended:
                known.join(ended)

    def open_spans(self, now: int) -> Told:
        """Return the calls that are told alone and are not over yet."""
        return [
            {
                "kind": "span",
                "call": place.number,
                "start": self.seconds(began),
                "end": self.seconds(now),
                "open": True,
                **told,
            }
            for place, began, told in list(self.clock.open)
        ]
