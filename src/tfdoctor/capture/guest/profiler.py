"""TensorFlow's profiler: our session of it, and the way to make room for the user's own."""

import functools
import time

from .frames import hide
from .journal import quietly

PROFILER = "tensorflow.python.profiler.profiler_v2"


class Session:
    """A running profiler, and the markers that tell it where steps are."""

    def __init__(self, api):
        from tensorflow.python.profiler.trace import Trace

        self.api = api
        self.trace = Trace
        self.stopped_ns = None

    @classmethod
    def start(cls, api, out):
        """Start recording into the folder `out`."""
        if api["module"]._profiler is not None:
            raise RuntimeError("another profiler is running")
        session = cls(api)
        try:
            api["start"](out)
        except Exception:
            # Refused by a profiler server's session: TensorFlow keeps a dead object that would
            # refuse every later start of the user's. Dropping it writes nothing.
            if api["module"]._profiler is not None:
                api["stop"](save=False)
            raise
        return session

    def marker(self, name, number, k):
        """Open the marker of a call: `_r` makes it a root, which is what the analysers ask for."""
        return self.trace(name, step_num=number, _r=1, steps=k)

    def stop(self):
        """Stop and write the trace; an empty event says when the last step was over."""
        with self.trace("tfdoctor_end"):
            self.stopped_ns = time.time_ns()
        self.api["stop"]()


def hooks(window):
    """Learn of the profiler when TensorFlow brings it, and yield it when the user wants it."""

    def patch(module):
        start, stop = module.start, module.stop
        window.profiler = {"module": module, "start": start, "stop": stop}
        give_way = quietly("user's profiler", window.log)(lambda: window.close("user-profiler"))

        @functools.wraps(start)
        def users_start(*args, **kwargs):
            if window.state == "open":
                give_way()
            return start(*args, **kwargs)

        module.start = hide(users_start)

    return {PROFILER: [patch]}
