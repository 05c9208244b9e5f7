"""The clock of the account: which call is under way on the thread that it follows, and the time in each.

It follows the main thread, or the first other one that trains. Only that thread changes the clock, so that no lock
is needed; another one reads it by `CallClock.read`.
"""

from __future__ import annotations

import collections

from ..process.all_threads import OtherThreads
from ..process.kept import main_thread, threads, time
from ..process.stack import user_line
from .kinds import ALONE, BETWEEN, EPOCH, EVALUATE, FIT, FUNCTION, OPEN, STEP, TEST, TRACE
from .loops import CalledLoops, TrainingCalls
from .places import CallSites
from .repeated import RepeatedSteps, snapshot
from .step_times import RunStepTimes
from .traced_arguments import TracedArguments
from .waiting import started, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ..process.stack import Line
    from .places import CallSite

    # What was under way before a call, when it began, and the call itself:
    Entered = tuple[CallSite, int, CallSite]

MOST_TRACES = 5000
MOST_SPANS = 4000  # Calls that are told one by one; later ones only where they take long
LONG_NS = 1_000_000_000
MOST_LONG_SPANS = 20_000

OFTEN = 0.5  # Calls for each step from which they belong to it
IN_A_ROW = 2  # Calls without a step between them that may belong to one
WITHIN_LOOP = (BETWEEN, STEP)  # Calls within which another one is no part of the step

# How often a thread that trains looks whether the followed one waits: looking takes as long as a short step.
MOVES_NS = 100_000_000


