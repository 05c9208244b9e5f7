"""Counting steps: next to nothing outside the window, one marker a call inside it; and which are to be traced."""

from __future__ import annotations

import collections
import enum
import math
import sys

from ..process.kept import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Protocol

    from ..process.budget import CaptureBudget
    from ..process.declared import AgentPlan, Foreign, TraceMarker
    from ..process.journal import Journal
    from ..process.stack import Line

    class StepListener(Protocol):
        """Who decides whether a call is traced: the window."""

        leave: bool
        log: Journal

        def first_alarm(self) -> int:
            """Return the step at which a new source asks for the first time."""

        def arrive(self, source: StepCounter, number: int, k: int) -> TraceMarker | None:
            """A call of k steps begins; return its marker, if it is traced."""

        def retract(self, number: int) -> None:
            """A marker of this number stood for no step."""

        def depart(self) -> None:
            """End the script after the traced window, as --stop-after asks."""


NEVER = sys.maxsize  # The step at which a resting source asks the window again
REMEMBERED = 1000  # Untraced calls whose time is kept, for the report to say what profiling costs
# Untraced steps of at least so many times the median are told one by one, at most so many: the first steps of
# epochs, which a short window does not hold.
LONG, LONGEST = 2, 40
AHEAD = 2  # So many calls before a window may open, it is announced: what is learnt from calls is learnt there
MOST_SAMPLED = 5  # After the window, at most so many times its steps are sampled: very short steps give few samples
MANY_ROUNDS = 3  # A fit that is entered so often is itself inside a loop, and the window may outlast it
ROUNDS = 2  # How often a call must have come before it is taken for one that recurs


class StepKind(str, enum.Enum):  # noqa: UP042  # Python 3.9 has no StrEnum
    """What shows the steps of a loop; the values stand in recordings."""

    FIT = "keras-fit"
    BATCH = "keras-train-on-batch"
    DATA = "tf-data-loop"
    FUNCTION = "repeated-call"
    GRADIENT = "eager-gradient"
    GRAPH = "graph-loop"
    SESSION = "session-run"

    __hash__ = str.__hash__  # that of an enum is slow, and each step looks its source up


# Sources that see where a step begins and not where the loop ends: the last step has no end.
OPEN_ENDED = frozenset((StepKind.FUNCTION, StepKind.GRADIENT))
# Sources that are single calls: several of them may make up one round of the user's loop.
TAKING_TURNS = OPEN_ENDED | {StepKind.BATCH, StepKind.SESSION}


