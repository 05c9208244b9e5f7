"""The traced window: which loop, which of its steps, when the profiler starts and when it stops.

A window that got all its steps after the warm-up is the recording. One that had to make do with less
(a short first fit) is kept until a better one comes. Where the stack was sampled too rarely, the profiler runs on
for some calls, which are not measured.
"""

from __future__ import annotations

import contextlib
import enum
import sys

from ..process import early_end
from ..process.budget import FEWEST_CALLS, CaptureBudget
from ..process.imports import versions
from ..process.journal import guarded
from ..process.kept import main_thread, threads, time
from .captures import Capture
from .collectives import UnsafeError
from .stack_samples import StackSampler
from .steps import MANY_ROUNDS, NEVER, OPEN_ENDED, StepCounter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractContextManager

    from ..process.declared import AgentPlan, Foreign, TraceMarker
    from ..process.journal import Journal
    from ..process.objects import Marks, Notes
    from ..process.stack import Line
    from ..program.program import ProgramFile
    from ..program.registry import Registry
    from .captures import ProfilerApi
    from .stack_samples import Training
    from .steps import StepKind

AFTERWARDS = 200  # Steps to count after the window, for how long they take untraced; then the hooks rest
MOST_CAPTURES = 4  # Every window disturbs the run for a moment; a run of many short fits gets no more of them
FIRST_LOOK = 2  # Calls of a window after which its cost is looked at for the first time
MOST_REFUSALS = 5  # How often to ask again for a profiler that somebody else has
COMPLETE = ("steps", "time")  # Reasons of a window that has got what it was opened for
COST = "cost"  # The reason of one that has cost as much as it may

USERS_OWN = "the steps that could be traced had a profiler of the script's own, such as RunOptions.FULL_TRACE"
NO_PROFILER = "the profiler could not be started: the script did not import all of TensorFlow (import tensorflow)"
REFUSED = (
    "the profiler could not be started, most likely because another profiler was running: "
    "run only one profiler at a time ({}: {:.200})"
)

SILENT = contextlib.nullcontext()  # Stands for a marker that the framework itself has set


class State(str, enum.Enum):  # noqa: UP042  # Python 3.9 has no StrEnum
    """Where the tracing stands; the values stand in the state file."""

    WAITING = "waiting"  # for a step that is worth a window
    OPEN = "open"  # the profiler runs
    SAMPLING = "sampling"  # it runs on, for samples of the stack: nothing is measured any more
    DONE = "done"  # nothing more is traced


# In Python 3.11, to read a member of an enumeration calls Python; each step asks for some.
WAITING, OPEN, SAMPLING, DONE = State
PROFILED = (OPEN, SAMPLING)  # The states in which a profiler runs


