"""Where Python is in and between the calls that train: sampled while the profiler runs, and only then.

A sample takes the trainer's time. So samples are rare while steps are measured, and frequent in some calls that
are traced afterwards; where the loop ends with the window, the first samples in it are frequent.

A thread of our own reads the trainer's stack some hundred times a second at most. It counts lines, and notes
when it saw each: what else ran at that moment, and so how long a line takes, the trace shows. Of other threads
that run the user's Python, such as those that make input, it counts the lines only.
"""

from __future__ import annotations

import contextlib
import itertools
import math

from ..process.all_threads import OtherThreads, OwnThread
from ..process.journal import guarded
from ..process.kept import threads, time
from ..process.stack import Stack, callbacks_in, instructions, public_name
from ..run.compiled_calls import compiled_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import CodeType, FrameType
    from typing import Protocol

    from ..process.journal import Journal
    from ..process.stack import Instructions
    from ..program.given import Given

    class Training(Protocol):
        """What a thread is doing: inside a call that trains, or between two of them."""

        running: bool
        depth: int
        function: object

    # What the stack shows, the callback that runs, and whether within a call that trains.
    Place = tuple[Stack, str | None, bool]

EVERY_S = 0.002  # The least mean time between two samples: where they hurry, 20 steps of 4 ms get about 40
# A sample is followed by so many times its own duration of rest: 0.2 % of one core. Steps that use all cores take
# two to three times the sample's duration longer.
AT_MOST = 500
# Samples that come without that rest, where nothing is measured or the loop ends with the window: a window of 20
# short steps has some ten otherwise, too few to name a line. A sample takes 0.02 to 0.06 ms.
ENOUGH = 75
LONGEST_S = 0.5  # Time for such samples after the window: no thread may get Python's lock often enough
MOST_PLACES, MOST_WRITTEN = 1000, 200

# Other threads that a sample reads: a known stack of 25 frames takes 4 to 5 microseconds (measured).
MOST_THREADS = 32
# A thread that is ready for a window and waits for so many rests ends, and the window starts another.
IDLE_RESTS = 100


class Pace:
    """When a thread of ours samples the one that made it: rarely, or in a hurry until there are enough."""

    def __init__(self, training: Training | None = None) -> None:
        self.training, self.trainer = training, threads.get_ident()
        self.thread: OwnThread | None = None
        self.begun = self.hurries = False
        self.idle = 0  # rests before the window
        self.until = math.inf  # on the monotonic clock: when there is no more time for samples
        self.taken, self.phase = 0, 0.0
        self.paused = self.over = False
        self.asleep = threads.allocate_lock()
        self.asleep.acquire()

    def serves(self, training: Training) -> bool:
        """Say whether a thread waits still, for what this one is doing; a fork does not have it."""
        waits = self.thread is not None and self.thread.is_alive() and not self.over
        return waits and self.training is training and self.trainer == threads.get_ident()

    def rest(self, took: float) -> bool:
        """Wait after a sample that took so many seconds; return False once all is over.

        The rests differ so that they keep no time with the steps.
        """
        self._wait(took)
        while not self.begun and not self.over:
            self.idle += 1
            self.over = self.idle >= IDLE_RESTS
            self._wait(took)
        self.taken += 1
        return not self.over

    def _wait(self, took: float) -> None:
        self.phase = (self.phase + 0.618) % 1.0
        while self.asleep.acquire(timeout=self._seconds(took)) and not self.over:
            pass  # the pace has changed

    def _seconds(self, took: float) -> float:
        if self.paused:
            return -1
        hurries = self.hurries and self.taken < ENOUGH
        mean = EVERY_S if hurries else max(EVERY_S, AT_MOST * took)
        return mean * (0.5 + self.phase)

    def _wake(self) -> None:
        """Have the thread look at its pace again."""
        with contextlib.suppress(RuntimeError):  # it was told already
            self.asleep.release()

    def begin(self, *, hurries: bool) -> bool:
        """The window opens; False if the thread has just given up waiting.

        One that need not hurry is left asleep, for to wake costs the first steps time.
        """
        self.begun, self.hurries = True, hurries
        if hurries:
            self._wake()
        return not self.over

    def pause(self) -> None:
        """Nothing is measured any more; what comes now is none of the script's."""
        self.paused = True
        self._wake()

    def hurry(self) -> None:
        """The script goes on, and is not measured."""
        self.paused, self.hurries, self.until = False, True, time.monotonic() + LONGEST_S
        self._wake()

    def hurries_on(self) -> bool:
        """Say whether samples are missing, and there is time for them."""
        return self.taken < ENOUGH and time.monotonic() < self.until

    def end(self) -> None:
        """Take no more samples."""
        self.over = True
        self._wake()


