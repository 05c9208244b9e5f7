"""Steps that repeat: a call that trains as an earlier one did is noted by its moments, and accounted for later.

All that the clock does for a step takes 25 us between real steps, which empty the processor's caches: more than 1 %
of a step of 2 ms. So a call of the same function at the same instruction, in the same call around it, is noted by
three moments alone. What else happens, such as another call or a trace, has the clock account first for what waits.

Where a call was like the one before many times in a row, the next ones are noted briefly: they are taken to run
their graph as long after their begin as the one that was noted in full. No listener hears of them, nor of what they
run, unless that is another graph.
"""

from __future__ import annotations

import weakref

from ..process.kept import threads, time
from ..process.stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType
    from typing import Protocol

    from .places import CallSite
    from .step_times import RunStepTimes

    class RepeatedClock(Protocol):
        """The state of `CallClock` that such steps change, times in ns."""

        began: int
        thread: int | None
        now: tuple[CallSite, int] | None
        current: CallSite
        totals: dict[CallSite, int]
        entered: dict[CallSite, int]
        steps: RunStepTimes
        inside: int
        stepped: int
        running: bool
        first: bool
        profiled: bool
        trained: CallSite | None
        caller: FrameType | None

        repeats: RepeatedSteps

        def switch(self, place: CallSite, now: int | None = None) -> int:
            """Another call is under way from a moment on; return the time."""

        def abandon(self) -> None:
            """No call is under way."""

    # What was under way before a call, when it began, and the call itself:
    Enter = tuple[CallSite, int, CallSite]

    # A call under way: when it began, and when the function that trains did, if it has.
    Opened = tuple["Repeated", int, int | None]
    # Some in a row that are over: how long after its begin each one trains, and when each began and ended in turn.
    Noted = tuple["Repeated", int, list[int]]

# How long steps may wait to be accounted for: what a killed run did up to its last second is there.
WAIT_NS = 100_000_000
MOST_WAITING = 64  # How many that are noted in full may wait: together each takes a tenth of what it takes alone
MOST = 200  # Calls that are known; where there are more, they are learned anew
SURE = 16  # Calls in a row that must run the same graph before any is noted briefly
# Calls that are noted briefly after one in full: every 13th is, which is no usual period of what a loop does.
BRIEF = 12
# How often another thread tries to read the times, every 0.1 ms: a switch that takes longer was interrupted.
TRIES = 100
DEEPEST = 8  # Frames from a call of TensorFlow's to the user's line, as far as they are compared


class Repeated:
    """A call that trains: how it is made, and the places of its parts."""

    __slots__ = (
        *("step", "called", "between", "before", "code", "instruction", "way"),  # of each call
        *("function", "concrete", "k", "sure"),
    )

    def __init__(
        self,
        function: object,
        way: tuple[tuple[CodeType, int], ...],
        step: CallSite,
        between: CallSite,
        k: int,
        called: CallSite | None,
    ) -> None:
        self.function = weakref.ref(function)
        self.code, self.instruction = way[0]  # of the frame that makes it
        self.way = way[1:]  # those above
        self.step, self.between, self.k = step, between, k
        # The tf.function that trains; None of a call that does so from its begin:
        self.called = called
        self.concrete: weakref.ref[object] | None = None  # what it runs then
        self.before = 0  # ns from its begin until it trains, the last time
        self.sure = 0  # how often in a row it was the same

    def is_like(self, other: Repeated) -> bool:
        """Say whether another one is made in the same way, and runs the same."""
        made = self.code is other.code and self.way == other.way
        places = (self.step, self.between, self.called) == (other.step, other.between, other.called)
        runs = self.function is other.function and self.concrete is other.concrete
        return made and places and runs and self.k == other.k


