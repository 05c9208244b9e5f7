"""The traced window: which loop, which of its steps, when the profiler starts and when it stops.

A window that got all its steps after the warm-up is the recording. One that had to make do with less
(a short first fit) is kept until a better one comes.
"""

import sys
import threading
import time
import weakref

from . import state
from .captures import Take
from .feeding import Fed
from .journal import quietly
from .profiler import Session
from .stack_samples import Whereabouts
from .steps import NEVER, OPEN_ENDED, Source
from .watch import Watch

FEWEST_CALLS = 5
"""With several steps a call, a window of `--steps` alone could hold a single call."""

MOST_TAKES = 4
"""Every window disturbs the run for a moment; a run of many short fits gets no more of them."""

MANY_ROUNDS = 3
"""A fit that is entered so often is itself inside a loop, and the window may outlast it."""

MOST_REFUSALS = 5
"""How often to ask again for a profiler that somebody else has."""


AFTERWARDS = 200
"""Steps to count after the window, for how long they take untraced; then the hooks rest."""


class Window:
    """Warm-up, then so many steps of the first loop that gets there."""

    def __init__(self, plan, log, registry):
        self.plan, self.log, self.registry = plan, log, registry
        log.window = self  # whoever begins and ends recordings in this process finds it there
        self.lock = threading.RLock()
        self.profiler = None
        self.graph_marks = weakref.WeakKeyDictionary()  # what is known of traced graphs
        self.local = None  # the loops of each thread: set by tf_hooks
        self.trainers = []  # those of each Keras: set by keras_loop
        self.watch = Watch(self)
        self.fed, self.whereabouts = Fed(self), Whereabouts(self)
        registry.python = self.whereabouts.describe
        self.before_open = []  # called once, just before the profiler starts
        self.before_close = []  # called each time, just before it stops
        for name in ("arrive", "close", "announce"):
            setattr(self, name, quietly(name, log)(getattr(self, "_" + name)))
        self.reset()

    def reset(self):
        """Forget all steps: a new recording begins, or a fork of the process its own."""
        self.state = "waiting"  # waiting, open or done
        self.quiet = False  # done, and enough was seen after it: hooks do nothing any more
        self.sources = {}
        self.training_keys = set()
        self.calling = None  # the outermost tf.function being called, by whichever thread
        self.running = None  # (marks, since, thread) of what trains and is running now
        self.session = self.take = self.kept = None
        self.takes = self.refusals = 0
        self.interrupted = False  # the script's own profiler cut a window of ours short
        self.stop, self.deadline = NEVER, None
        self.leave = False  # --stop-after: the next step ends the run

    def first_alarm(self):
        """Return the step at which a new source asks for the first time."""
        if self.state == "open" and self.take.source is None:
            return 0
        return AFTERWARDS if self.state == "done" else self.plan["warmup"]

    def source(self, name, key=None, at=None):
        """Return the counter of one loop; `key` tells loops of a kind apart, `at` finds its line."""
        found = self.sources.get((name, key))
        if found is None:
            found = self.sources[name, key] = Source(name, self, at and at())
        return found

    def _announce(self, source, total, k=1, skip=0):
        """`total` more steps, `k` a call, are to come: fit the window into them.

        `skip` steps build the graph; they are only traced when there are no others.
        """
        if self.state != "waiting" or not total or total < 0:
            return
        planned = self._planned(k)
        done, end = source.seen, source.seen + total
        source.end = end
        first = max(self.plan["warmup"], done)
        if end < first + planned and source.rounds < MANY_ROUNDS:
            earliest = done + skip if total > skip else done
            first = max(earliest, min(first, end - planned))
        source.alarm = max(0, first if source.marks else first - k)

    def _planned(self, k):
        """Return how many steps to trace when a call takes k of them."""
        return self.plan["steps"] if k == 1 else max(self.plan["steps"], FEWEST_CALLS * k)

    def _arrive(self, source, number, k):
        """A call of steps number … number+k-1 begins: open or close, and return its marker."""
        with self.lock:
            self.quiet = self.state == "done" and not self.leave
            if self.state == "waiting" and self._worth(source, number, k):
                self._open(source, number, k)
            if self.state != "open":
                return None
            if self.take.source is None:
                self.take.begin(source, number)
            if source is not self.take.source:
                return None
            if number >= self.stop or (self.deadline and time.monotonic() >= self.deadline):
                self._close("steps" if number >= self.stop else "time", number)
                return None
            self.take.stepped()
            if not source.marks:
                return SILENT
            return self.session.marker("train", number + source.discarded, k)

    def _worth(self, source, number, k):
        """Say whether a window now may become better than the one there is."""
        if source.yields_to(self.sources.values()):
            return False
        if self.kept is None:
            return True
        planned = self._planned(k)
        left = planned if source.end is None else min(planned, source.end - number)
        if source.rounds >= MANY_ROUNDS:
            left = planned
        good = max(0, number + left - max(number, self.plan["warmup"]))
        if (good, left) > self.kept.good:
            return True
        source.alarm = NEVER  # until it announces more
        return False

    # Opening

    def _open(self, source, number, k):
        """Trace from this step on."""
        if self.plan.get("seconds"):
            self._start(source, self.plan["seconds"])
        else:
            self._start(source, None)
        if self.state != "open":
            return
        first = number
        if (
            not source.marks
        ):  # the framework has begun its marker already: the next one is the first
            first, self.take.calls = number + k, -1
        self.take.begin(source, first)
        self.stop = NEVER if self.deadline else first + self._planned(k)
        self.fed.begin()
        self.whereabouts.begin(source)
        self.save()

    def open_for(self, source, seconds):
        """Trace for a time, whatever is seen meanwhile; `source` may be None."""
        with self.lock:
            if self.state == "waiting":
                self._start(source, seconds)
                if self.state == "open":
                    self.save()

    def _start(self, source, seconds):
        """Start the profiler; the recording keeps why it could not."""
        prepare, self.before_open = self.before_open, []
        for each in prepare:
            each()
        take = Take(self.log.out, self.takes, source, self.plan["warmup"])
        try:
            session = Session.start(self.profiler, take.folder)
        except Exception as error:  # AlreadyExistsError: somebody else profiles, and was first
            self._refused(source, error)
            return
        self.opened(take, session)
        if seconds:
            self.deadline = time.monotonic() + seconds
        self.watch.begin()

    def opened(self, take, session):
        """A profiler is running."""
        self.take, self.session, self.state = take, session, "open"
        self.takes += 1
        self.stop, self.deadline = NEVER, None
        if take.source is None:
            for each in self.sources.values():
                each.alarm = 0
        self._forgive()

    def _forgive(self):
        """There is a trace now: what was said of its absence no longer holds."""
        missing = self.log.state["missing"]
        missing[:] = [entry for entry in missing if entry["what"] != "trace"]

    def _refused(self, source, error):
        """Leave the profiler to whoever has it, and ask again later."""
        self.refusals += 1
        if source is not None:
            source.alarm = source.seen + self.plan["steps"]
        if self.refusals >= MOST_REFUSALS:
            self._rest()
        if self.kept is None:
            self._forgive()
            self.log.missing("trace", state.refusal(error))
        self.save()

    # Closing

    def _close(self, reason, reached=None):
        """Stop the profiler and write what was learnt; a second call does nothing."""
        with self.lock:
            if self.state != "open" or not self.log.ours():
                return
            for each in self.before_close:
                each()
            self.whereabouts.end()
            take, session = self.take, self.session
            source = take.source
            if reached is None:
                reached = source.seen if source else 0
            reached = min(reached, self.stop)
            reason = "steps" if reached == self.stop else reason
            if source and source.name in OPEN_ENDED and reason not in ("steps", "time"):
                take.drop_last()
            self.state = "waiting"
            try:
                session.stop(take)
            except Exception as error:  # for example: the recording's folder is gone
                self.log.fault("profiler.stop", error)
                self.log.missing("trace", f"the trace could not be written: {error}")
            take.end(reached, reason, session.stopped_ns or time.time_ns())
            self._choose(take, complete=reason in ("steps", "time"))

    def _choose(self, take, *, complete):
        """Keep the better of this take and the one before; go on looking unless it is complete."""
        full = complete and not take.record["contains_warmup"]
        full = full or take.good[0] >= self.plan["steps"]
        better = self.kept is None or take.good > self.kept.good
        if take.traced() and better:
            take.keep()
            self.kept = take
            self.log.state["window"] = take.record
        elif self.kept is None and not take.traced():
            self.log.state["window"] = take.record  # what was tried, and log.missing why it failed
            take.drop()
        else:
            take.drop()
        self.take = self.session = None
        self.leave = bool(self.plan["stop_after"] and complete)
        if full or self.takes >= MOST_TAKES or self.leave:
            self._rest()
        elif take.source is not None:
            take.source.alarm = max(take.source.seen, self.plan["warmup"])
        if self.kept is take:
            self.registry.describe(last=self.state == "done")
        self.save()

    def _rest(self):
        """Let every source count on for a while, without asking."""
        self.state = "done"
        for source in self.sources.values():
            source.alarm = 0 if self.leave else source.seen + AFTERWARDS

    def retract(self, number):
        """A marker of this number stood for no step."""
        if self.take is not None:
            self.take.calls -= 1
            self.take.discarded.append(number)

    def loop_over(self, source):
        """A loop was left before its window was full."""
        if self.state == "open" and self.take.source is source and not self.session.borrowed:
            self.close("end-of-loop")

    def fit_over(self, source, reason):
        """A fit has returned: the window does not outlive it, unless fits are what is repeated."""
        mine = self.state == "open" and source is not None and self.take.source is source
        if (
            mine
            and not self.session.borrowed
            and (source.rounds < MANY_ROUNDS or reason != "end-of-fit")
        ):
            self.close(reason)

    # The end

    def depart(self):
        """Raise SystemExit in the user's main thread when `--stop-after` asked for it."""
        self.leave = False
        self._rest()
        if threading.current_thread() is threading.main_thread():
            self.log.state["stopped_after"] = True
            self.save()
            sys.exit(0)
        self.log.missing("stop", "--stop-after had no effect: training is not in the main thread")

    def reset_after_fork(self):
        """A fork that was made before TensorFlow was in use trains for itself; others stay silent."""
        used = self.state != "waiting" or any(each.seen for each in self.sources.values())
        self.lock = threading.RLock()
        self.reset()
        if used:
            self._rest()

    def over(self):
        """The recording ends before its process does: say all there is to say, and rest."""
        self.registry.write()
        self.log.state["finished"] = True
        self.save()
        self._rest()
        self.quiet = self.registry.written = True
        self.log.pid = None  # what comes now belongs to no recording

    def again(self, plan):
        """Begin another recording in this process."""
        self.plan = plan
        self.log.processes = plan["processes"]
        self.log.begin()
        self.registry.again()
        self.reset()
        self.before_close = []
        self.local = type(self.local)(self)  # of all threads
        self.watch.working_since = None
        if plan.get("seconds"):
            self.watch.begin()
        self.save()

    def save(self):
        """Bring the state file up to date."""
        state.fill(self)
        self.log.write()


class Silent:
    """Stands for a marker that the framework itself has set."""

    def __exit__(self, *_):
        """Leave it to the framework."""


SILENT = Silent()
