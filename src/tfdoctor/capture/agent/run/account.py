"""run.jsonl of a process: what happened in one bucket of time after another, whose width grows with the run.

It is appended to, and run-now.json replaced, so that what a killed run did is there.
"""

from __future__ import annotations

import math

from ..process.journal import replace
from ..process.kept import io, json, os
from .counters import Counters
from .stacks import Stacks
from .step_times import MOST, Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
        for waiting in (clock.spans, clock.traces, clock.steps.long, clock.kept.told):
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
        _, self.each_left = self.clock.steps.take(self.each_left, self.steps)
        self.calls = self.clock.steps.taken
        stacks = self.stacks
        line: dict[str, object] = {
            "kind": "bucket",
            "start": self.seconds(self.start),
            "end": self.seconds(now),
            "calls": {number: round(ns / 1e6, 3) for number, ns in _more(totals, self.totals)},
            "entered": dict(_more(entered, self.entered)),
            "stacks": {str(number): round(ns / 1e6, 2) for number, ns in stacks.ns.items()},
            "samples": {str(number): count for number, count in stacks.samples.items()},
            "given": {str(number): counts for number, counts in stacks.again.items()},
            "single": {str(number): counts for number, counts in stacks.single.items()},
            "steps": [ended.describe(place) for place, ended in self.steps.items()],
            "counters": self.counters.read(self.start / 1e9),
        }
        if closes:
            self.totals, self.entered, self.start = totals, entered, now
            self.steps, stacks.ns, stacks.samples, stacks.again, stacks.single = {}, {}, {}, {}, {}
        return line

    def open_spans(self, now: int) -> Told:
        """Return the calls that are told alone and are not over yet."""
        return [
            {
                "kind": "span",
                "call": place.number,
                "start": self.seconds(began),
                "end": self.seconds(now),
                "open": True,
            }
            for place, began in list(self.clock.open)
        ]


def _more(now: Mapping[CallSite, int], before: Mapping[CallSite, int]) -> Iterator[tuple[str, int]]:
    """Yield the numbers of calls with what each has more than before."""
    for place, value in now.items():
        if value > before.get(place, 0):
            yield str(place.number), value - before.get(place, 0)


MOST_BYTES = 60_000_000  # The file of a week stays below: afterwards only buckets and the end are written
ALWAYS = ("bucket", "end", "dropped", "process")
MOST_WAITING = 2_000_000  # Bytes that wait for a full disk to have room again; what comes then is lost


class LogFile:
    """The two files in the folder of a process."""

    def __init__(self, folder: str, most: int = MOST_BYTES) -> None:
        self.most = most
        self.path = os.path.join(folder, "run.jsonl")
        self.now = os.path.join(folder, "run-now.json")
        self.size = os.path.getsize(self.path) if os.path.exists(self.path) else 0
        self.waiting = b""  # what could not be written

    def append(self, lines: Iterable[Mapping[str, object]]) -> None:
        """Add lines for good.

        Raises:
            OSError: the file cannot be written; the lines wait for the next call.
        """
        full = self.size >= self.most
        texts = [_text(line) for line in lines if not full or line["kind"] in ALWAYS]
        data = self.waiting + "".join(texts).encode()
        if not data:
            return
        self.waiting = data if len(data) <= MOST_WAITING else self.waiting
        with io.open(self.path, "ab", buffering=0) as file:
            try:
                written = 0
                while written < len(data):
                    written += file.write(data[written:])
            except OSError:
                file.truncate(self.size)
                raise
        self.size += len(data)
        self.waiting = b""

    def replace(self, lines: Iterable[Mapping[str, object]]) -> None:
        """Write what is not over yet, in place of what was not over before.

        Raises:
            OSError: the file cannot be written.
        """
        replace(self.now, "".join(map(_text, lines)).encode())

    def settle(self) -> None:
        """All is over: nothing is left to be replaced."""
        if os.path.exists(self.now):
            os.unlink(self.now)


def _text(line: Mapping[str, object]) -> str:
    return json.dumps(line, separators=(",", ":")) + "\n"
