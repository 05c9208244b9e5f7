"""What happens to the window while the user's own profiler is at work: ours gives way to it."""

from __future__ import annotations

from ..process.journal import guarded
from ..window.captures import ProfilerApi
from ..window.window import OPEN, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from ..loops import Watch
    from ..stream import Args, Enter, Held, Kwargs, Point, Stream
    from ..window.window import TraceWindow

ENDED_EARLY = (
    "the trace ended early, for the script profiled by itself (a profiler of its own, or RunOptions.FULL_TRACE): "
    "for a longer one, run it without that"
)


def listen(stream: Stream, lending: Lending) -> None:
    """Yield the profiler when the user wants it."""
    stream.on("profiler start", lending.found)
    stream.on("profiler stop", lambda _: lending.stops)
    # What all ways to a session within Python come to:
    stream.on("profiled call", lambda _: lambda held, *_: lending.lend(held))


class Lending:
    """Gives way to the user's profiler, and marks the steps in its trace."""

    def __init__(self, window: TraceWindow, watch: Watch) -> None:
        self.window, self.log, self.watch = window, window.log, watch

    def found(self, point: Point) -> Enter:
        """TensorFlow brings the profiler, whose functions are not patched yet."""
        self.window.profiler = ProfilerApi(point.owner)
        if self.window.plan.get("seconds"):
            self.watch.begin()
        return self.starts

    @guarded("user's profiler")
    def give_way(self) -> None:
        """The user starts a profiler: ours stops."""
        if self.window.state is OPEN:
            self.log.missing("window", ENDED_EARLY)
        self.window.close("user-profiler")

    def lend(self, held: Held) -> None:
        """A call profiles, with no profiler of ours beside it; of the steps in it, none opens a window."""
        self.give_way()
        held.append((self._given_back, None))
        self.window.lent += 1

    def _given_back(self, *_: object) -> None:
        self.window.lent = max(0, self.window.lent - 1)

    def starts(self, held: Held, args: Args, kwargs: Kwargs, _: object) -> None:
        """The user starts the profiler: once it runs, mark its steps, and use its trace."""
        held.append((self._started, args[0] if args else kwargs.get("logdir")))
        self.give_way()

    def _started(self, logdir: str | os.PathLike[str], _: object, error: BaseException | None) -> None:
        window = self.window
        with window.lock:
            waiting = window.wanted and window.state is WAITING
            if error is None and waiting and window.profiler is not None and logdir:
                capture = window.new_capture(window.profiler)
                capture.borrow(logdir)
                window.opened(capture)

    def stops(self, held: Held, _: Args, __: Kwargs, ___: object) -> None:
        """The user's profiler is about to stop: nothing is marked after this."""
        held.append((self._stopped, None))
        capture = self.window.capture
        if capture is not None and capture.borrowed:
            capture.finish()
        else:
            self.window.close("user-profiler")  # they have none, and shall hear that

    def _stopped(self, *_: object) -> None:
        if self.window.borrowed():  # it has written its trace
            self.window.close("user-profiler")
