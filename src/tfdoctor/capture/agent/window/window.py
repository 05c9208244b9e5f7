"""The traced window: which loop, which of its steps, when the profiler starts and when it stops.

A window that got all its steps after the warm-up is the recording. One that had to make do with less
(a short first fit) is kept until a better one comes. What happens in each state is in `planning`, `opening`,
`closing` and `choosing`; the states and what they share are in `tracing`.
"""

from __future__ import annotations

import functools
import sys

from ..process import early_end
from ..process.journal import guarded
from ..process.kept import main_thread, threads, time
from . import planning, state_file, window_end, window_start
from .planning import COST, MANY_ROUNDS
from .steps import Marking, StepCounter
from .tracing import AFTERWARDS, DONE, OPEN, PROFILED, SAMPLING, WAITING, Tracing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ..process.stack import Line
    from .steps import Marker, StepKind


class TraceWindow(Tracing):
    """Warm-up, then so many steps of the first loop that gets there."""

    def source(
        self, kind: StepKind, key: Hashable = None, at: Callable[[], Line | None] | None = None
    ) -> StepCounter:
        """Return the counter of one loop; `key` separates loops of a kind, `at` finds its line."""
        source = self.sources.get((kind, key))
        if source is None:
            source = self.sources[kind, key] = StepCounter(kind, self, at() if at else None)
        return source

    def any_step(self) -> bool:
        """Say whether a step was seen."""
        return any(source.seen for source in self.sources.values())

    def first_alarm(self) -> int:
        """Return the step at which a new source asks for the first time."""
        if self.state is OPEN and self.capture is not None and self.capture.source is None:
            return 0
        resting = self.state is DONE or not self.wanted
        return AFTERWARDS if resting else self.plan["warmup"]

    @guarded("announce")
    def announce(self, source: StepCounter, total: int, k: int = 1, skip: int = 0) -> None:
        """So many more steps, `k` a call, are to come; `skip` of them build the graph."""
        planning.announce(self, source, total, k, skip)

    def arrive(self, source: StepCounter, number: int, k: int) -> Marker | None:
        """A call of steps number … number+k-1 begins: open or close, and return its marker."""
        try:  # not `guarded`: each call of Python shows in a step of 2 ms
            with self.lock:
                return (self._marker if self.state is OPEN else self._asked)(source, number, k)
        except Exception as error:
            self.log.fault("arrive", error)
            return None

    def _asked(self, source: StepCounter, number: int, k: int) -> Marker | None:
        """Open a window at this call, or prepare for one; return the marker of what is traced then."""
        if not self.wanted:
            self.quiet = True  # the account of the run has all steps
            return None
        if self.state is DONE and not self.leave:
            self.quiet = True
        if self.state is WAITING and number < source.opens:
            window_start.prepare(self, source)
        elif self.state is WAITING and planning.is_worth(self, source, number, k):
            window_start.open_at(self, source, number, k)
        if self.state is OPEN:
            return self._marker(source, number, k)
        return self._sampled(source, number, k) if self.state is SAMPLING else None

    def _marker(self, source: StepCounter, number: int, k: int) -> Marker | None:
        """Return the marker of a call while the window is open; close it where it ends."""
        capture, session = self.capture, self.session
        if capture is None or session is None:
            return None
        if capture.source is None:
            capture.begin(source, number)
        if source is not capture.source:
            return None
        if number >= self.stop or (self.deadline and time.monotonic() >= self.deadline):
            return self._over(source, number, k, "steps" if number >= self.stop else "time")
        if number >= self.ask_cost and planning.costs_enough(self, capture, number, k):
            return self._over(source, number, k, COST)
        capture.calls += 1
        if not source.marks:
            return SILENT
        mark = functools.partial(session.marker, "train")
        if self.deadline is None:
            source.marking = Marking(min(self.stop, self.ask_cost), mark, capture, self.log)
        return mark(number + source.discarded, k)

    def _over(self, source: StepCounter, number: int, k: int, reason: str) -> Marker | None:
        """The window has got its steps or its time: close it, or let the profiler run on for samples."""
        if reason == COST or not planning.goes_on(self, source) or not self.samples_wanted():
            self.close(reason, number)
            return None
        window_end.sample_on(self, reason, number)
        return self._sampled(source, number, k)

    def _sampled(self, source: StepCounter, number: int, k: int) -> Marker | None:
        """Return the marker of a call that is sampled and not measured; close the window after enough of them."""
        capture, session = self.capture, self.session
        if capture is None or session is None or source is not capture.source:
            return None
        most = planning.most_sampled(self, source, self.stop - capture.start)
        if number >= self.stop + most or not self.samples_wanted():
            self.close("steps")
            return None
        return session.sampled(number + source.discarded, k)

    def retract(self, number: int) -> None:
        """A marker of this number stood for no step."""
        if self.capture is not None:
            self.capture.retract(number, measured=self.state is OPEN)

    @guarded("open")
    def open_for(self, source: StepCounter | None, seconds: float) -> None:
        """Trace for a time, whatever is seen meanwhile."""
        if self.wanted:
            window_start.open_for(self, source, seconds)

    @guarded("close")
    def close(self, reason: str, reached: int | None = None) -> None:
        """Stop the profiler, at a step if that is known; a second call does nothing."""
        window_end.close(self, reason, reached)

    def borrowed(self) -> bool:
        """Say whether the profiler that runs is the user's."""
        return self.session is not None and self.session.borrowed

    def _traces(self, source: StepCounter) -> bool:
        """Say whether our profiler traces this source at the moment."""
        if self.state not in PROFILED or self.capture is None:
            return False
        return self.capture.source is source and not self.borrowed()

    def loop_over(self, source: StepCounter) -> None:
        """A loop was left before its window was full."""
        if self._traces(source):
            self.close("end-of-loop")

    def fit_over(self, source: StepCounter | None, reason: str) -> None:
        """A fit has returned: the window does not outlive it, unless fits are what is repeated."""
        if source is None or not self._traces(source):
            return
        if source.rounds < MANY_ROUNDS or reason != "end-of-fit":
            self.close(reason)

    def depart(self) -> None:
        """Raise SystemExit in the user's main thread when `--stop-after` asked for it."""
        self.leave = False
        self.rest()
        if threads.get_ident() == main_thread():
            self.save()
            early_end.stops(self.log)
            sys.exit(0)
        self.log.missing("stop", "--stop-after had no effect: it needs training in the main thread")

    def after_fork(self) -> None:
        """Forget the parent's steps; a fork of a process that had begun to train stays silent."""
        used = self.state is not WAITING or self.any_step()
        if self.session is not None:
            self.session.unnumbered.end()  # the window is the parent's
        self.lock = threads.RLock()
        self.reset()
        if used:
            self.rest()

    def save(self) -> None:
        """Bring the state file up to date."""
        state_file.save(self)


class Silent:
    """Stands for a marker that the framework itself has set."""

    def __exit__(self, *_: object) -> None:
        """Leave it to the framework."""


SILENT = Silent()
