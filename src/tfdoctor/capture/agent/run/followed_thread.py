"""Which thread the account follows: the main one, the first other one that trains, or one that traces for it."""

from __future__ import annotations

from ..process.all_threads import OtherThreads
from ..process.kept import main_thread, threads, time
from .call_times import CallTimes
from .kinds import BETWEEN, TRACE
from .waiting import started, waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.stack import Line
    from .clock_state import WaitingTrace
    from .places import CallSite

    # A thread, whether it has trained, what it was in, and when another one was followed instead:
    Lent = tuple[int, bool, CallSite, int]

# How often a thread that trains looks whether the followed one waits: looking takes as long as a short step.
MOVES_NS = 100_000_000


class FollowedThread(CallTimes):
    """The times of the calls of one thread, and when another one is followed instead."""

    __slots__ = ()

    thread: int | None  # that the account follows; None: nothing is recorded

    def begin_following(self, thread: int) -> None:
        """The account follows this thread."""
        self.inside = 0  # calls of tf.functions under way
        self.trains: bool = False  # the thread has trained
        self.following = threads.allocate_lock()
        self.lent: Lent | None = None  # to another thread, which traces while this one waits
        self.tracing: list[WaitingTrace] = []  # in threads that are not followed
        self.moves_at = 0  # ns from which another thread may be followed instead of a waiting one
        self.owner = started().get(thread)
        self.thread = thread

    def ours(self) -> bool:
        """Say whether the calling thread is the one that the account follows."""
        return self.thread == threads.get_ident()

    def adopt(self) -> bool:
        """Follow the calling thread, which trains, unless the one that is followed trains too."""
        if self.thread is None:
            return False
        if self.thread != threads.get_ident():
            self.look_after_thread()
            with self.following:
                if not self.ours() and not self._may_leave():
                    return False
                self._move(threads.get_ident())
        return True

    def _may_leave(self) -> bool:
        """Say whether another thread may be followed: this one has not trained, or it waits for others."""
        if not self.trains and self.current is self.places.script:
            return True
        now = time.perf_counter_ns()
        if now < self.moves_at or self.lent is not None:
            return False
        self.moves_at = now + MOVES_NS
        return self.rests() and waits_now(self.thread)

    def rests(self) -> bool:
        """Say whether the thread that the account follows is in no call of TensorFlow or Keras."""
        now, script = self.current, self.places.script
        return now is script or (now.kind == BETWEEN and now.parent is script)

    def _move(self, thread: int) -> None:
        if self.thread == thread:
            return
        self.repeats.settle()
        self.inside, self.running = 0, False
        self.pass_over()
        self.switch(self.places.script)
        self.follow(thread)

    def lend(self, thread: int, name: str, at: Line | None) -> Lent | None:
        """Follow a thread that traces while the one that is followed waits; None where that does not."""
        with self.following:
            followed = self.thread
            if followed is None or self.lent is not None or not self.rests() or not waits_now(followed):
                return None
            before, trains, script = self.current, self.trains, self.places.script
            self.follow(thread)
            self.inside = 1  # what it traces within are parts of it
            place = self.places.of(TRACE, at, name, script)
            self.entered[place] = self.entered.get(place, 0) + 1
            self.lent = followed, trains, before, self.switch(place)
            return self.lent

    def take_back(self, lent: Lent | None = None) -> None:
        """Follow the thread again that waited, and goes on; of what was lent like this, if that is given."""
        with self.following:
            if self.lent is None or (lent is not None and lent is not self.lent):
                return
            thread, trains, before, began = self.lent
            ended, self.lent = self.switch(before), None
            if before.kind == BETWEEN:
                self.steps.apart += ended - began
            self.inside = 0
            self.follow(thread)
            self.trains = trains

    def follow(self, thread: int) -> None:
        """Follow a thread, which has not trained yet."""
        self.owner = started().get(thread)
        self.thread, self.trains = thread, False

    def look_after_thread(self) -> None:
        """Follow the thread that goes on: the main one where the one that trained has ended, one that waited."""
        if self.lent is not None and self.lent[0] == threads.get_ident():
            self.take_back()
        if not self._is_over():
            return
        main = main_thread()
        if self.thread == main:
            return
        with self.following:
            if self.thread is not None and self._is_over():
                self.lent = None
                self._move(main)

    def follows(self) -> bool:
        """Say whether the account follows the calling thread, now that the one before may have ended."""
        if self.thread is None:
            return False
        self.look_after_thread()
        return self.ours()

    def sampled(self) -> None:
        """Look at who waits and who traces: a sample is taken."""
        if self.lent is not None and not waits_now(self.lent[0]):
            self.take_back()
        for trace in list(self.tracing):
            trace.begin()

    def _is_over(self) -> bool:
        """Say whether the thread that the account follows has ended: another one may have got its number."""
        return self.thread != main_thread() and started().get(self.thread or 0) is not self.owner


def waits_now(thread: int | None) -> bool:
    """Say whether a thread waits for others; looking takes some 20 us."""
    with OtherThreads() as frames:
        return waits(thread, frames)
