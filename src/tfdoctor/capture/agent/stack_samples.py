"""Where Python is between the calls that train: sampled while the window is open, and only then.

A thread of our own reads the trainer's stack some hundred times a second at most. It counts lines; how long
the time between two calls is, the trace shows.
"""

from __future__ import annotations

import collections
import gc
import sys
import threading
import time

from .journal import guarded
from .stack import user_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, FrameType
    from typing import Protocol

    from .argument_lines import Span
    from .feeding import CallArguments
    from .journal import Journal
    from .stack import Line

    class Training(Protocol):
        """What a thread is doing: inside a call that trains, or between two of them."""

        running: bool
        depth: int
        function: object

    # The user's line, the line in the loop's own frame, and the callback; each may be None.
    Place = tuple[Line | None, int | None, str | None]

EVERY_S = 0.008
"""The mean time between two samples."""

AT_MOST = 250
"""A sample is followed by so many times its own duration of rest: 0.4 % of one core."""

SWITCH_S = 0.0005
"""Python hands over after 5 ms otherwise: a loop of shorter steps would only be seen where it waits."""

USUAL_SWITCH_S = 0.005

MOST_PLACES = 1000

TRAINER_AND_WATCH = 2
"""The threads of a run that has none of its own."""


class StackSampler:
    """Where the trainer's thread was, by place."""

    def __init__(self, log: Journal, arguments: CallArguments) -> None:
        self.log, self.arguments = log, arguments
        self.over: threading.Event | None = None  # set when the present window is
        self.switch: float | None = None  # the interval to restore
        self.clear()

    def clear(self) -> None:
        """A window opens: nothing was seen yet."""
        self.inside = 0
        self.places: collections.Counter[Place] = collections.Counter()
        self.collected_ns = 0
        self.collecting: int | None = None  # when the garbage collection under way began

    @guarded("stack samples")
    def begin(self, training: Training | None) -> None:
        """Sample this thread from now on, unless its calls cannot be separated from what lies between."""
        self.clear()
        if training is None:
            return
        self.over = threading.Event()
        self._switch_faster()
        gc.callbacks.append(self._collect)
        threading.Thread(
            target=self._run,
            args=(self.over, threading.get_ident(), training),
            name="tfdoctor-stack-samples",
            daemon=True,
        ).start()

    def _switch_faster(self) -> None:
        """Have Python hand over more often, where the script has no threads and no wish of its own."""
        self.switch = None
        alone = threading.active_count() <= TRAINER_AND_WATCH
        if alone and abs(sys.getswitchinterval() - USUAL_SWITCH_S) < SWITCH_S:
            self.switch = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_S)

    @guarded("stack samples")
    def end(self) -> None:
        """Stop sampling when the window closes, and restore the interval at which threads switch."""
        if self.over is None:
            return
        self.over.set()
        self.over = None
        gc.callbacks.remove(self._collect)
        if self.switch is not None:
            sys.setswitchinterval(self.switch)

    @guarded("stack samples")
    def _run(self, over: threading.Event, thread: int, training: Training) -> None:
        """Sample, and rest; the rests differ so that they keep no time with the steps."""
        phase, rest = 0.0, EVERY_S
        while not over.wait(rest * (0.5 + phase)):
            began = time.thread_time()
            self.sample(thread, training)
            rest = max(EVERY_S, AT_MOST * (time.thread_time() - began))
            phase = (phase + 0.618) % 1.0

    def sample(self, thread: int, training: Training) -> None:
        """Count where a thread is at this moment."""
        if training.running or training.depth or training.function is not None:
            self.inside += 1
            return
        frame = sys._current_frames().get(thread)
        if frame is not None and len(self.places) < MOST_PLACES:
            self.places[place(frame, self.arguments.code)] += 1

    def _collect(self, phase: str, _: object) -> None:
        """Python's garbage collector begins or ends."""
        if phase == "start":
            self.collecting = time.perf_counter_ns()
        elif self.collecting is not None:
            self.collected_ns += time.perf_counter_ns() - self.collecting
            self.collecting = None

    def describe(self) -> dict[str, object]:
        """Return what was seen, most often first."""
        from .argument_lines import makers

        call = self.arguments.call
        loop = makers(call["at"]) if call is not None else None
        return {
            "inside": self.inside,
            "collecting_ms": round(self.collected_ns / 1e6, 3),
            "places": [_plain(at, count, loop) for at, count in self.places.most_common(50)],
            "fed": call,
        }


def place(frame: FrameType | None, code: CodeType | None) -> Place:
    """Return where a stack is; `code` is the function that holds the loop."""
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


def _callback(frame: FrameType) -> str | None:
    """Return 'Class.on_something' when a Keras callback runs in a frame."""
    name = frame.f_code.co_name
    if not name.startswith("on_"):
        return None
    kind = type(frame.f_locals.get("self"))
    bases = [base.__name__ for base in kind.__mro__]
    wanted = "Callback" in bases and kind.__name__ != "CallbackList"
    return f"{kind.__name__}.{name}" if wanted else None


def _plain(at: Place, count: int, loop: Sequence[Span] | None) -> dict[str, object]:
    line, looped, callback = at
    makes = None
    if loop is not None and looped is not None:
        makes = any(first <= looped <= last for first, last in loop)
    return {"at": line, "callback": callback, "makes": makes, "seen": count}