class RepeatedSteps:
    """The steps that wait to be accounted for; only the thread that the clock follows adds to them."""

    __slots__ = (
        *("brief", "began", "inner", "within", "left", "last", "moments", "due", "clock"),  # of each call
        *("opened", "waiting", "around", "entered", "known", "ran"),
    )

    def __init__(self, clock: RepeatedClock) -> None:
        self.clock = clock
        self.begin()

    def begin(self) -> None:
        """Nothing was seen yet."""
        self.known: dict[tuple[int, int], Repeated] = {}
        self.waiting: list[Noted] = []
        self.opened: Opened | None = None  # the call under way, noted in full
        self.brief: object = None  # the function whose next calls are noted briefly
        self.inner: object = None  # the graph that they run; None: any, for they train from their begin
        self.within = False  # a tf.function is called in the one under way of Keras
        self.left = 0  # how many
        self.last: Repeated | None = None  # the one before them
        self.moments: list[int] = []  # of that one and of them: the last ones in what waits
        self.began = 0  # the one under way that is noted briefly
        # What is around the one that the clock was told of last:
        self.around: CallSite | None = None
        self.entered: Enter | None = None  # the same, once it is known in full
        self.ran: weakref.ref[object] | None = None  # what the tf.function under way runs
        self.due = 0  # when to account for what waits

    def begins(self, frame: FrameType) -> bool:
        """A call begins of the function whose calls are noted briefly; say whether it repeats the last one."""
        last, clock = self.last, self.clock
        if (
            last is None
            or frame.f_lasti != last.instruction
            or frame.f_code is not last.code
            or clock.thread != threads.get_ident()
            or (last.way and not _leads(frame.f_back, last.way))
        ):
            return False
        self.began = time.perf_counter_ns()
        clock.current, clock.running, clock.caller = last.step, True, frame
        return True

    def again(self, function: object, frame: FrameType) -> bool:
        """A call of a tf.function or of Keras begins that the frame makes; say whether it repeats one."""
        if self.began or self.opened is not None:  # an exception came while that was noted
            self.clock.abandon()
        clock, now = self.clock, time.perf_counter_ns()
        if self.waiting and now >= self.due:
            self._account(now)
        repeated = self.known.get((id(function), frame.f_lasti))
        if repeated is None or repeated.code is not frame.f_code:
            return False
        if clock.current is not repeated.between or clock.first or clock.profiled:
            return False
        if repeated.way and not _leads(frame.f_back, repeated.way):
            return False
        if repeated.called is None:
            self.opened = repeated, now, now
            clock.current, clock.running = repeated.step, True
        else:
            self.opened = repeated, now, None
            clock.current, clock.inside, clock.caller = repeated.called, 1, frame
        return True

    def runs_another(self) -> None:
        """The call that is noted briefly runs another graph than the one before: it is noted in full."""
        last, began, clock = self.last, self.began, self.clock
        if last is None or last.called is None:
            return
        last.sure, self.brief, self.inner = 0, None, None
        self.opened, self.began = (last, began, None), 0
        clock.current, clock.running, clock.inside = last.called, False, 1

    def under_way(self) -> Opened | None:
        """Return the call under way, as far as it is known; also from another thread."""
        began, last = self.began, self.last
        if began and last is not None:
            return last, began, began + last.before
        return self.opened

    def outer(self) -> CallSite | None:
        """Return the call around the one that repeats."""
        opened = self.under_way()
        return self.around if opened is None else opened[0].step.parent

    def trains(self, concrete: object) -> bool:
        """The call under way runs a graph that trains; say whether that is what it ran before."""
        opened = self.opened
        if opened is None:
            return False
        repeated, began, trains = opened
        if trains is not None or repeated.concrete is None or repeated.concrete() is not concrete:
            repeated.sure = 0
            return False
        now = time.perf_counter_ns()
        self.opened, repeated.before = (repeated, began, now), now - began
        clock = self.clock
        clock.current, clock.running = repeated.step, True
        return True

    def passed(self) -> bool:
        """A tf.function within the call under way is over; say whether that is noted briefly still."""
        self.within = False
        return self.began > 0

    def over(self) -> bool:
        """The call is over; say whether it was all like the one before: if not, the clock is to be told."""
        clock, began, last = self.clock, self.began, self.last
        if began and last is not None:
            now = time.perf_counter_ns()
            self.moments += (began, now)
            self.began, self.left = 0, self.left - 1
            clock.current, clock.running, clock.caller = last.between, False, None
            if not self.left or now >= self.due:
                self.brief = self.inner = None  # the next one is noted in full, and these are accounted for
            return True
        return self._over_in_full()

    def _over_in_full(self) -> bool:
        opened, clock = self.opened, self.clock
        repeated, began, trains = opened or (None, 0, None)
        if repeated is None or trains is None:
            self.settle()
            return False
        now = time.perf_counter_ns()
        self.moments = [began, now]
        self.waiting.append((repeated, trains - began, self.moments))
        self.opened = None
        clock.current, clock.running = repeated.between, False
        if repeated.called is not None:
            clock.inside, clock.caller = 0, None
        if len(self.waiting) >= MOST_WAITING or now >= self.due:
            self._account(now)
        repeated.sure += 1
        if repeated.sure >= SURE and self.waiting:  # with it wait those that are noted briefly
            self._note_briefly(repeated)
        return True

    def _note_briefly(self, repeated: Repeated) -> None:
        """Note the next calls briefly, which are like this one."""
        self.inner = None if repeated.called is None or repeated.concrete is None else repeated.concrete()
        if self.inner is not None or repeated.called is None:
            self.last, self.left, self.brief = repeated, BRIEF, repeated.function()

    def learn(
        self,
        function: object,
        frame: FrameType | None,
        outer: CallSite,
        *,
        k: int = 1,
        called: CallSite | None = None,
    ) -> None:
        """A call was accounted for that trains: the next one may be like it."""
        step = self.clock.steps.now
        if step is None or frame is None or step.place.parent is not outer:
            return
        way = _way(frame, to_user=step.place.at != outer.at)
        between = outer.between
        if way is None or between is None or (called is not None and self.ran is None):
            return
        if len(self.known) >= MOST:
            self.known.clear()
        repeated = Repeated(function, way, step.place, between, k, called)
        repeated.concrete, key = self.ran, (id(function), frame.f_lasti)
        before = self.known.get(key)
        if before is None or not repeated.is_like(before):
            self.known[key] = repeated

    def runs(self, concrete: object) -> None:
        """The tf.function under way runs a graph that trains, in full."""
        self.ran = None if concrete is None else weakref.ref(concrete)

    def last_began(self) -> tuple[CallSite, int] | None:
        """Return the step that began last, and when, while the clock does not know it; from another thread."""
        opened, waiting = self.under_way(), self.waiting
        if opened is not None and opened[2] is not None:
            return opened[0].step, opened[2]
        if not waiting:
            return None
        repeated, before, moments = waiting[-1]
        return repeated.step, moments[-2] + before

    def settle(self) -> None:
        """Account for what waits, and for the call under way as far as it has come; something else happens."""
        self.brief = self.inner = None
        if self.waiting:
            self._account(time.perf_counter_ns())
        if self.began:
            self.opened, self.began = self.under_way(), 0
            if self.within or (self.last is not None and self.last.called is not None):
                self.clock.inside = 1
        if self.opened is not None:
            self._open()

    def _account(self, now: int) -> None:
        clock, self.due, self.brief, self.inner = self.clock, now + WAIT_NS, None, None
        since, clock.now = clock.now, None  # who reads meanwhile waits
        waiting, self.waiting = self.waiting, []
        last = since[1] if since is not None else clock.began + sum(clock.totals.values())
        last = add(clock.totals, waiting, last)
        clock.now = waiting[0][0].between, last
        by_call: dict[Repeated, tuple[list[int], list[int]]] = {}
        for repeated, before, moments in waiting:
            began, ended = by_call.setdefault(repeated, ([], []))
            began += map(min, map(before.__add__, moments[::2]), moments[1::2])
            ended += moments[1::2]
        for repeated, (began, ended) in by_call.items():
            self._count(repeated, len(began))
            clock.steps.repeat(repeated.step, began, ended, repeated.k)

    def _count(self, repeated: Repeated, calls: int) -> None:
        entered, step, called = self.clock.entered, repeated.step, repeated.called
        entered[step] = entered.get(step, 0) + repeated.k * calls
        self.clock.stepped += repeated.k * calls
        if called is not None:
            entered[called] = entered.get(called, 0) + calls

    def _open(self) -> None:
        """Have the clock know the call under way as any other one."""
        opened, self.opened = self.opened, None
        if opened is None:
            return
        (repeated, began, trains), clock = opened, self.clock
        self.around = repeated.step.parent
        if repeated.called is not None:
            clock.entered[repeated.called] = clock.entered.get(repeated.called, 0) + 1
            clock.switch(repeated.called, began)
            clock.trained = None
            self.entered = repeated.between, began, repeated.called
        if trains is not None:
            clock.entered[repeated.step] = clock.entered.get(repeated.step, 0) + repeated.k
            clock.stepped += repeated.k
            trains = min(trains, time.perf_counter_ns())
            clock.switch(repeated.step, trains)
            clock.steps.begins(repeated.step, trains, repeated.k, first=False, traced=False)
            if repeated.called is not None:
                clock.trained = repeated.step.parent


