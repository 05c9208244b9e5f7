"""How long the steps of training take, without end: one by one, then counted by how long they took."""

from __future__ import annotations

import collections
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .places import CallSite

    # Calls that train which one place has made: what each took in ns, the steps of each, and whether it was traced.
    EndedCalls = tuple[CallSite, Sequence[int], int, bool]

MOST = 100_000  # Calls whose time is told one by one
WAITING = 50_000  # Calls, or groups of them, that may wait for the thread that writes; it comes once a second
REMEMBERED, RENEWED = 101, 16  # Calls by which the usual one is known, and after how many it is computed anew
LONG = 1.5  # Times the usual call from which one is told with its number: cause and time belong together
# What such a call takes at least beyond the usual one: other programs delay every short step by as much.
LEAST_NS = 2_000_000

MOST_LONG = 2000

BIN = math.log(1.02)


class StepTime:
    """One call that trains, of k steps; times in ns."""

    __slots__ = ("apart", "began", "first", "inside", "k", "place", "took", "traced", "traces")

    def __init__(self, place: CallSite, began: int, k: int, apart: int, *, first: bool, traced: bool) -> None:
        self.place, self.began, self.k, self.apart = place, began, k, apart
        self.first, self.traced = first, traced
        self.inside = self.took = 0
        self.traces = False  # it traces a function: what it takes is no time of a step