class StepCounter:
    """One loop that trains: what shows its steps, and how many there were."""

    def __init__(self, kind: StepKind, listener: StepListener, at: Line | None = None) -> None:
        self.kind = kind
        self.listener = listener
        self.at = at
        self.seen = 0  # steps begun
        self.discarded = 0  # numbers of markers that turned out to be no steps: never used again
        self.calls = 0
        self.rounds = 0  # how often this loop was entered, where that can be seen
        self.end: int | None = None  # the step at which it will end, where it says so
        self.marks = True  # False: the framework sets markers itself, just before it calls us
        self.opens = 0  # the step at which a window may open
        self.alarm = 0  # the step from which on each call asks the listener
        self.ask_at(listener.first_alarm(), 1)
        self.began, self.size = 0, 1  # when the last call began, 0 when it is traced, and its steps
        # (ns, steps, number of the first one) from one untraced call to the next, and of traced calls the same:
        self.spans: collections.deque[tuple[int, int, int]] = collections.deque(maxlen=REMEMBERED)
        self.traced: collections.deque[tuple[int, int, int]] = collections.deque(maxlen=REMEMBERED)
        self.under_profiler = False
        # While its window is open, the step at which that closes, and the capture:
        self.marking: tuple[int, Foreign] | None = None
        # The source whose rounds seem to hold several calls of this one:
        self.outer: StepCounter | None = None
        self.outer_seen = 0

    def ask_at(self, number: int, k: int) -> None:
        """Let a window open at this step, and announce it some calls of k steps before."""
        self.opens, self.alarm = number, max(0, number - AHEAD * k)

    def begin(self, k: int) -> TraceMarker | None:
        """A call of k steps begins; return its marker, or None outside the window."""
        number, marking = self.seen, self.marking
        if marking is not None and number < marking[0]:
            return self._mark(marking[1], k)
        self.count(k)
        if number < self.alarm:
            return None
        marker = self.listener.arrive(self, number, k)
        # What is traced takes longer, and the end of a window is no work of a step:
        self.began = time.perf_counter_ns() if marker is None else 0
        if self.listener.leave:
            self.retract(None, k)
            self.listener.depart()
        return marker

    def _mark(self, window: Foreign, k: int) -> TraceMarker | None:
        """Mark a call of an open window; each call of Python more would show in a step of 2 ms."""
        number = self.seen + self.discarded
        self.seen += k
        self.calls += 1
        window.calls += 1
        try:
            marked: TraceMarker | None = window.marker(number, k)
        except Exception as error:
            self.listener.log.fault("marker", error)
            marked = None
        return marked

    def count(self, k: int) -> None:
        """Count a call of k steps, and note the time since the one before."""
        now = time.perf_counter_ns()
        if self.began:
            self.spans.append((now - self.began, self.size, self.seen - self.size))
        self.seen += k
        self.calls += 1
        self.began, self.size = now, k

    def called(self, *, traced: bool) -> None:
        """Count a call whose steps are all inside it; `traced` says whether the profiler runs.

        The times of calls with and without the profiler show its cost, where no step can.
        """
        now = time.perf_counter_ns()
        if self.began and traced == self.under_profiler:  # else it began or ended meanwhile
            (self.traced if traced else self.spans).append((now - self.began, 1, 0))
        self.calls += 1
        self.began, self.under_profiler = now, traced

    def over(self, marker: TraceMarker | None, k: int = 1, *, failed: bool = False) -> None:
        """The call of this marker is over; one that failed was no step."""
        if failed:
            self.retract(marker, k)
        if marker is not None:
            marker.__exit__(None, None, None)

    def retract(self, marker: TraceMarker | None, k: int) -> None:
        """The call that began last was no step: the data had ended."""
        self.seen -= k
        self.calls -= 1
        self.began = 0
        if marker is not None:
            self.listener.retract(self.seen + self.discarded)
            self.discarded += k

    def yields_to(self, sources: Iterable[StepCounter]) -> bool:
        """Say whether to wait, since these calls seem to be inner ones: a critic's, five a generator's.

        The source that goes round least often is asked for its steps first. It must go on doing so.
        """
        if self.kind not in TAKING_TURNS:
            return False
        others = [source for source in sources if source.kind in TAKING_TURNS and source.seen >= ROUNDS]
        outer = min(others, key=lambda source: source.seen, default=self)
        if outer.seen * 2 > self.seen or (outer, outer.seen) == (self.outer, self.outer_seen):
            self.outer = None
            return False
        self.outer, self.outer_seen = outer, outer.seen
        self.alarm = self.seen + 2 * -(-self.seen // outer.seen)
        return True

    # Which of its steps to trace

    def announce(self, total: int, k: int, skip: int, warmup: int, steps: int) -> None:
        """`total` more steps, `k` a call, are to come: fit a window of so many `steps` into them.

        `skip` steps build the graph; they are only traced when there are no others.
        """
        done, self.end = self.seen, self.seen + total
        first = max(warmup, done)
        if self.end < first + steps and self.rounds < MANY_ROUNDS:
            earliest = done + skip if total > skip else done
            first = max(earliest, min(first, self.end - steps))
        self.ask_at(max(0, first if self.marks else first - k), k)

    def left(self, stop: int) -> int | None:
        """Return how many steps follow a window; None is unknown, as where the end of an epoch was announced."""
        if self.end is None or self.end < self.seen or self.rounds >= MANY_ROUNDS:
            return None
        return self.end - stop

    def goes_on(self, stop: int, plan: AgentPlan) -> bool:
        """Say whether it probably has more steps than the window, for samples of the stack that cost them time.

        Keras 2 marks steps itself, so that those could not be told from the ones that are measured.
        """
        if stop == NEVER or not self.marks:
            return False
        left = self.left(stop)
        if left is None:
            return not plan["stop_after"]  # only a step ends the run, and there may be none
        return left >= plan["steps"]

    def most_sampled(self, stop: int, measured: int) -> int:
        """Return how many steps after the window may be sampled: at least half of them remain as they are."""
        left, most = self.left(stop), MOST_SAMPLED * measured
        return most if left is None else min(most, left // 2)

    def waits(self, budget: CaptureBudget, number: int, k: int, steps: int) -> bool:
        """Say whether to wait until a window of so many steps costs little enough of the run; ask for it then."""
        wait_s = budget.wait_s(steps)
        if wait_s:
            self.ask_at(number + k * max(1, math.ceil(wait_s / (self.usual_s() or wait_s) / k)), k)
        return bool(wait_s)

    # What is told of it

    def summary(self) -> dict[str, object]:
        """Return what the manifest says of this candidate."""
        return {"source": self.kind.value, "steps": self.seen, "calls": self.calls, "at": self.at}

    def untraced(self) -> dict[str, object] | None:
        """Return the usual time of a step outside the window, or None when there was none."""
        spans = self._later_spans()
        usual = _median_ms(spans)
        if usual is None or not (self.seen or self.traced):
            return None
        times = {"count": len(spans), "median_ms": usual, "of": "steps"}
        if self.traced:
            times |= {"of": "calls", "traced_ms": _median_ms(self.traced)}
        elif self.kind is not StepKind.GRAPH:
            found = [(number, ns / k / 1e6) for ns, k, number in spans]
            longest = sorted(found, key=lambda one: -one[1])[:LONGEST]
            times["total_ms"] = round(sum(ns for ns, _, _ in spans) / 1e6, 4)
            times["long"] = [(number, round(ms, 4)) for number, ms in sorted(longest) if ms >= LONG * usual]
        return times

    def usual_s(self) -> float | None:
        """Return the mean time of an untraced step."""
        spans = self._later_spans()
        steps = sum(k for _, k, _ in spans)
        return sum(ns for ns, _, _ in spans) / steps / 1e9 if steps else None

    def _later_spans(self) -> list[tuple[int, int, int]]:
        return list(self.spans)[1:]  # the first call builds the graph


def _median_ms(spans: Collection[tuple[int, int, int]]) -> float | None:
    times = sorted(ns / k / 1e6 for ns, k, _ in spans)
    return round(times[len(times) // 2], 4) if times else None
