"""The call under way on the thread that the account follows, and the exact time in each."""

from __future__ import annotations

import collections

from ..process.kept import time
from ..process.stack import user_line
from .kinds import ALONE, BETWEEN, EPOCH, EVALUATE, FIT, STEP
from .loops import TrainingCalls
from .places import CallSites
from .step_times import RunStepTimes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from .places import CallSite
    from .repeated import RepeatedSteps

    # What was under way before a call, when it began, and the call itself:
    Enter = tuple[CallSite, int, CallSite]

MOST_SPANS = 4000  # Calls that are told one by one; later ones only where they take long

LONG_NS = 1_000_000_000

MOST_LONG_SPANS = 20_000

WITHIN_LOOP = (BETWEEN, STEP)  # Calls within which another one is no part of the step


class CallTimes:
    """Which call is under way, since when, and how long each took so far.

    Only its own thread changes it, so that no lock is needed; another one reads it by `CallClock.read`.
    """

    __slots__ = (
        # What each step reads, side by side in memory, that of the classes on top included: between real steps
        # the processor's caches are empty.
        *("thread", "inside", "running", "current", "first", "profiled", "caller", "repeats"),
        *("now", "trained", "trains", "steps", "totals", "entered", "places"),
        # The rest.
        *("training", "testing", "kept", "spans", "traces", "open", "told", "told_traces"),
        *("dropped", "arguments", "following", "trace_began", "graph_size", "graph", "functions"),
        *("failed", "began", "owner", "lent", "tracing", "moves_at"),
        *("trained_at", "tested", "stepped", "since_step"),
    )

    repeats: RepeatedSteps  # that the clock has not accounted for yet

    def begin_times(self) -> None:
        """Nothing was seen yet."""
        self.places, self.kept, self.steps = CallSites(), TrainingCalls(), RunStepTimes()
        self.repeats.begin()
        self.totals: dict[CallSite, int] = {}
        self.entered: dict[CallSite, int] = {}
        self.spans: collections.deque[dict[str, object]] = collections.deque()  # told alone
        self.open: list[tuple[CallSite, int, dict[str, object]]] = []
        self.told = self.dropped = 0
        self.first = True  # the next step is the first one of a pass over the data
        self.running: bool = False  # a call that trains is under way
        # An exception's id, and the innermost call it left:
        self.failed: tuple[int, CallSite] | None = None
        self.began = time.perf_counter_ns()
        self.now: tuple[CallSite, int] | None = (self.places.script, self.began)
        self.current = self.places.script

    def switch(self, place: CallSite, now: int | None = None) -> int:
        """Another call is under way from now on, or from a moment on that is past; return the time."""
        repeats = self.repeats
        if repeats.brief is not None or repeats.waiting or repeats.opened is not None:
            repeats.settle()
        now = time.perf_counter_ns() if now is None else now
        before, self.now = self.now, None  # who reads meanwhile waits
        totals = self.totals
        if before is None:  # an exception of a signal's handler has interrupted the last switch
            before = self.current, self.began + sum(totals.values())
        totals[before[0]] = totals.get(before[0], 0) + now - before[1]
        self.current = place
        self.now = place, now
        return now

    def outer(self) -> CallSite:
        """Return the call under way; between two steps it is the one around them."""
        now = self.current
        return now.parent if now.kind == BETWEEN and now.parent is not None else now

    def enter(self, kind: str, name: str, frame: FrameType | None) -> Enter:
        """A call begins that the frame makes."""
        before, outer = self.current, self.outer()
        place = self.places.of(kind, user_line(frame) or outer.at, name, outer)
        self.entered[place] = self.entered.get(place, 0) + 1
        began = self.switch(place)
        if kind == FIT:
            self.kept.add(frame, fits=True)
        return before, began, place

    def leave(self, entered: Enter, told: dict[str, object] | None = None) -> None:
        """A call is over, and all within it."""
        before, began, place = entered
        if place not in self.places:
            return  # it began in an earlier recording
        if place.kind == EVALUATE:
            before = epoch_of(before)
        # An exception has ended the epoch of a fit that is open still:
        while self.open and self.open[-1][0].parent is place:
            epoch, epoch_began, number = self.open.pop()
            self.tell(epoch, epoch_began, time.perf_counter_ns(), number)
        now = self.switch(before)
        if before.kind in WITHIN_LOOP:
            self.steps.apart += now - began
        elif place.kind == EVALUATE:
            self.steps.passes_over()
        if place.kind in ALONE:
            self.tell(place, began, now, told)

    def tell(self, place: CallSite, began: int, ended: int, told: dict[str, object] | None = None) -> None:
        """Keep a call for the file, alone."""
        self.told += 1
        few = self.told <= MOST_SPANS
        if few or (ended - began >= LONG_NS and self.told <= MOST_LONG_SPANS):
            span = {"kind": "span", "call": place.number, "start": began, "end": ended}
            self.spans.append({**span, **(told or {})})
        else:
            self.dropped += 1

    def pass_over(self) -> None:
        """The data have ended: what follows lies between two passes; within a step it is other data."""
        self.repeats.settle()
        if self.running:
            return
        self.first = True
        if self.current.kind == BETWEEN and self.current.parent is not None:
            parent = self.current.parent
            if parent.kind not in (FIT, EPOCH):
                self.switch(parent)
        self.steps.passes_over()

    def fails(self, error: BaseException, place: CallSite) -> None:
        """An exception leaves a call; of those that one leaves, the innermost says where it came from."""
        self.repeats.settle()
        if self.failed is None or self.failed[0] != id(error):
            self.failed = id(error), place

    def ended_in(self, error: BaseException | None) -> CallSite:
        """Return the call that the exception has left that ends the run; the one under way without."""
        failed, seen = self.failed, set[int]()
        while error is not None and id(error) not in seen:
            if failed is not None and failed[0] == id(error):
                return failed[1]
            seen.add(id(error))
            error = error.__cause__ or error.__context__
        return self.current


def epoch_of(place: CallSite) -> CallSite:
    """Return the epoch of fit that lies around the steps under way; the call itself where there is none."""
    outer = place.parent if place.kind == BETWEEN else place
    return outer if outer is not None and outer.kind == EPOCH else place