class CallClock:
    """Which call is under way on the thread that the account follows, since when, and how long each took."""

    __slots__ = (
        # What each step reads, side by side in memory: between real steps the processor's caches are empty.
        *("thread", "inside", "running", "current", "first", "profiled", "caller", "repeats"),
        *("now", "trained", "trains", "steps", "totals", "entered", "places"),
        # The rest.
        *("training", "testing", "kept", "spans", "traces", "open", "told", "told_traces"),
        *("dropped", "arguments", "following", "trace_began", "graph_size", "graph", "functions"),
        *("began", "owner", "moves_at"),
        *("trained_at", "tested", "stepped", "since_step"),
    )

    thread: int | None  # that the account follows; None: nothing is recorded

    def __init__(self) -> None:
        self.repeats = RepeatedSteps(self)  # that are not accounted for yet
        self.begin(threads.get_ident())
        self.thread = None

    def begin(self, thread: int) -> None:
        """Nothing was seen yet; the account follows this thread."""
        self.places, self.kept, self.steps = CallSites(), TrainingCalls(), RunStepTimes()
        self.repeats.begin()
        self.totals: dict[CallSite, int] = {}  # ns
        self.entered: dict[CallSite, int] = {}  # times
        self.spans: collections.deque[dict[str, object]] = collections.deque()  # told alone
        self.open: list[tuple[CallSite, int]] = []  # epochs, since when
        self.told = self.dropped = 0
        self.first, self.profiled = True, False  # the next step is the first one of a pass over the data
        self.running: bool = False  # a call that trains is under way
        self.began = time.perf_counter_ns()
        # The call whose time runs, and since when; None while that changes:
        self.now: tuple[CallSite, int] | None = (self.places.script, self.began)
        self.current = self.places.script
        self.training, self.testing, self.arguments = CalledLoops(), CalledLoops(), TracedArguments()
        # What is around the step that is the tf.function under way, and what calls that:
        self.trained: CallSite | None = None
        self.caller: FrameType | None = None
        self.traces: collections.deque[dict[str, object]] = collections.deque()
        # Traces told, when the last one began, functions traced, steps, and calls of tf.functions under way:
        self.told_traces = self.trace_began = self.functions = self.stepped = self.inside = 0
        self.graph_size = 0, 0  # operations, and elements of variables, of the graph built last
        self.graph: int | None = None  # operations of TensorFlow 1's default graph
        self.trained_at: set[Line | None] = set()  # lines whose calls of tf.functions train
        self.tested: dict[CallSite, int] = {}  # calls at such lines that do not
        self.since_step = 0, 0  # steps at the last such call, and how many came since the step
        self.following = threads.allocate_lock()
        self.moves_at = 0  # ns from which another thread may be followed instead of a waiting one
        self.follow(thread)  # last: from here on, other threads may ask

    # The call under way

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

    def enter(self, kind: str, name: str, frame: FrameType | None) -> Entered:
        """A call begins that the frame makes."""
        before, outer = self.current, self.outer()
        place = self.places.of(kind, user_line(frame) or outer.at, name, outer)
        self.entered[place] = self.entered.get(place, 0) + 1
        began = self.switch(place)
        if kind == FIT:
            self.kept.add(frame, fits=True)
        return before, began, place

    def leave(self, entered: Entered, told: dict[str, object] | None = None) -> None:
        """A call is over, and all within it."""
        before, began, place = entered
        if place not in self.places:
            return  # it began in an earlier recording
        if place.kind == EVALUATE:
            before = epoch_of(before)
        # An exception has ended the epoch of a fit that is open still:
        while self.open and self.open[-1][0].parent is place:
            self.tell(*self.open.pop(), time.perf_counter_ns())
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

    # Calls of tf.functions

    def function_begins(self, name: str, frame: FrameType | None) -> Entered | None:
        """An outermost call of a tf.function begins; return it where it is no part of another call."""
        self.inside += 1
        self.trained, self.caller = None, frame
        if self.current.kind not in OPEN:
            return None
        return self.enter(FUNCTION, name, frame)

    def function_ends(
        self,
        entered: Entered | None,
        function: object,
        name: str,
        args: Sequence[object] = (),
        kwargs: dict[str, object] | None = None,
    ) -> None:
        """It is over: where it trained, what follows lies between two steps."""
        self.inside = max(0, self.inside - 1)  # a recording may begin within the call
        now = self.current
        if now.kind == TRACE and now.parent is not None:
            self._traced(function, name, now, args, kwargs or {})
            if self.trained is None:
                self.steps.apart += time.perf_counter_ns() - self.trace_began
            self.switch(now.parent)
        trained, caller, self.trained, self.caller = self.trained, self.caller, None, None
        if trained is not None and trained in self.places:
            self.step_ends(trained)
            if entered is not None:
                self.repeats.learn(function, caller, trained, called=entered[2])
            return
        if entered is None or entered[2] not in self.places:
            return
        self.testing.add(caller)
        ended = self.switch(entered[0])
        if now.kind == TEST and entered[0].kind == BETWEEN:
            self.steps.apart += ended - entered[1]

    def function_fails(self, *, part: bool) -> None:
        """An exception leaves it, which may be part of a step of Keras."""
        self.repeats.settle()
        if self.trained is not None:
            self.steps.retract()
        if not part:
            self.abandon()

    def _traced(
        self, function: object, name: str, place: CallSite, args: Sequence[object], kwargs: dict[str, object]
    ) -> None:
        """Keep a call that traced a function for the file."""
        if self.told_traces >= MOST_TRACES:
            self.dropped += 1
            return
        self.told_traces += 1
        began, now = self.trace_began, time.perf_counter_ns()
        self.traces.append(
            {
                "kind": "trace",
                "name": name,
                "at": place.at,
                "start": began,
                "ms": round((now - began) / 1e6, 3),
                "call": place.number,
                "operations": self.graph_size[0],
                "variables": self.graph_size[1],
                **self.arguments.told(function, place, args, kwargs),
            }
        )

    def trace_begins(self) -> None:
        """A graph is built: within a call of a tf.function that is what the call does, until its end."""
        self.functions += 1
        self.repeats.settle()
        if not self.inside or self.current.kind == TRACE:
            return
        place = self.current
        self.trace_began = self.switch(self.places.of(TRACE, place.at, place.name, place))
        self.steps.traces()

    def graph_built(self, operations: int, variables: int) -> None:
        """A graph of so many operations was built, which uses variables of so many elements.

        Those of functions within it came before.
        """
        self.graph_size = operations, variables

    # Steps of training

    def step_begins(self, frame: FrameType | None, source: str, k: int) -> CallSite:
        """A call that trains, of k steps, begins; return the call around it."""
        outer = self.outer()
        tracing = outer.kind == TRACE
        while outer.kind in (TRACE, FUNCTION) and outer.parent is not None:
            outer = outer.parent
        at = outer.at if outer.kind in (FIT, EPOCH) else user_line(frame)
        place = self.places.of(STEP, at, source, outer)
        self.entered[place] = self.entered.get(place, 0) + k
        self.stepped += k
        if outer.kind not in (FIT, EPOCH):  # fit has the loop itself
            self.training.add(frame)
            self.kept.add(frame)
        now = time.perf_counter_ns() if tracing else self.switch(place)
        if tracing:  # what was traced so far is no part of the step before
            self.steps.apart += now - self.trace_began
        self.steps.begins(place, now, k, first=self.first, traced=self.profiled)
        if tracing:
            self.steps.traces()
        self.first, self.running, self.trains = False, True, True
        return outer

    def step_ends(self, outer: CallSite) -> None:
        """It is over; what comes until the next call lies between two steps."""
        self.running = False
        between = outer.between
        if between is None:
            between = outer.between = self.places.of(BETWEEN, outer.at, "", outer)
        self.steps.ends(self.switch(between))

    def step_begins_here(self, frame: FrameType | None, source: str, k: int) -> CallSite | None:
        """A call that trains begins, on any thread; None where it is part of another one, or not of the account."""
        return self.step_begins(frame, source, k) if self.adopt() and not self.running else None

    def step_fails(self, outer: CallSite | None, *, part: bool) -> None:
        """An exception ends it: it is none. It may be part of another one."""
        if outer is not None:
            self.repeats.settle()
            self.steps.retract()
        if not part and self.ours():
            self.abandon()

    def step_is_over(self, outer: CallSite | None, error: BaseException | None, *, part: bool) -> None:
        """It is over, if it was one."""
        if error is not None:
            self.step_fails(outer, part=part)
        if outer is not None:
            self.step_ends(outer)

    def function_trains(self, source: str, concrete: object = None) -> None:
        """The tf.function under way runs a graph that trains."""
        self.repeats.settle()
        if self.trained is None:
            self.repeats.runs(concrete)
            now = self.current
            called = now.parent if now.kind == TRACE and now.parent is not None else now
            if called.kind == FUNCTION:
                self.trained_at.add(called.at)
            self.trained = self.step_begins(self.caller, source, 1)

    def function_tests(self) -> None:
        """The tf.function under way runs a graph that does not train: where others do, it tests the model."""
        now = self.current
        if now.kind == FUNCTION and self.trained is None and self._tests(now):
            place = self.places.of(TEST, now.at, now.name, now.parent)
            self.entered[place] = self.entered.get(place, 0) + 1
            self.switch(place)

    def _tests(self, place: CallSite) -> bool:
        """Say whether a call that does not train tests the model: at a line that trains, and in few of its steps.

        One that comes with every step, or with every other one, belongs to the step.
        """
        if place.at not in self.trained_at:
            return False
        at_step, calls = self.since_step
        self.since_step = self.stepped, calls + 1 if at_step == self.stepped else 1
        self.tested[place] = self.tested.get(place, 0) + 1
        few = self.tested[place] < OFTEN * self.stepped
        return few or self.since_step[1] > IN_A_ROW

    def step_at(self, frame: FrameType | None) -> None:
        """A gradient was taken outside of every function: a step ends and another one begins."""
        if self.current.kind in OPEN:
            self.step_ends(self.step_begins(frame, "eager-gradient", 1))

    # Epochs of fit

    def epoch_begins(self) -> None:
        """An epoch of fit begins."""
        self.repeats.settle()
        fit = self._fit()
        if fit is None:
            return
        self.first = True
        self.steps.passes_over()
        epoch = self.places.of(EPOCH, fit.at, "", fit)
        self.entered[epoch] = self.entered.get(epoch, 0) + 1
        self.open.append((epoch, self.switch(epoch)))

    def steps_over(self) -> None:
        """The steps of an epoch are over: what comes now is its end."""
        self.repeats.settle()
        self.steps.passes_over()
        if self.current.kind == BETWEEN:
            self.switch(epoch_of(self.current))

    def epoch_ends(self) -> None:
        """An epoch of fit is over, with all its callbacks."""
        fit = self._fit()
        if fit is None or not self.open:
            return
        self.tell(*self.open.pop(), self.switch(fit))

    def _fit(self) -> CallSite | None:
        """Return the fit that is under way, where nothing but its epochs is within it."""
        place: CallSite | None = self.current
        while place is not None and place.kind in (BETWEEN, EPOCH):
            place = place.parent
        return place if place is not None and place.kind == FIT else None

    def abandon(self) -> None:
        """The outermost call is over, and an exception may have come while it was noted: no call is under way."""
        if self.running or self.repeats.under_way() is not None:
            self.repeats.settle()
            if self.steps.now is not None and not self.steps.now.inside:
                self.steps.retract()
        if self.current.kind == TEST and self.now is not None:
            self.steps.apart += time.perf_counter_ns() - self.now[1]
        if self.current.kind in (STEP, FUNCTION, TEST) and self.current.parent is not None:
            self.switch(self.current.parent)
        self.inside, self.running, self.trained = 0, False, None

    def opens(self) -> bool:
        """Say whether a call that begins now is no part of another one."""
        return self.current.kind in OPEN

    # What other threads ask

    def read(self) -> tuple[dict[CallSite, int], int]:
        """Return the time of each call so far and the present time, ns; from another thread."""
        return snapshot(self)

    def in_long_step(self, now: int) -> bool:
        """Say whether the step under way takes long by now; from another thread."""
        began = self.repeats.last_began()
        if began is None:
            return self.steps.is_long(now)
        loop = self.steps.loops.get(began[0])
        return loop is not None and loop.is_long(now - began[1])

    # The thread that is followed

    def ours(self) -> bool:
        """Say whether the calling thread is the one that the account follows."""
        return self.thread == threads.get_ident()

    def adopt(self) -> bool:
        """Follow the calling thread, which trains, unless the one that is followed trains too."""
        if self.thread is None:
            return False
        if self.thread != threads.get_ident():
            self.look_after_thread()
            with self.following:
                if not self.ours() and not self._may_leave():
                    return False
                self._move(threads.get_ident())
        return True

    def _may_leave(self) -> bool:
        """Say whether another thread may be followed: this one has not trained, or it waits for others."""
        if not self.trains and self.current is self.places.script:
            return True
        now = time.perf_counter_ns()
        if now < self.moves_at:
            return False
        self.moves_at = now + MOVES_NS
        return self.rests() and waits_now(self.thread)

    def rests(self) -> bool:
        """Say whether the thread that the account follows is in no call of TensorFlow or Keras."""
        now, script = self.current, self.places.script
        return now is script or (now.kind == BETWEEN and now.parent is script)

    def _move(self, thread: int) -> None:
        if self.thread == thread:
            return
        self.repeats.settle()
        self.inside, self.running = 0, False
        self.pass_over()
        self.switch(self.places.script)
        self.follow(thread)

    def follow(self, thread: int) -> None:
        """Follow a thread, which has not trained yet."""
        self.owner = started().get(thread)
        self.thread, self.trains = thread, False

    def look_after_thread(self) -> None:
        """Follow the main thread where the one that trained has ended."""
        if not self._is_over():
            return
        main = main_thread()
        if self.thread == main:
            return
        with self.following:
            if self.thread is not None and self._is_over():
                self._move(main)

    def follows(self) -> bool:
        """Say whether the account follows the calling thread, now that the one before may have ended."""
        if self.thread is None:
            return False
        self.look_after_thread()
        return self.ours()

    def _is_over(self) -> bool:
        """Say whether the thread that the account follows has ended: another one may have got its number."""
        return self.thread != main_thread() and started().get(self.thread or 0) is not self.owner


def epoch_of(place: CallSite) -> CallSite:
    """Return the epoch of fit that lies around the steps under way; the call itself where there is none."""
    outer = place.parent if place.kind == BETWEEN else place
    return outer if outer is not None and outer.kind == EPOCH else place


def waits_now(thread: int | None) -> bool:
    """Say whether a thread waits for others; looking takes some 20 us."""
    with OtherThreads() as frames:
        return waits(thread, frames)
