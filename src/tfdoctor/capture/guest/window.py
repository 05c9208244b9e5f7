"""The traced window: which steps, when the profiler starts and when it stops."""

import sys
import threading
import time

from .journal import quietly
from .profiler import Session
from .steps import NEVER, Source

FEWEST_CALLS = 5
"""With several steps a call, a window of `--steps` alone could hold a single call."""


class Window:
    """Warm-up, then so many steps of the first source that gets there."""

    def __init__(self, plan, log, registry):
        self.plan, self.log, self.registry = plan, log, registry
        self.state = "waiting"  # waiting, open, done or refused
        self.start, self.stop = plan["warmup"], plan["warmup"] + plan["steps"]
        self.owner = self.session = self.profiler = None
        self.sources = {}
        self.training_keys = set()
        self.calling = None  # the outermost tf.function being called, by whichever thread
        self.calls = 0
        self.discarded = []
        self.leave = False  # --stop-after: the next step ends the run
        self.record = None
        self.arrive = quietly("step", log)(self._arrive)
        self.close = quietly("end of the window", log)(self._close)
        self.before_open = []  # called once, just before the profiler starts
        self.before_close = []  # called once, just before it stops

    def source(self, name):
        """Return the counter of one way to see steps."""
        if name not in self.sources:
            self.sources[name] = Source(name, self)
        return self.sources[name]

    def announce(self, source, total, k=1, skip=0):
        """`total` more steps, `k` a call, are to come: fit the window into them.

        `skip` steps build the graph; they are only traced when there are no others.
        """
        if self.state != "waiting" or not total or total < 0:
            return
        planned = self._planned(k)
        done, end = source.seen, source.seen + total
        first = max(self.plan["warmup"], done)
        if end < first + planned:
            earliest = done + skip if total > skip else done
            first = max(earliest, min(first, end - planned))
        source.alarm = first

    def _planned(self, k):
        """Return how many steps to trace when a call takes k of them."""
        return self.plan["steps"] if k == 1 else max(self.plan["steps"], FEWEST_CALLS * k)

    def _arrive(self, source, number, k):
        """A call of steps number … number+k-1 begins: open or close, and return its marker."""
        if self.state == "waiting":
            self._open(source, number, k)
        if self.state != "open" or source is not self.owner:
            return None
        if number >= self.stop:
            self._close("steps")
            return None
        self.calls += 1
        return self.session.marker("train", number + source.discarded, k)

    def _open(self, source, number, k):
        """Start the profiler; the recording keeps why it could not."""
        self.owner, self.state = source, "open"
        self.start, self.stop = number, number + self._planned(k)
        for prepare in self.before_open:
            prepare()
        try:
            self.session = Session.start(self.profiler, self.plan["out"])
        except Exception as error:  # AlreadyExistsError: the user profiles, and was first
            self._refuse(error)
            return
        self.record = {
            "warmup": number,
            "steps": 0,
            "first_step": number,
            "calls": 0,
            "source": source.name,
            "started_unix_ns": time.time_ns(),
            "stopped_unix_ns": None,
            "contains_warmup": number < self.plan["warmup"],
            "stopped_by": "unfinished",
        }
        self.log.state["window"] = self.record
        self.save()

    def _refuse(self, error):
        """Leave the profiler to whoever has it."""
        self.state = "refused"
        self.log.missing(
            "trace",
            "the profiler could not be started, most likely because the script profiles itself: "
            "switch that off (profile_batch=0 of the TensorBoard callback) and record again "
            f"({type(error).__name__}: {str(error)[:200]})",
        )
        self._rest()
        self.save()

    def _close(self, reason):
        """Stop the profiler and write what was learnt; a second call does nothing."""
        if self.state != "open" or not self.log.ours():
            return
        for prepare in self.before_close:
            prepare()
        self.state = "done"
        self._rest()
        reached = min(self.owner.seen, self.stop)
        reason = "steps" if reached == self.stop else reason
        self.record.update(
            steps=reached - self.start,
            calls=self.calls,
            stopped_by=reason,
        )
        try:
            self.session.stop()
        except Exception as error:  # for example: the recording's folder is gone
            self.log.fault("profiler.stop", error)
            self.log.missing("trace", f"the trace could not be written: {error}")
        self.record["stopped_unix_ns"] = self.session.stopped_ns
        self.registry.write()
        self.leave = self.plan["stop_after"] and reason in ("steps", "end-of-fit")
        self.save()

    def _rest(self):
        """Let every source count on without asking."""
        for source in self.sources.values():
            source.alarm = NEVER

    def resting(self):
        """Say whether no window can come any more."""
        return self.state in ("done", "refused")

    def depart(self):
        """Raise SystemExit in the user's main thread when `--stop-after` asked for it."""
        self.leave = False
        if threading.current_thread() is threading.main_thread():
            self.log.state["stopped_after"] = True
            self.save()
            sys.exit(0)
        self.log.missing("stop", "--stop-after had no effect: training is not in the main thread")

    def save(self):
        """Bring the state file up to date."""
        chosen = self.owner or max(
            self.sources.values(), key=lambda source: source.seen, default=None
        )
        self.log.state["steps"] = {
            "source": chosen.name if chosen else None,
            "seen": chosen.seen if chosen else 0,
            "candidates": [each.summary() for each in self.sources.values() if each.seen],
            "discarded": self.discarded,
            "untraced": chosen.untraced() if chosen else None,
        }
        self.log.state["versions"] = versions()
        self.log.write()


def versions():
    """Return the versions of what the script has imported."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for name in ("tensorflow", "keras", "numpy"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            found[name] = version
    build = getattr(sys.modules.get("tensorflow.python.platform.build_info"), "build_info", {})
    for name in ("cuda", "cudnn"):
        if build.get(f"{name}_version"):
            found[name] = str(build[f"{name}_version"])
    return found
