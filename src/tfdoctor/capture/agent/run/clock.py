"""What the hooks tell of the followed thread: its calls of tf.functions, its steps and its epochs."""

from __future__ import annotations

import collections

from ..process.kept import threads, time
from ..process.stack import user_line
from .call_times import epoch_of
from .followed_thread import FollowedThread
from .kinds import BETWEEN, EPOCH, FIT, FUNCTION, OPEN, STEP, TEST, TRACE
from .loops import CalledLoops
from .repeated import RepeatedSteps
from .snapshot import snapshot
from .traced_arguments import TracedArguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from ..process.stack import Line
    from .call_times import Enter
    from .places import CallSite

MOST_TRACES = 5000

OFTEN = 0.5  # Calls for each step from which they belong to it
IN_A_ROW = 2  # Calls without a step between them that may belong to one


class CallClock(FollowedThread):
    """Which call is under way on the thread that the account follows, as the hooks tell it."""

    __slots__ = ()

    def __init__(self) -> None:
        self.repeats = RepeatedSteps(self)
        self.begin(threads.get_ident())
        self.thread = None

    def begin(self, thread: int) -> None:
        """Nothing was seen yet; the account follows this thread."""
        self.begin_times()
        self.training, self.testing = CalledLoops(), CalledLoops()
        self.arguments = TracedArguments()
        # What is around the step that is the tf.function under way, and what calls that:
        self.trained: CallSite | None = None
        self.caller: FrameType | None = None
        self.traces: collections.deque[dict[str, object]] = collections.deque()
        self.told_traces = self.trace_began = 0
        self.graph_size = 0, 0  # operations, and elements of variables, of the graph built last
        self.profiled = False
        self.graph: int | None = None  # operations of TensorFlow 1's default graph
        self.functions = 0  # traced so far
        self.trained_at: set[Line | None] = set()  # lines whose calls of tf.functions train
        self.tested: dict[CallSite, int] = {}  # calls at such lines that do not
        self.stepped = 0  # steps so far
        self.since_step = 0, 0  # steps at the last such call, and how many came since the step
        self.begin_following(thread)  # last: from here on, other threads may ask

    # Calls of tf.functions

    def function_begins(self, name: str, frame: FrameType | None) -> Enter | None:
        """An outermost call of a tf.function begins; return it where it is no part of another call."""
        self.inside += 1
        self.trained, self.caller = None, frame
        if self.current.kind not in OPEN:
            return None
        return self.enter(FUNCTION, name, frame)

    def function_ends(
        self,
        entered: Enter | None,
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

    def epoch_begins(self, number: int) -> None:
        """An epoch of fit begins."""
        self.repeats.settle()
        fit = self._fit()
        if fit is None:
            return
        self.first = True
        self.steps.passes_over()
        epoch = self.places.of(EPOCH, fit.at, "", fit)
        self.entered[epoch] = self.entered.get(epoch, 0) + 1
        self.open.append((epoch, self.switch(epoch), {"number": number}))

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
        epoch, began, told = self.open.pop()
        self.tell(epoch, began, self.switch(fit), told)

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
        return snapshot(self, self.repeats)

    def in_long_step(self, now: int) -> bool:
        """Say whether the step under way takes long by now; from another thread."""
        began = self.repeats.last_began()
        if began is None:
            return self.steps.is_long(now)
        loop = self.steps.loops.get(began[0])
        return loop is not None and loop.is_long(now - began[1])
