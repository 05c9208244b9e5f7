"""Where Python is between the calls that train: looked at while the window is open, and only then.

A thread of our own looks at the trainer's stack some hundred times a second at most. It counts lines; how long
the time between two calls is, the trace tells.
"""

import collections
import gc
import sys
import threading
import time

from .journal import quietly
from .stack import user_file

EVERY_S = 0.008
"""The mean time between two looks."""

AT_MOST = 250
"""A look is followed by so many times its own duration of rest: 0.4 % of one core."""

SWITCH_S = 0.0005
"""Python hands over after 5 ms otherwise: a loop of shorter steps would only be seen where it waits."""

USUAL_SWITCH_S = 0.005

MOST_PLACES = 1000


class Whereabouts:
    """What the trainer's thread was at, by place."""

    def __init__(self, window):
        self.window = window
        self.over = None  # set when the present window is
        self.clear()
        self.begin = quietly("whereabouts", window.log)(self._begin)
        self.end = quietly("whereabouts", window.log)(self._end)

    def clear(self):
        """A window opens: nothing was seen yet."""
        self.inside, self.places = 0, collections.Counter()
        self.collected_ns, self.collecting = 0, None

    def _begin(self, source=None):
        """Look at this thread from now on; a session's calls are not told from what lies between."""
        self.clear()
        if self.window.local is None or (source is not None and source.name == "session-run"):
            return
        self.over = threading.Event()
        self.switch = None
        arguments = self.over, threading.get_ident(), self.window.local.loops
        alone = threading.active_count() <= 2  # the trainer, and the watch of ours  # noqa: PLR2004
        if alone and abs(sys.getswitchinterval() - USUAL_SWITCH_S) < SWITCH_S:
            self.switch = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_S)
        gc.callbacks.append(self._collect)
        threading.Thread(
            target=quietly("whereabouts", self.window.log)(self._run),
            args=arguments,
            name="tfdoctor-whereabouts",
            daemon=True,
        ).start()

    def _end(self):
        """The window closes."""
        if self.over is None:
            return
        self.over.set()
        self.over = None
        gc.callbacks.remove(self._collect)
        if self.switch is not None:
            sys.setswitchinterval(self.switch)

    def _run(self, over, thread, loops):
        """Look, and rest; the rests differ so that they keep no time with the steps."""
        phase, rest = 0.0, EVERY_S
        while not over.wait(rest * (0.5 + phase)):
            began = time.thread_time()
            self._look(thread, loops)
            rest = max(EVERY_S, AT_MOST * (time.thread_time() - began))
            phase = (phase + 0.618) % 1.0

    def _look(self, thread, loops):
        if loops.running or loops.depth or loops.function is not None:
            self.inside += 1
            return
        frame = sys._current_frames().get(thread)
        if frame is not None and len(self.places) < MOST_PLACES:
            self.places[place(frame, self.window.fed.code)] += 1

    def _collect(self, phase, _):
        """Python's garbage collector begins or ends."""
        if phase == "start":
            self.collecting = time.perf_counter_ns()
        elif self.collecting is not None:
            self.collected_ns += time.perf_counter_ns() - self.collecting
            self.collecting = None

    def describe(self):
        """Return what was seen, most often first."""
        loop = self.window.fed.makers()
        return {
            "inside": self.inside,
            "collecting_ms": round(self.collected_ns / 1e6, 3),
            "places": [_plain(one, count, loop) for one, count in self.places.most_common(50)],
            "fed": self.window.fed.told,
        }


def place(frame, code):
    """Return (line, line in the loop's own frame, callback) of a stack; each may be None."""
    line = looped = callback = None
    while frame is not None:
        path = user_file(frame.f_code.co_filename)
        if path is not None and line is None:
            line = (path, frame.f_lineno)
        if code is not None and frame.f_code is code:
            looped = frame.f_lineno
        callback = callback or _callback(frame)
        frame = frame.f_back
    return line, looped, callback


def _callback(frame):
    """Return 'Class.on_something' when a Keras callback runs in a frame."""
    name = frame.f_code.co_name
    if not name.startswith("on_"):
        return None
    kind = type(frame.f_locals.get("self"))
    bases = [each.__name__ for each in kind.__mro__]
    wanted = "Callback" in bases and kind.__name__ != "CallbackList"
    return f"{kind.__name__}.{name}" if wanted else None


def _plain(found, count, loop):
    line, looped, callback = found
    makes = None
    if loop is not None and looped is not None:
        makes = any(first <= looped <= last for first, last in loop)
    return {"at": list(line) if line else None, "callback": callback, "makes": makes, "seen": count}