def add(totals: dict[CallSite, int], noted: Iterable[Noted], last: int) -> int:
    """Add the times of calls and of what lies between them, since a moment; return when the last one ended."""
    for repeated, before, moments in noted:
        took = list(map(int.__sub__, moments[1::2], moments[::2]))
        within, between = sum(took), repeated.between
        totals[between] = totals.get(between, 0) + moments[-1] - last - within
        if repeated.called is not None:
            until = sum(min(before, ns) for ns in took)
            totals[repeated.called] = totals.get(repeated.called, 0) + until
            within -= until
        totals[repeated.step] = totals.get(repeated.step, 0) + within
        last = moments[-1]
    return last


def snapshot(clock: RepeatedClock) -> tuple[dict[CallSite, int], int]:
    """Return the time of each call so far and the present time, as another thread sees the clock.

    No ns is lost or counted twice.
    """
    repeats = clock.repeats
    for _ in range(TRIES):
        before, opened, waiting, moments = clock.now, repeats.under_way(), repeats.waiting, repeats.moments
        if before is None:
            time.sleep(0.0001)
            continue
        calls = len(waiting), len(moments)
        noted = [(repeated, until, list(of_each)) for repeated, until, of_each in waiting]
        totals, now = dict(clock.totals), time.perf_counter_ns()
        same = clock.now is before and repeats.under_way() == opened and repeats.waiting is waiting
        if same and (len(waiting), len(moments)) == calls:
            place, since = before[0], add(totals, noted, before[1])
            if noted and opened is not None and noted[-1][2][-2] == opened[1]:
                opened = None  # it is over by now, and among the noted ones
            _until(totals, opened, place, since, now)
            return totals, now
    totals = dict(clock.totals)
    began, now = clock.began + sum(totals.values()), time.perf_counter_ns()
    totals[clock.current] = totals.get(clock.current, 0) + now - began
    return totals, now


