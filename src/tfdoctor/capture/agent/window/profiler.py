"""Sessions of TensorFlow's profiler: ours, and the user's own, which always comes first."""

from __future__ import annotations

from ..process import tensorflow_api
from ..process.kept import os, time
from ..process.log_level import LogLevel
from . import collectives

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import ProfilerModule, TraceMarker
    from .captures import Capture


class ProfilerApi:
    """TensorFlow's own functions that start and stop the profiler, as they were before the hooks."""

    def __init__(self, module: ProfilerModule) -> None:
        self.module = module
        self.start, self.stop = module.start, module.stop

    def running(self) -> bool:
        """Say whether TensorFlow holds a profiler."""
        return self.module._profiler is not None


class Session:
    """A running profiler of ours, and the markers that show it the steps."""

    borrowed = False

    def __init__(self, api: ProfilerApi) -> None:
        self.api = api
        self.trace = tensorflow_api.trace_class()
        self.stopped_ns: int | None = None
        self.unnumbered = collectives.Unnumbered()

    @classmethod
    def start(cls, api: ProfilerApi, out: str) -> Session:
        """Start recording into the folder `out`."""
        if api.running():
            raise RuntimeError("another profiler is running")
        session = cls(api)
        session.unnumbered.begin()
        try:
            with LogLevel():
                api.start(out)
        except BaseException:  # Ctrl-C too: the table is the user's
            session.unnumbered.end()
            # Refused by a profiler server's session: TensorFlow keeps a dead object that would
            # refuse every later start of the user's. Dropping it writes nothing.
            if api.running():
                api.stop(save=False)
            raise
        return session

    def marker(self, name: str, number: int, k: int) -> TraceMarker:
        """Open the marker of a call: `_r` makes it a root, which is what the analysers ask for.

        TensorFlow joins keywords to such a text itself, in twice the time.
        """
        return self.trace(f"{name}#step_num={number},_r=1,steps={k}#")

    def sampled(self, number: int, k: int) -> TraceMarker:
        """Open the marker of a call that is sampled and not measured: no analyser takes it for a step."""
        return self.trace("tfdoctor_sampled", step_num=number, steps=k)

    def finish(self) -> None:
        """Mark when the last step was over, by an empty event; the first time, nothing later is measured."""
        with self.trace("tfdoctor_end"):
            self.stopped_ns = self.stopped_ns or time.time_ns()

    def stop(self, capture: Capture) -> None:  # noqa: ARG002  # the profiler knows where to write
        """Stop and write the trace."""
        try:
            with LogLevel():
                self.api.stop()
        finally:
            self.unnumbered.end()


class Borrowed(Session):
    """The user's running profiler: it gets our markers, and we a copy of what it writes."""

    borrowed = True

    def __init__(self, api: ProfilerApi, logdir: str | os.PathLike[str]) -> None:
        super().__init__(api)
        self.logdir = os.path.abspath(os.fspath(logdir))
        self.began = time.time()

    def stop(self, capture: Capture) -> None:
        """Copy what the user's profiler has written by now."""
        capture.adopt(self.logdir, self.began)
