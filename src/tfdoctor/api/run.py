"""`with tfdoctor.record(…):` records whatever trains inside the block."""

import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from tfdoctor.api import inline
from tfdoctor.api.results import Results, say
from tfdoctor.capture import Plan, in_process
from tfdoctor.capture.agent.process.stack import user_line
from tfdoctor.terms.errors import CaptureError, NotEmptyError

PROFILED = "`tfdoctor profile` already records this run"


class Run(Results):
    """A recorded block; use `path`, `recording`, `diagnosis`, `report()` and `show()` after it has ended."""

    def __init__(self, plan: Plan, for_epochs: int | None = None) -> None:
        self._plan, self._for_epochs = plan, for_epochs

    def __enter__(self) -> Self:
        self._why_none = "the block was not recorded"
        if in_process.profiled():
            self._why_none = PROFILED
            say(f"{PROFILED}, so record() does nothing.")
            return self
        self._inside = begin(self._plan, sys._getframe(1), "block")  # noqa: SLF001 - the user's line
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._inside is not None and self.recording is None:
            self._inside.end(error)
            say(self._summary())


def record(  # noqa: PLR0913 - its arguments are the options
    path: str | Path | None = None,
    *,
    steps: int = 20,
    warmup: int = 10,
    seconds: float | None = None,
    sample_every_ms: int = 200,
    trace: bool = True,
    for_epochs: int | None = None,
) -> Run:
    """Record a `with` block: where its time goes, and a trace of some training steps inside it.

    Args:
        path: folder to record into; a new one in `runs` by default.
        steps: number of training steps to trace.
        warmup: number of training steps before tracing starts.
        seconds: trace for this long instead, for training without visible steps.
        sample_every_ms: period for sampling the machine; 0 turns sampling off.
        trace: whether to trace steps; without, only the account of the block is recorded.
        for_epochs: also say what the findings save of a run of so many epochs.

    Raises:
        CaptureError: an argument is invalid, or another recording is running when the block starts.
        OutputError: the folder is not empty or cannot be written when the block starts.
    """
    plan = planned(path, steps, warmup, seconds, sample_every_ms, trace=trace)
    return Run(plan, checked_epochs(for_epochs))


def checked_epochs(for_epochs: object) -> int | None:
    """Return the number of epochs to extrapolate to; None is unknown.

    Raises:
        CaptureError: it is no whole number of at least 1.
    """
    if for_epochs is None or (isinstance(for_epochs, int) and for_epochs >= 1):
        return for_epochs
    raise CaptureError(f"for_epochs must be a whole number of at least 1, not {for_epochs!r}.")


def planned(
    path: str | Path | None,
    steps: int,
    warmup: int,
    seconds: float | None,
    sample_every_ms: int,
    *,
    trace: bool = True,
) -> Plan:
    """Return a plan without a script.

    Raises:
        CaptureError: an argument is invalid.
    """
    numbers = {"steps": steps, "warmup": warmup, "sample_every_ms": sample_every_ms}
    for name, value in numbers.items():
        if not isinstance(value, int):
            raise CaptureError(f"{name} must be a whole number, not {value!r}.")
    if seconds is not None and not isinstance(seconds, int | float):
        raise CaptureError(f"seconds must be a number, not {seconds!r}.")
    return Plan(
        script="",
        out=Path(path) if path is not None else None,
        steps=steps,
        warmup=warmup,
        seconds=seconds,
        sample_every_ms=sample_every_ms,
        trace=trace,
    )


def begin(plan: Plan, frame: FrameType | None, what: str) -> in_process.InProcessRecording:
    """Start to record; the frame leads to the user's line.

    Raises:
        CaptureError: another recording is running.
        OutputError: the folder is not empty or cannot be written.
    """
    places = inline.places()
    while frame is not None and places.get(frame.f_code.co_filename, "") is None:
        frame = frame.f_back
    file, line = user_line(frame) or ("", 0)
    name = places.get(file) or file.removeprefix(f"{Path.cwd()}/")
    at = f"{name}:{line}" if name else "python"
    return _begin(plan, "notebook" if inline.notebook() else name or at, at, what)


def _begin(plan: Plan, script: str, at: str, what: str) -> in_process.InProcessRecording:
    """Start to record; a folder named by the time gets a number where that name is taken."""
    places, path, number = inline.places(), Path(script), 1
    while True:
        again = "" if number == 1 else f"-{number}"
        named = replace(plan, script=str(path.with_name(f"{path.stem}{again}{path.suffix}")))
        try:
            return in_process.InProcessRecording.begin(named, at, places, what)
        except NotEmptyError:
            if plan.out is not None:
                raise
            number += 1