def _until(totals: dict[CallSite, int], opened: Opened | None, place: CallSite, since: int, now: int) -> None:
    """Add the time since a moment: of what was under way, and of the call that is now."""
    if opened is not None:
        repeated, began, trains = opened
        totals[place] = totals.get(place, 0) + began - since
        place, since = repeated.called or repeated.step, began
        if trains is not None:
            trains = min(trains, now)
            totals[place] = totals.get(place, 0) + trains - since
            place, since = repeated.step, trains
    totals[place] = totals.get(place, 0) + now - since


def _leads(frame: FrameType | None, way: tuple[tuple[CodeType, int], ...]) -> bool:
    """Say whether a frame and those above it are where they were."""
    for code, instruction in way:
        if frame is None or frame.f_code is not code or frame.f_lasti != instruction:
            return False
        frame = frame.f_back
    return True


def _way(frame: FrameType, *, to_user: bool) -> tuple[tuple[CodeType, int], ...] | None:
    """Return where a call is made: its frame, and those up to the user's line; None if that is too far."""
    way: list[tuple[CodeType, int]] = []
    at = frame
    while len(way) < DEEPEST:
        way.append((at.f_code, at.f_lasti))
        if not to_user or user_file(at.f_code.co_filename) is not None:
            return tuple(way)
        if at.f_back is None:
            return None
        at = at.f_back
    return None
