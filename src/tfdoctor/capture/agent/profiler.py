"""TensorFlow's profiler: our session of it, and the user's own, which always comes first."""

import functools
import os
import time

from . import collectives
from .captures import Take
from .frames import hide
from .journal import quietly

PROFILER = "tensorflow.python.profiler.profiler_v2"


class Session:
    """A running profiler of ours, and the markers that tell it where steps are."""

    borrowed = False

    def __init__(self, api):
        from tensorflow.python.profiler.trace import Trace

        self.api = api
        self.trace = Trace
        self.stopped_ns = None
        self.unnumbered = collectives.Unnumbered()

    @classmethod
    def start(cls, api, out):
        """Start recording into the folder `out`."""
        if api["module"]._profiler is not None:
            raise RuntimeError("another profiler is running")
        session = cls(api)
        session.unnumbered.begin()
        try:
            api["start"](out)
        except Exception:
            session.unnumbered.end()
            # Refused by a profiler server's session: TensorFlow keeps a dead object that would
            # refuse every later start of the user's. Dropping it writes nothing.
            if api["module"]._profiler is not None:
                api["stop"](save=False)
            raise
        return session

    def marker(self, name, number, k):
        """Open the marker of a call: `_r` makes it a root, which is what the analysers ask for."""
        return self.trace(name, step_num=number, _r=1, steps=k)

    def finish(self):
        """Say when the last step was over, by an empty event."""
        with self.trace("tfdoctor_end"):
            self.stopped_ns = time.time_ns()

    def stop(self, take):  # noqa: ARG002  # the profiler knows where to write
        """Stop and write the trace."""
        self.finish()
        try:
            self.api["stop"]()
        finally:
            self.unnumbered.end()


class Borrowed(Session):
    """The user's running profiler: it gets our markers, and we a copy of what it writes."""

    borrowed = True

    def __init__(self, api, logdir):
        super().__init__(api)
        self.logdir = os.path.abspath(os.fspath(logdir))
        self.began = time.time()

    def stop(self, take):
        """Take over what the user's profiler has written by now."""
        take.adopt(self.logdir, self.began)


class Lending:
    """What happens to the window while the user's own profiler is at work."""

    def __init__(self, window):
        self.window = window
        for name in ("give_way", "lent", "ending", "ended"):
            setattr(self, name, quietly("user's profiler", window.log)(getattr(self, "_" + name)))

    def _give_way(self):
        """The user starts a profiler: ours stops."""
        self.window.interrupted |= self.window.state == "open"
        self.window.close("user-profiler")

    def _lent(self, logdir):
        """The user's profiler is running: mark its steps, and use its trace."""
        window = self.window
        with window.lock:
            if window.state == "waiting" and logdir:
                take = Take(window.log.out, window.takes, None, window.plan["warmup"])
                take.record["profiler"] = "user"
                window.opened(take, Borrowed(window.profiler, logdir))

    def _ending(self):
        """The user's profiler is about to stop: nothing is marked after this."""
        if self._borrowing():
            self.window.session.finish()

    def _ended(self):
        """The user's profiler has written its trace."""
        if self._borrowing():
            self.window.close("user-profiler")

    def _borrowing(self):
        return self.window.session is not None and self.window.session.borrowed


def hooks(window):
    """Learn of the profiler when TensorFlow brings it, and yield it when the user wants it."""

    def patch(module):
        start, stop = module.start, module.stop
        window.profiler = {"module": module, "start": start, "stop": stop}
        lending = Lending(window)

        @functools.wraps(start)
        def users_start(logdir, *args, **kwargs):
            lending.give_way()
            result = start(logdir, *args, **kwargs)
            lending.lent(logdir)
            return result

        @functools.wraps(stop)
        def users_stop(*args, **kwargs):
            lending.ending()
            try:
                return stop(*args, **kwargs)
            finally:
                lending.ended()

        module.start, module.stop = hide(users_start), hide(users_stop)
        if window.plan.get("seconds"):
            window.watch.begin()

    return {PROFILER: [patch]}
