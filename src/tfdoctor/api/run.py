"""`with tfdoctor.record(…):` records whatever trains inside the block."""

import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from tfdoctor.api import inline
from tfdoctor.api.results import Results, say
from tfdoctor.capture import Plan, inside
from tfdoctor.capture.agent.stack import user_line
from tfdoctor.errors import CaptureError, OutputError

PROFILED = "`tfdoctor profile` records this run already"

WORDS = {
    "--out": "path",
    "--steps": "steps",
    "--warmup": "warmup",
    "--sample-every": "sample_every_ms",
    "--for": "seconds",
}
"""How the options of the command line are called here."""


class Run(Results):
    """A block that is recorded; `path`, `recording`, `diagnosis`, `report()` and `show()` are for afterwards."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __enter__(self) -> Self:
        self._why_none = "the block was not recorded"
        if inside.profiled():
            self._why_none = PROFILED
            say(f"{PROFILED}: record() leaves it to that.")
            return self
        self._inside = begin(self._plan, sys._getframe(1), "block")  # noqa: SLF001 - the user's line
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._inside is not None and self.recording is None:
            self._inside.end(error)
            say(self._said())


def record(
    path: str | Path | None = None,
    *,
    steps: int = 20,
    warmup: int = 10,
    seconds: float | None = None,
    sample_every_ms: int = 200,
) -> Run:
    """Record what trains inside a `with` block.

    Args:
        path: the folder to record into; by default one below `runs`.
        steps: training steps to trace.
        warmup: training steps to let pass first.
        seconds: how long to trace instead, for what has no visible step.
        sample_every_ms: how often to sample the machine; 0 turns it off.

    Raises:
        CaptureError: an argument makes no sense; on entering the block, another recording is under way.
        OutputError: the folder is not empty or cannot be written, on entering the block.
    """
    return Run(planned(path, steps, warmup, seconds, sample_every_ms))


def planned(
    path: str | Path | None, steps: int, warmup: int, seconds: float | None, sample_every_ms: int
) -> Plan:
    """Return a plan without a script.

    Raises:
        CaptureError: an argument makes no sense.
    """
    numbers = {"steps": steps, "warmup": warmup, "sample_every_ms": sample_every_ms}
    for name, value in numbers.items():
        if not isinstance(value, int):
            raise CaptureError(f"{name} must be a whole number, not {value!r}.")
    try:
        return Plan(
            script="",
            out=Path(path) if path is not None else None,
            steps=steps,
            warmup=warmup,
            seconds=seconds,
            sample_every_ms=sample_every_ms,
        )
    except (CaptureError, TypeError) as error:
        raise CaptureError(_translated(str(error))) from None


def begin(plan: Plan, frame: FrameType | None, what: str) -> inside.Inside:
    """Begin to record; the frame leads to the user's line.

    Raises:
        CaptureError: another recording is under way.
        OutputError: the folder is not empty or cannot be written.
    """
    places = inline.places()
    while frame is not None and places.get(frame.f_code.co_filename, "") is None:
        frame = frame.f_back
    file, line = user_line(frame) or ("", 0)
    name = places.get(file) or file.removeprefix(f"{Path.cwd()}/")
    at = f"{name}:{line}" if name else "python"
    try:
        return _begin(plan, "notebook" if inline.notebook() else name or at, at, what)
    except OutputError as error:
        raise OutputError(_translated(str(error))) from None


def _begin(plan: Plan, script: str, at: str, what: str) -> inside.Inside:
    """Begin to record; a folder that is named by the second gets a number where one is there already."""
    places, path, number = inline.places(), Path(script), 1
    while True:
        again = "" if number == 1 else f"-{number}"
        named = replace(plan, script=str(path.with_name(f"{path.stem}{again}{path.suffix}")))
        try:
            return inside.Inside.begin(named, at, places, what)
        except OutputError as error:
            if plan.out is not None or "not empty" not in str(error):
                raise
            number += 1


def _translated(sentence: str) -> str:
    """Return a sentence of the command line as it applies here."""
    for option, name in WORDS.items():
        sentence = sentence.replace(option, name)
    return sentence