class TraceWindow:
    """Warm-up, then so many steps of the first loop that gets there."""

    def __init__(self, plan: AgentPlan, log: Journal, registry: Registry, program: ProgramFile) -> None:
        self.plan, self.log, self.registry, self.program = plan, log, registry, program
        self.budget = program.budget = CaptureBudget()
        self.profiler: ProfilerApi | None = None
        self.graph_marks: Notes[Marks] = {}  # what is known of traced graphs
        self.lock = threads.RLock()
        self.samples = StackSampler(log, registry.given)
        self.before_open: list[Callable[[], object]] = []  # once, just before the profiler starts
        self.before_close: list[Callable[[], object]] = []  # ends of the steps under way
        # What the thread that trains is doing, where samples can separate the calls that train from the rest:
        self.training: Callable[[StepCounter], Training | None] = lambda _: None
        self.profiles: Callable[..., object] = lambda **_: None  # is told when a profiler runs, and no longer
        self.returned: Callable[[object], object] | None = None  # wants what a step returned
        self.timing: Foreign = None  # of a trial: hears of the steps, of which none is traced
        self.rests: Callable[[bool], object] = lambda _: None  # has what counts steps rest, or begin again
        # What is done meanwhile is none of the script's time:
        self.own_work: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
        self.reset()

    def reset(self) -> None:
        """Forget all steps: a new recording begins, or a fork of the process its own."""
        self.state = WAITING
        self.quiet = False
        self.sources: dict[tuple[str, Hashable], StepCounter] = {}
        self.training_keys: set[Hashable] = set()  # the datasets that train
        self.calling: object = None  # the outermost tf.function being called, by whichever thread
        # The tf.function with a training loop inside that is running: since when, and in which thread.
        self.looping: tuple[float, int] | None = None
        self.capture: Capture | None = None  # the one under way
        self.kept: Capture | None = None  # the best one so far
        self.captures = self.refusals = 0
        self.lent = 0  # calls of the script's under way that have the profiler
        self.stop: int = NEVER  # the step at which to close
        self.ask_cost: int = NEVER  # the step at which to ask whether it has cost enough
        self.deadline: float | None = None  # or the time
        self.leave = False  # --stop-after: the next step ends the run
        self.budget.clear()
        self.log.state["costs"] = self.budget.windows

    @property
    def quiet(self) -> bool:
        """Whether all is done, and enough was seen after it: no step is counted any more."""
        return self._quiet

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        self._quiet = quiet
        self.rests(quiet)

    @property
    def wanted(self) -> bool:
        """Whether steps are to be traced at all."""
        return self.timing is None and self.plan.get("trace", True)

    def rest(self) -> None:
        """Let every source count on for a while, without asking."""
        self.state = DONE
        if self.timing is not None:
            self.quiet = True
        for source in self.sources.values():
            source.alarm = NEVER if self.timing is not None else 0 if self.leave else source.seen + AFTERWARDS

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
        if self.timing is not None:
            return NEVER if self.state is DONE else 0
        resting = self.state is DONE or not self.wanted
        return AFTERWARDS if resting else self.plan["warmup"]

    @guarded("announce")
    def announce(self, source: StepCounter, total: int, k: int = 1, skip: int = 0) -> None:
        """So many more steps, `k` a call, are to come; `skip` of them build the graph."""
        if self.timing is not None:
            self.timing.announce(source, total)
        elif self.state is WAITING and total > 0:
            source.announce(total, k, skip, self.plan["warmup"], self._planned(k))

    def _planned(self, k: int) -> int:
        """Return how many steps to trace, in whole calls: fewer after a window whose profiler took too long."""
        steps = self.plan["steps"] if k == 1 else max(self.plan["steps"], FEWEST_CALLS * k)
        most = self.budget.most_steps if self.is_bounded() else None
        return steps if most is None else min(steps, -(-most // k) * k)

    def is_bounded(self) -> bool:
        """Say whether the trace is a small part of what is wanted of the run.

        It is none where it ends the run, or was asked for by time. Workers of a job are traced alike.
        """
        return not (self.plan["stop_after"] or self.plan.get("seconds") or self.log.state["rank"])

    def goes_on(self, source: StepCounter) -> bool:
        """Say whether the loop probably has steps after the window that may be sampled.

        Workers of a job wait for each other: none keeps its profiler longer than the others.
        """
        return source.goes_on(self.stop, self.plan) and not self.log.state["rank"]

    # At each call

    def arrive(self, source: StepCounter, number: int, k: int) -> TraceMarker | None:
        """A call of steps number … number+k-1 begins: open or close, and return its marker."""
        if self.timing is not None:
            self.timing.step(source, number, k)
            return None
        try:  # not `guarded`: each call of Python shows in a step of 2 ms
            with self.lock:
                return (self._marker if self.state is OPEN else self._asked)(source, number, k)
        except Exception as error:
            self.log.fault("arrive", error)
            return None

    def _asked(self, source: StepCounter, number: int, k: int) -> TraceMarker | None:
        """Open a window at this call, or prepare for one; return the marker of what is traced then."""
        if not self.wanted:
            self.quiet = True  # the account of the run has all steps
            return None
        # A call that waited while another thread closed the window asks too early:
        if self.state is DONE and not self.leave and number >= source.alarm:
            self.quiet = True
        if self.state is WAITING and number < source.opens:
            source.alarm = source.opens
            self.registry.given.prepare(source)  # what is learnt before the window costs it no time
            self.samples.prepare(self.training(source))
        elif self.state is WAITING and self._is_worth(source, number, k):
            self._open_at(source, number, k)
        if self.state is OPEN:
            return self._marker(source, number, k)
        return self._sampled(source, number, k) if self.state is SAMPLING else None

    def _is_worth(self, source: StepCounter, number: int, k: int) -> bool:
        """Say whether a window now may become better than the one there is."""
        if source.yields_to(self.sources.values()):
            return False
        if self.kept is None:
            return True
        steps = self._planned(k)
        if source.end is not None and source.rounds < MANY_ROUNDS:
            steps = min(steps, source.end - number)
        good = max(0, number + steps - max(number, self.kept.warmup))
        if (good, steps) <= self.kept.good:
            source.alarm = NEVER  # until it announces more
            return False
        few = max(FEWEST_CALLS * k, 2 * self.kept.record["steps"])
        return not (self.is_bounded() and source.waits(self.budget, number, k, min(steps, few)))

    def _marker(self, source: StepCounter, number: int, k: int) -> TraceMarker | None:
        """Return the marker of a call while the window is open; close it where it ends."""
        capture = self.capture
        if capture is None:
            return None
        if capture.source is None:
            capture.begin(source, number)
        if source is not capture.source:
            return None
        if number >= self.stop or (self.deadline and time.monotonic() >= self.deadline):
            return self._over(source, number, k, "steps" if number >= self.stop else "time")
        if number >= self.ask_cost:
            more = self.budget.more_calls(max(1, (number - capture.start) // k), k)
            self.ask_cost = number + more * k
            if not more:
                return self._over(source, number, k, COST)
        capture.calls += 1
        if not source.marks:
            return SILENT
        if self.deadline is None:
            source.marking = min(self.stop, self.ask_cost), capture
        return capture.marker(number + source.discarded, k)

    def _over(self, source: StepCounter, number: int, k: int, reason: str) -> TraceMarker | None:
        """The window has got its steps or its time: close it, or let the profiler run on for samples."""
        if reason == COST or not self.goes_on(source) or not self.samples.wanted():
            self.close(reason, number)
            return None
        with self.own_work():
            self._end_measuring(reason, number)
            self.program.keep()
        self.state = SAMPLING
        self.samples.hurry()
        return self._sampled(source, number, k)

    def _sampled(self, source: StepCounter, number: int, k: int) -> TraceMarker | None:
        """Return the marker of a call that is sampled and not measured; close the window after enough of them."""
        capture = self.capture
        if capture is None or source is not capture.source:
            return None
        most = source.most_sampled(self.stop, self.stop - capture.start)
        if number >= self.stop + most or not self.samples.wanted():
            self.close("steps")
            return None
        return capture.sampled(number + source.discarded, k)

    def retract(self, number: int) -> None:
        """A marker of this number stood for no step."""
        if self.capture is not None:
            self.capture.retract(number, measured=self.state is OPEN)

    # Opening

    @guarded("open")
    def open_for(self, source: StepCounter | None, seconds: float) -> None:
        """Trace for a time, whatever is seen meanwhile."""
        with self.lock:
            if self.wanted and self.state is WAITING:
                with self.own_work():
                    if self._start(source, seconds) is not None:
                        self.save()

    def _open_at(self, source: StepCounter, number: int, k: int) -> None:
        if self.lent:
            source.alarm = source.seen
            self._lacks(USERS_OWN)
            return
        with self.own_work():
            capture = self._start(source, self.plan.get("seconds"))
            if capture is None:
                return
            first = number
            if not source.marks:  # the framework has begun its marker already: the next is the first
                first, capture.calls = number + k, -1
            capture.begin(source, first)
            self.stop = NEVER if self.deadline else first + self._planned(k)
            if self.is_bounded():
                self.ask_cost = first + FIRST_LOOK * k
            self.registry.given.begin(source)
            self.registry.choices.checking_ns, self.registry.choices.timing = 0, True
            self.samples.begin(self.training(source), more_to_come=self.goes_on(source))
            self.save()

    def _start(self, source: StepCounter | None, seconds: float | None) -> Capture | None:
        before, self.before_open = self.before_open, []
        for prepare in before:
            prepare()
        if self.profiler is None:
            self._refused(source, NO_PROFILER)
            return None
        began = time.perf_counter()
        try:
            capture = self.new_capture(self.profiler, source)
            capture.profile()
        except UnsafeError as error:
            self._refused(source, str(error))
            return None
        except Exception as error:  # AlreadyExistsError: somebody else profiles, and was first
            self._refused(source, REFUSED.format(type(error).__name__, str(error)))
            return None
        self.opened(capture)
        self.budget.opens(time.perf_counter() - began, source.usual_s() if source else None)
        if seconds:
            self.deadline = time.monotonic() + seconds
        self.registry.unused_gradients.rest()
        self.profiles(running=True)
        return capture

    def new_capture(self, profiler: ProfilerApi, source: StepCounter | None = None) -> Capture:
        """Return the next capture."""
        return Capture(profiler, self.log.out, self.captures, self.plan["warmup"], source)

    def opened(self, capture: Capture) -> None:
        """A profiler is running."""
        self.state, self.capture = OPEN, capture
        self.captures += 1
        self.stop, self.ask_cost, self.deadline = NEVER, NEVER, None
        if capture.source is None:
            for source in self.sources.values():
                source.alarm = 0
        for lacking in ("trace", "window"):
            self.log.forgive(lacking)

    def _refused(self, source: StepCounter | None, why: str) -> None:
        """Leave the profiler to whoever has it, and ask again later."""
        self.refusals += 1
        if source is not None:
            source.alarm = source.seen + self.plan["steps"]
        if self.refusals >= MOST_REFUSALS:
            self.rest()
        self._lacks(why)
        self.save()

    def _lacks(self, why: str) -> None:
        if self.kept is None:
            self.log.forgive("trace")
            self.log.missing("trace", why)

    # Closing

    @guarded("close")
    def close(self, reason: str, reached: int | None = None) -> None:
        """Stop the profiler, at a step if that is known; a second call does nothing."""
        if self.timing is not None:
            self.timing.over()
        with self.lock:
            if self.state not in PROFILED or not self.log.ours():
                return
            with self.own_work():
                if self.state is OPEN:  # a call that is sampled may go on, in another thread
                    self._end_measuring(reason, reached)
                self._stop()

    def _end_measuring(self, reason: str, reached: int | None) -> None:
        """End the steps under way, and what is measured in them."""
        for end in self.before_close:
            end()
        self.samples.measured()
        self.registry.choices.timing = False
        capture = self.capture
        if capture is None:
            return
        source = capture.source
        if source:
            source.marking = None
        if reached is None:
            reached = source.seen if source else 0
        reached = min(reached, self.stop)
        reason = "steps" if reached == self.stop else reason
        open_ended = source is not None and source.kind in OPEN_ENDED and reason not in COMPLETE
        capture.end(reached, reason, open_ended=open_ended)
        if not capture.borrowed:
            self.budget.measured(capture.record["steps"], reason)

    def _stop(self) -> None:
        self.profiles(running=False)
        self.samples.end()
        capture, sampled = self.capture, self.state is SAMPLING
        self.state = WAITING
        if capture is None:
            return
        began = time.perf_counter()
        try:
            if sampled:
                capture.finish()  # the last of the calls that were sampled ends here
            capture.stop()
        except Exception as error:  # for example: the recording's folder is gone
            self.log.fault("profiler.stop", error)
            self.log.missing("trace", f"the trace could not be written: {error}")
        if not capture.borrowed:
            self.budget.stops(time.perf_counter() - began)
        self._choose(capture)
        self.program.kept = None  # it is described, or not needed

    def _choose(self, capture: Capture) -> None:
        """Keep the better of this capture and the one before; search on unless it has all it was to have."""
        traced = capture.traced()
        better = traced and (self.kept is None or capture.good > self.kept.good)
        if better or self.kept is None:  # of one without a trace, what was tried: a note says why it failed
            self.log.state["window"] = capture.record
        if better:
            self.kept = capture
        capture.leave(keep=better)
        by = capture.record["stopped_by"]
        complete = by in COMPLETE or (self.deadline is not None and by == COST)
        self.capture = None
        self.leave = bool(self.plan["stop_after"] and complete)
        best = complete and not capture.record["contains_warmup"]  # no other could be better
        best = best or capture.good[0] >= self.plan["steps"]
        if best or self.captures >= MOST_CAPTURES or self.leave:
            self.rest()
        elif capture.source is not None:
            capture.source.alarm = max(capture.source.seen, self.plan["warmup"])
        if better:
            self.program.describe(last=self.state is DONE)
        self.save()

    def borrowed(self) -> bool:
        """Say whether the profiler that runs is the user's."""
        return self.capture is not None and self.capture.borrowed

    def _traces(self, source: StepCounter) -> bool:
        """Say whether our profiler traces this source at the moment."""
        capture = self.capture
        return self.state in PROFILED and capture is not None and capture.source is source and not capture.borrowed

    def loop_over(self, source: StepCounter) -> None:
        """A loop was left before its window was full."""
        if self.timing is not None:
            self.timing.loop_over(source)
        elif self._traces(source):
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
        if self.capture is not None:
            self.capture.unnumbered.end()  # the window is the parent's
        self.lock = threads.RLock()
        self.reset()
        if used:
            self.rest()

    # What the state file says

    def save(self) -> None:
        """Bring the state file up to date."""
        capture, state = self.kept or self.capture, self.log.state
        state["state"] = self.state.value
        state["steps"] = self._steps(capture)
        if capture is not None:
            state["window"] = capture.record
        state["versions"] = versions()
        self.log.write()

    def _steps(self, capture: Capture | None) -> dict[str, object]:
        """Return which loop was traced, or is the likeliest to be, and all candidates."""
        chosen = capture.source if capture else None
        if chosen is None:
            chosen = max(self.sources.values(), key=lambda source: source.seen, default=None)
        loops = [loop for loop in self.sources.values() if loop is chosen or loop.calls > 1]
        return {
            "source": chosen.kind.value if chosen else None,
            "at": chosen.at if chosen else None,
            "seen": chosen.seen if chosen else 0,
            "rounds": chosen.rounds if chosen else 0,
            "seen_all": not self.quiet,
            "candidates": [loop.summary() for loop in loops],
            "discarded": capture.discarded if capture else [],
            "untraced": chosen.untraced() if chosen else None,
            "gradients": self.registry.unused_gradients.describe(),
        }
