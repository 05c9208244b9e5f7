"""Records the process that it runs in: what `tfdoctor.record` does.

The agent is that of `tfdoctor profile`, loaded under the same private name; it stays loaded for the next
recording. Only errors in the arguments are raised into the user's code.
"""

import atexit
import contextlib
import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Self

from tfdoctor.capture import manifest
from tfdoctor.capture.agent.process.frames import clean_error
from tfdoctor.capture.agent.process.masking import cleaned_begin
from tfdoctor.capture.folder import Folder, assemble, claim
from tfdoctor.capture.manifest import Moment, times_begun, times_ended
from tfdoctor.capture.plan import Plan, agent_plan
from tfdoctor.capture.sampler_process import SamplerProcess
from tfdoctor.recording import SAMPLES, Recording, folders
from tfdoctor.recording.agent import AgentError
from tfdoctor.recording.manifest import Manifest, MissingPart
from tfdoctor.terms.errors import CaptureError

if TYPE_CHECKING:
    from tfdoctor.capture.agent.hooks.block import Block

AGENT, FOLDER = "_tfdoctor_agent", Path(__file__).parent / "agent"


class _Process:
    """State that all recordings of this process share."""

    lock = threading.RLock()
    ours = False  # we loaded the agent, not `tfdoctor profile`
    block: "Block | None" = None  # of the agent
    under_way: "InProcessRecording | None" = None


def profiled() -> bool:
    """Say whether `tfdoctor profile` records this process, or will once it imports TensorFlow."""
    if AGENT in sys.modules:
        return not _Process.ours
    door = getattr(sys.modules.get("_tfdoctor_door"), "Door", None)
    return door is not None and any(type(finder) is door for finder in sys.meta_path)


def under_way() -> "InProcessRecording | None":
    """Return the unfinished recording of this process, if any; a forked child has none."""
    recording = _Process.under_way
    return recording if recording is not None and recording.pid == os.getpid() else None


class InProcessRecording:
    """One recording of this process; `what` is "block" or "fit"."""

    def __init__(self, folder: Folder, state: Manifest, what: str) -> None:
        self.pid, self.folder, self.state, self.what = os.getpid(), folder, state, what
        self.recording: Recording | None = None
        self.faults: list[str] = []
        self.names: dict[str, str] = {}  # of a notebook's cells, by what is shown in their place
        self.samplers: SamplerProcess | None = None
        self.since: Moment | None = None
        self.going_on: Callable[[], bool] = lambda: True  # False: the fit was left without end()

    @classmethod
    def begin(cls, plan: Plan, at: str, places: Mapping[str, str | None], what: str) -> Self:
        """Start a recording; `at` is the user's line, `what` is "block" or "fit".

        `places` maps source files to the names to show: a notebook's cells, or None for files that are not
        the user's.

        Raises:
            CaptureError: a recording of this process is still running; nothing was created.
            OutputError: the recording cannot be written where it should be.
        """
        with _Process.lock:
            before = under_way()
            if before is not None and before.going_on():
                raise CaptureError(
                    f"The recording {before.folder.out} is still running: end it before you start another."
                )
            if before is not None:  # its fit has left it
                before.abandoned()
            folder = claim(plan)
            initial = manifest.begin(plan, [at], folder.worker)
            state = replace(initial, python=sys.executable)
            manifest.write(folder.out, state)
            _Process.under_way = started = cls(folder, state, what)
        atexit.register(started.abandoned)
        started.names = {shown: name for name, shown in places.items() if shown}
        with started._careful("samples"):
            started.samplers = SamplerProcess(folder.out / SAMPLES, plan.sample_every_ms)
        with started._careful("start"):  # last: from here on, time is the user's
            block = _agent_module("hooks.block")
            _Process.block = block.begin(agent_plan(plan, folder.processes), places, _Process.block)
        with started._careful("times"):  # the user's part begins; written for a process that is killed
            started.since = Moment.now()
            started.state = replace(state, times=times_begun(started.since, started.pid))
            manifest.write(folder.out, started.state)
        return started

    def join(self, model: object, frame: FrameType) -> None:
        """Record the running fit of a model."""
        with self._careful("join"):
            if _Process.block is not None:
                _Process.block.join(model, frame)

    def end(self, error: BaseException | None = None) -> None:
        """End the recording and write it; a second call does nothing."""
        reason = "interrupt" if isinstance(error, KeyboardInterrupt) else "exception"
        self._end(f"end-of-{self.what}" if error is None else reason, error)

    def abandoned(self) -> None:
        """End a recording without end(): the fit raised, or the process exits."""
        if under_way() is self:
            why = f"the {self.what} did not finish: it raised an exception, or the process ended first"
            self.state = self.state.lacks(f"end of the {self.what}", why)
            self._end("unfinished", None)

    def _end(self, reason: str, error: BaseException | None) -> None:
        with _Process.lock:
            if under_way() is not self:
                return
            until = Moment.now()
            with self._careful("end"):
                if _Process.block is not None:
                    _Process.block.end(reason, self.what, error)
            with self._careful("traceback"):
                clean_error(error)
            with self._careful("recording"):
                self.recording = self._write(reason, error, until)
            _Process.under_way = None
        atexit.unregister(self.abandoned)

    def _write(self, reason: str, error: BaseException | None, until: Moment) -> Recording:
        """Write the recording as `tfdoctor profile` does."""
        if self.state.times and self.since:
            times = times_ended(self.state.times, self.since, until)
            self.state = replace(self.state, times=times)
        samplings = self.samplers.stop() if self.samplers else ()
        if self.samplers and self.samplers.why:
            self.state = self.state.lacks(MissingPart.SAMPLES, self.samplers.why)
        recorded = folders.processes(self.folder.out)
        ended = manifest.end(self.state, _code(error), samplings, recorded)
        outcome = ended.outcome
        if error is not None:
            outcome = replace(outcome, error=cleaned_begin(f"{type(error).__name__}: {error}", 500))
        if reason == "unfinished":
            outcome = replace(outcome, exit_code=None)
        faults = tuple(AgentError("record", fault) for fault in self.faults)
        assemble(self.folder, replace(ended, outcome=outcome, agent_errors=faults), recorded, self.names)
        return Recording.open(self.folder.out)

    @contextlib.contextmanager
    def _careful(self, where: str) -> Iterator[None]:
        """Collect an exception instead of raising it: the user's code continues."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # any fault of ours
            self.faults.append(cleaned_begin(f"{where}: {type(error).__name__}: {error}", 500))


def _code(error: BaseException | None) -> int:
    """Return the return code, as of subprocess, of a process that this exception ends."""
    if isinstance(error, KeyboardInterrupt):
        return -signal.SIGINT
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return int(error is not None)


def _agent_module(module: str) -> ModuleType:
    """Return a module of the agent, a package that is loaded by its path."""
    if AGENT not in sys.modules:
        _Process.ours = True
        spec = importlib.util.spec_from_file_location(
            AGENT, FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER)]
        )
        if spec is None or spec.loader is None:
            raise ImportError(f"{FOLDER} cannot be loaded")
        sys.modules[AGENT] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[AGENT])
    return importlib.import_module(f"{AGENT}.{module}")