class StackSampler:
    """Where the trainer's thread was, by place."""

    def __init__(self, log: Journal, arguments: Given) -> None:
        self.log, self.arguments = log, arguments
        self.pace: Pace | None = None  # of the present window
        self.ready: Pace | None = None  # of a thread that waits for the next window
        self.clear()

    def clear(self) -> None:
        """A window opens: nothing was seen yet."""
        self.began_ns = time.time_ns()  # the clock of the trace
        # By the code that holds the loop, and the instructions:
        self.known: dict[Instructions, tuple[Stack, str | None]] = {}
        self.alive: dict[int, CodeType] = {}  # so that no other code gets the id of one of these
        self.places: dict[Place, list[int]] = {}  # the microseconds since then at which each was seen
        self.others: dict[Stack, int] = {}  # of other threads: how often each was seen

    @guarded("stack samples")
    def begin(self, training: Training | None, *, more_to_come: bool) -> None:
        """Sample this thread from now on, unless its calls cannot be separated from what lies between.

        Where the loop probably has `more_to_come` after the window, samples are rare until then.
        """
        if training is not None:
            pace = self._made_ready(training)
            if not pace.begin(hurries=not more_to_come):
                pace = self._made_ready(training)
                pace.begin(hurries=not more_to_come)
            self.pace, self.ready = pace, None
        self.clear()

    @guarded("stack samples")
    def prepare(self, training: Training | None) -> None:
        """A window may open some calls later: start the thread, for that costs the next steps time."""
        if training is not None:
            self._made_ready(training)

    def _made_ready(self, training: Training) -> Pace:
        """Return the pace of a thread that waits to sample this one."""
        ready = self.ready
        if ready is None or not ready.serves(training):
            self.release()
            ready = self.ready = Pace(training)
            took = self._timed(ready.trainer, training)  # for nothing, since the first time takes longer
            self.clear()
            ready.thread = OwnThread(self._run, ready, training, took)
        return ready

    def release(self) -> None:
        """No window is to open: end the thread that waits for one."""
        if self.ready is not None:
            self.ready.end()
        self.ready = None

    @guarded("stack samples")
    def measured(self) -> None:
        """The last step that is measured is over."""
        if self.pace is not None:
            self.pace.pause()

    def hurry(self) -> None:
        """Calls begin that are traced for samples only."""
        if self.pace is not None:
            self.pace.hurry()

    def wanted(self) -> bool:
        """Say whether more samples than there are would help, and are likely to come."""
        return self.pace is not None and self.pace.hurries_on()

    def late(self, now: float) -> bool:
        """Say whether the loop was probably left: no call has ended the samples although it is past their time."""
        pace = self.pace
        return pace is None or now > pace.until + LONGEST_S

    @guarded("stack samples")
    def end(self) -> None:
        """Stop sampling when the profiler stops."""
        if self.pace is not None:
            self.pace.end()
        self.pace = None

    @guarded("stack samples")
    def _run(self, pace: Pace, training: Training, took: float) -> None:
        """Sample, and rest; the last sample took so many seconds."""
        while pace.rest(took):
            took = self._timed(pace.trainer, training)

    def _timed(self, thread: int, training: Training) -> float:
        """Sample, and return the seconds that it took."""
        began = time.thread_time()
        self.sample(thread, training)
        return time.thread_time() - began

    def sample(self, thread: int, training: Training) -> None:
        """Note where a thread is at this moment."""
        inside = bool(training.running or training.depth or training.function is not None)
        with OtherThreads() as frames:
            frame = frames.pop(thread, None)
            frames.pop(threads.get_ident(), None)
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
            if stack.line is not None and (stack in self.others or len(self.others) < MOST_PLACES):
                self.others[stack] = self.others.get(stack, 0) + 1

    def _place(self, frame: FrameType, *, inside: bool) -> Place:
        """Return where a stack is, once read: reading all its lines takes longer than all else does."""
        code = self.arguments.code
        way = id(code), *instructions(frame)
        known = self.known.get(way)
        if known is None:
            stack = Stack.of(frame, code)
            if stack.calls is None and (compiled := compiled_call(frame)):
                module, _, name = compiled.rpartition(".")
                stack = stack._replace(calls=(module, name))
            known = stack, next(callbacks_in(frame), None)
            if len(self.known) < MOST_PLACES:
                self.known[way] = known
                at: FrameType | None = frame
                while at is not None:
                    self.alive[id(at.f_code)] = at.f_code
                    at = at.f_back
        return (*known, inside)

    def describe(self) -> dict[str, object]:
        """Return what was seen, most often first."""
        seen = sorted(self.places.items(), key=lambda item: -len(item[1]))
        others = sorted(self.others.items(), key=lambda item: -item[1])
        return {
            "began_unix_ns": self.began_ns,
            "places": [_shown_place(*item) for item in seen[:MOST_WRITTEN]],
            "others": [{**_shown(stack), "seen": count} for stack, count in others[:MOST_WRITTEN]],
            "fed": self.arguments.noted,
            "feeds": self.arguments.feeds,
        }


def _shown_place(at: Place, when: Sequence[int]) -> dict[str, object]:
    stack, callback, inside = at
    more = {"callback": callback, "looped": stack.looped, "inside": inside, "seen": len(when), "when_us": when}
    return {**_shown(stack), **more}


def _shown(stack: Stack) -> dict[str, object]:
    return {
        "at": stack.line,
        "caller": stack.caller,
        "calls": public_name(stack.calls),
        "runs": public_name(stack.runs),
        "entry": public_name(stack.entry),
    }