class TimedLoop:
    """The calls that train which one place makes."""

    __slots__ = ("calls", "count", "last", "usual")

    def __init__(self) -> None:
        self.calls = self.count = 0  # the latter of steps
        self.last: collections.deque[int] = collections.deque(maxlen=REMEMBERED)
        self.usual = 0  # ns of a call, 0 is unknown

    def before_renewal(self) -> int:
        """Return how many calls come until the usual one is computed anew."""
        return 1 if len(self.last) < RENEWED else RENEWED - self.calls % RENEWED

    def add(self, took: Sequence[int], k: int) -> None:
        """Calls of k steps each took so long; they are as many as `before_renewal` says, or fewer."""
        renews = len(took) == self.before_renewal()
        self.calls += len(took)
        self.count += k * len(took)
        self.last.extend(took)
        if renews:
            self.usual = sorted(self.last)[len(self.last) // 2]

    def is_long(self, took: int) -> bool:
        """Say whether a call of so many ns is long."""
        usual = self.usual
        return usual > 0 and took > max(LONG * usual, usual + LEAST_NS)


class RunStepTimes:
    """The calls that train, in order."""

    def __init__(self) -> None:
        self.any = False
        self.loops: dict[CallSite, TimedLoop] = {}
        self.passes: dict[CallSite, int] = {}  # over the data, begun so far
        self.told_passes: dict[CallSite, int] = {}
        self.under_way: dict[CallSite, StepTime] = {}  # begun, and not followed by another one yet
        self.now: StepTime | None = None  # the one that began last
        # Time so far that is no part of steps, such as evaluations and checkpoints within them:
        self.apart = 0
        self.ended: collections.deque[EndedCalls] = collections.deque(maxlen=WAITING)
        self.told = self.taken = 0  # long calls that are told, and calls that were taken
        self.long: collections.deque[dict[str, object]] = collections.deque()

    def begins(self, place: CallSite, now: int, k: int, *, first: bool, traced: bool) -> None:
        """A call begins, with which the one before at this place is over, unless the loop was left meanwhile."""
        before = self.under_way.get(place)
        if before is not None:
            if not first:
                before.took = max(before.inside, now - before.began - self.apart + before.apart)
            self._over(before)
        self.any = True
        if first:
            self.passes[place] = self.passes.get(place, 0) + 1
        step = StepTime(place, now, k, self.apart, first=first, traced=traced)
        self.under_way[place] = self.now = step

    def repeat(self, place: CallSite, began: Sequence[int], ended: Sequence[int], k: int) -> None:
        """Calls at a place of earlier ones are over: nothing has come between."""
        apart, before = self.apart, self.under_way.get(place)
        if before is not None:
            before.took = max(before.inside, began[0] - before.began - apart + before.apart)
            self._over(before)
        if len(began) > 1:
            took = list(map(int.__sub__, began[1:], began))
            self._ended((place, took, k, False), began, first=False)
        step = StepTime(place, began[-1], k, apart, first=False, traced=False)
        step.inside = step.took = max(1, ended[-1] - began[-1])
        self.under_way[place] = self.now = step

    def ends(self, now: int) -> None:
        """The call has returned."""
        step = self.now
        if step is not None:
            step.inside = step.took = max(1, now - step.began - self.apart + step.apart)

    def traces(self) -> None:
        """The call under way traces a function."""
        step = self.now
        if step is not None and not step.inside:
            step.traces = True

    def passes_over(self) -> None:
        """The loop was left: what comes now is no part of a step."""
        steps, self.under_way, self.now = self.under_way, {}, None
        for step in steps.values():
            self._over(step)

    def retract(self) -> None:
        """The call that began last was no step: the data had ended."""
        step, self.now = self.now, None
        if step is not None:
            self.under_way.pop(step.place, None)

    def _over(self, step: StepTime) -> None:
        if not step.took:
            return
        if step.traces:
            self._loop(step.place).count += step.k
            return
        self._ended((step.place, (step.took,), step.k, step.traced), (step.began,), first=step.first)

    def _loop(self, place: CallSite) -> TimedLoop:
        loop = self.loops.get(place)
        if loop is None:
            loop = self.loops[place] = TimedLoop()
        return loop

    def _ended(self, calls: EndedCalls, began: Sequence[int], *, first: bool) -> None:
        place, took, k, _ = calls
        loop, at = self._loop(place), 0
        while at < len(took):
            part = took[at : at + loop.before_renewal()]
            if loop.is_long(max(part)):
                self._tell(part, began[at:], k, loop, first=first)
            loop.add(part, k)
            at += len(part)
        self.ended.append(calls)

    def _tell(self, calls: Sequence[int], began: Sequence[int], k: int, loop: TimedLoop, *, first: bool) -> None:
        for number, took in enumerate(calls):
            if not loop.is_long(took) or self.told >= MOST_LONG:
                continue
            self.told += 1
            self.long.append(
                {
                    "kind": "long",
                    "number": loop.count + number * k,
                    "start": began[number],
                    "ms": round(took / 1e6, 3),
                    "usual_ms": round(loop.usual / 1e6, 3),
                    "first": first,
                }
            )

    def is_long(self, now: int) -> bool:
        """Say whether the step under way takes long by now; from another thread."""
        step = self.now
        loop = self.loops.get(step.place) if step is not None else None
        if step is None or loop is None:
            return False
        return loop.is_long(now - step.began - self.apart + step.apart)

    def take(self, each_left: int, told: dict[CallSite, Ended] | None = None) -> tuple[dict[CallSite, Ended], int]:
        """Return what ended since the last time, on top of this, and how many more calls may be told one by one."""
        told = {} if told is None else told
        by_place: dict[CallSite, list[EndedCalls]] = {}
        while self.ended:
            calls = self.ended.popleft()
            by_place.setdefault(calls[0], []).append(calls)
        for place, all_calls in by_place.items():
            ended, number = told.setdefault(place, Ended()), sum(len(took) for _, took, _, _ in all_calls)
            alone = number <= each_left
            each_left -= number if alone else 0
            self.taken += number
            ended.passes += self.passes.get(place, 0) - self.told_passes.get(place, 0)
            self.told_passes[place] = self.passes.get(place, 0)
            for calls in all_calls:
                ended.add(calls, alone=alone)
        return told, each_left


class Ended:
    """Calls of one place that ended in a bucket."""

    __slots__ = ("bins", "calls", "each", "passes", "steps", "took", "traced")

    def __init__(self) -> None:
        self.steps = self.calls = self.took = self.passes = 0
        self.traced = False
        self.each: list[float] = []  # ms
        self.bins: dict[int, int] = {}

    def add(self, calls: EndedCalls, *, alone: bool) -> None:
        """Tell more of them each with its own time, or count all with those that took about as long."""
        _, times, k, traced = calls
        self.steps, self.calls = self.steps + k * len(times), self.calls + len(times)
        self.took += sum(times)
        self.traced = self.traced or traced
        own_ms = [took / 1e6 for took in times]
        if alone and not self.bins:
            self.each += [round(ms, 3) for ms in own_ms]
            return
        for ms in (*self.each, *own_ms):
            number = int(math.log(max(ms * 1e3, 1.0)) / BIN)
            self.bins[number] = self.bins.get(number, 0) + 1
        self.each = []

    def describe(self, place: CallSite) -> dict[str, object]:
        """Return what the file says of them."""
        told: dict[str, object] = {
            "source": place.name,
            "at": place.at,
            "steps": self.steps,
            "calls": self.calls,
            "ms": round(self.took / 1e6, 3),
            "traced": self.traced,
            "passes": self.passes,
        }
        if self.bins:
            return {**told, "bins": {str(number): calls for number, calls in self.bins.items()}}
        return {**told, "each": list(self.each)}
