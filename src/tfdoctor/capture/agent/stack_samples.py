"""Where Python is in and between the calls that train: sampled while the window is open, and only then.

A thread of our own reads the trainer's stack some hundred times a second at most. It counts lines, and notes
when it saw each: what else ran at that moment, and so how long a line takes, the trace shows. Of other threads
that run the user's Python, such as those that make input, it counts the lines only.
"""

from __future__ import annotations

import gc
import itertools
import sys
import threading
import time

from .journal import guarded
from .other_threads import OtherThreads
from .stack import Stack, public_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import CodeType, FrameType
    from typing import Protocol

    from .argument_lines import Span
    from .feeding import CallArguments
    from .journal import Journal

    class Training(Protocol):
        """What a thread is doing: inside a call that trains, or between two of them."""

        running: bool
        depth: int
        function: object

    # What the stack shows, the callback that runs, and whether within a call that trains.
    Place = tuple[Stack, str | None, bool]
    Instructions = tuple[int, ...]

EVERY_S = 0.002
"""The least mean time between two samples: a window of 20 steps of 4 ms gets about 40."""

AT_MOST = 250
"""A sample is followed by so many times its own duration of rest: 0.4 % of one core."""

CREDIT_S = 0.003
"""Processor time of the first samples of a window, which come without that rest: a window of 20 short steps
is over after some ten samples otherwise, too few to name a line. A sample takes 0.02 to 0.06 ms."""

SWITCH_S = 0.0001
"""Python hands over after 5 ms otherwise: work shorter than that would be seen only where it ends, in the next
call that waits for TensorFlow. Python is interrupted no more often by this, for only samples ask for it."""

USUAL_SWITCH_S = 0.005

MOST_PLACES, MOST_WRITTEN = 1000, 200

MOST_THREADS = 32
"""Other threads that a sample reads: a known stack of 25 frames takes 4 to 5 microseconds (measured)."""

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
        self.began_ns = time.time_ns()  # the clock of the trace
        self.known: dict[Instructions, tuple[Stack, str | None]] = {}
        self.alive: dict[int, CodeType] = {}  # so that no other code gets the id of one of these
        self.places: dict[
            Place, list[int]
        ] = {}  # the microseconds since then at which each was seen
        self.others: dict[Stack, list[int]] = {}  # of other threads: how often each was seen
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
        phase, rest, credit = 0.0, EVERY_S, CREDIT_S
        while not over.wait(rest * (0.5 + phase)):
            began = time.thread_time()
            self.sample(thread, training)
            took = time.thread_time() - began
            credit -= took
            rest = EVERY_S if credit > 0 else max(EVERY_S, AT_MOST * took)
            phase = (phase + 0.618) % 1.0

    def sample(self, thread: int, training: Training) -> None:
        """Note where a thread is at this moment."""
        inside = bool(training.running or training.depth or training.function is not None)
        self.inside += inside
        with OtherThreads() as frames:
            frame = frames.pop(thread, None)
            frames.pop(threading.get_ident(), None)
            self._others(frames.values())
            if frame is None:
                return
            now = (time.time_ns() - self.began_ns) // 1000
            at = self._place(frame, inside=inside)
            if at in self.places or len(self.places) < MOST_PLACES:
                self.places.setdefault(at, []).append(now)

    def _others(self, frames: Iterable[FrameType]) -> None:
        """Count where threads other than the trainer are, unless only others' code runs there."""
        for frame in itertools.islice(frames, MOST_THREADS):
            stack, _, _ = self._place(frame, inside=False)
            if stack.line is None:
                continue
            seen = self.others.get(stack)
            if seen is not None:
                seen[0] += 1
            elif len(self.others) < MOST_PLACES:
                self.others[stack] = [1]

    def _place(self, frame: FrameType, *, inside: bool) -> Place:
        """Return where a stack is, once read: reading all its lines takes longer than all else does."""
        code = self.arguments.code
        way = instructions(frame, code)
        known = self.known.get(way)
        if known is None:
            known = Stack.of(frame, code), _callback(frame)
            if len(self.known) < MOST_PLACES:
                self.known[way] = known
                self.alive.update((id(code), code) for code in _codes(frame))
        return (*known, inside)

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
        seen = sorted(self.places.items(), key=lambda item: -len(item[1]))
        others = sorted(self.others.items(), key=lambda item: -item[1][0])
        return {
            "inside": self.inside,
            "began_unix_ns": self.began_ns,
            "collecting_ms": round(self.collected_ns / 1e6, 3),
            "places": [_plain(at, when, loop) for at, when in seen[:MOST_WRITTEN]],
            "others": [
                {**_shown(stack), "seen": count} for stack, (count,) in others[:MOST_WRITTEN]
            ],
            "fed": call,
        }


def instructions(frame: FrameType | None, code: CodeType | None) -> Instructions:
    """Return the code and the instruction of each frame of a stack, after the code that holds the loop.

    Code stands as its id: to hash or compare it takes as long as reading its lines.
    """
    way = [id(code)]
    while frame is not None:
        way += (id(frame.f_code), frame.f_lasti)
        frame = frame.f_back
    return tuple(way)


def _codes(frame: FrameType | None) -> Iterator[CodeType]:
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def _callback(frame: FrameType | None) -> str | None:
    """Return 'Class.on_something' of the innermost Keras callback that runs in a stack."""
    while frame is not None:
        name = frame.f_code.co_name
        if name.startswith("on_"):
            kind = type(frame.f_locals.get("self"))
            bases = [base.__name__ for base in kind.__mro__]
            if "Callback" in bases and kind.__name__ != "CallbackList":
                return f"{kind.__name__}.{name}"
        frame = frame.f_back
    return None


def _plain(at: Place, when: Sequence[int], loop: Sequence[Span] | None) -> dict[str, object]:
    (stack, callback, inside), makes = at, None
    if loop is not None and stack.looped is not None:
        makes = any(first <= stack.looped <= last for first, last in loop)
    return {
        **_shown(stack),
        "callback": callback,
        "makes": makes,
        "inside": inside,
        "seen": len(when),
        "when_us": when,
    }


def _shown(stack: Stack) -> dict[str, object]:
    return {
        "at": stack.line,
        "caller": stack.caller,
        "calls": public_name(stack.calls),
        "runs": public_name(stack.runs),
        "entry": public_name(stack.entry),
    }
