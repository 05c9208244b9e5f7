"""`with tfdoctor.record(…):` records whatever trains inside the block; its results, reports and their display."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from tfdoctor.api import inline
from tfdoctor.capture import Plan, in_process
from tfdoctor.capture.agent.process.stack import user_line
from tfdoctor.capture.progress import sentence
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.report.formats import FORMATS, PRINTED
from tfdoctor.terms.errors import CaptureError, NotEmptyError, TfdoctorError
from tfdoctor.terms.text import harmless

PROFILED = "`tfdoctor profile` already records this run"


class Results:
    """A recording before, during and after it runs."""

    _inside: in_process.InProcessRecording | None = None
    _for_epochs: int | None = None
    _why_none = "nothing has been recorded yet"

    @property
    def path(self) -> Path | None:
        """The folder of the recording; None before it starts, and without a recording."""
        return self._inside.folder.out if self._inside else None

    @property
    def recording(self) -> Recording | None:
        """The recording; None until it has ended."""
        return self._inside.recording if self._inside else None

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis of the recording by every rule.

        Raises:
            CaptureError: there is no recording, or it has not ended.
            ConfigError: the settings of the current project are invalid.
            InputError: its trace is damaged.
        """
        from tfdoctor.compare.budgets import checked  # noqa: PLC0415 - same
        from tfdoctor.examination import examined  # noqa: PLC0415 - same
        from tfdoctor.rulebook.book import rulebook  # noqa: PLC0415 - same
        from tfdoctor.rulebook.config import find  # noqa: PLC0415 - only when asked for

        if self.recording is None:
            raise CaptureError(f"There is no recording to report on: {self._gap()}.")
        config = find(Path())
        title, rules = str(self.path), rulebook(config)
        diagnosis = examined(self.recording, title, rules, for_epochs=self._for_epochs)
        return checked(diagnosis, config.budget)

    def report(self, formats: Iterable[str] = ("html", "json"), out: str | Path | None = None) -> tuple[Path, ...]:
        """Write `report.<format>` for each format to the recording, or to the folder `out`; return the paths.

        Raises:
            CaptureError: there is no recording, or no such format.
            InputError: its trace is damaged.
            OutputError: the folder cannot be written to.
        """
        from tfdoctor.report.files import write  # noqa: PLC0415 - brings Jinja

        diagnosis = self.diagnosis
        names = [formats] if isinstance(formats, str) else [*formats]
        files = [name for name in FORMATS if name not in PRINTED]
        if unknown := [name for name in names if name not in files]:
            raise CaptureError(f"Unknown report format {unknown[0]!r}: use {', '.join(files)}.")
        return write(diagnosis, Path(out or self.path or ""), [*dict.fromkeys(names)])

    def show(self) -> None:
        """Show the report: the HTML page in a notebook, elsewhere the summary of the command line."""
        self.diagnosis  # noqa: B018 - a fault is raised here, not shown
        if not inline.display(self):
            sys.stdout.write(f"{self!r}\n")

    def _gap(self) -> str:
        inside = self._inside
        if inside is None:
            return self._why_none
        return f"recording failed ({inside.faults[0]})" if inside.faults else f"the {inside.what} is still running"

    def _summary(self) -> str:
        recording = self.recording
        manifest = recording.manifest if recording else None
        if manifest is None:
            return f"nothing recorded: {self._gap()}"
        recorded = recording is not None and recording.run is not None
        what = self._inside.what if self._inside else "run"
        return f"{sentence(manifest, recorded=recorded, what=what)} in {self.path}"

    def __repr__(self) -> str:
        """Return the summary of the command line, or one line in a notebook, which shows the page."""
        if self.recording is None or inline.notebook():
            return f"<tfdoctor: {self._summary() if self.recording else self._gap()}>"
        from tfdoctor.report import terminal  # noqa: PLC0415 - brings rich

        try:
            return terminal.render(self.diagnosis, color=False).rstrip("\n")
        except TfdoctorError as error:
            return f"tfdoctor: {error}"

    def _repr_html_(self) -> str | None:
        """Return the report for a notebook cell; None without a recording, for which repr() says why."""
        return self._rendered(inline.frame)

    def _repr_markdown_(self) -> str | None:
        """Return the report for a viewer of notebooks that shows no frames; None as for HTML."""
        from tfdoctor.report.formats import md  # noqa: PLC0415 - only where it is shown

        return self._rendered(md.render)

    def _rendered(self, render: Callable[[Diagnosis], str]) -> str | None:
        try:
            return None if self.recording is None else render(self.diagnosis)
        except TfdoctorError:
            return None


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
    numbers = {"steps": steps, "warmup": warmup, "sample_every_ms": sample_every_ms}
    return Run(planned(path, for_epochs, seconds, trace=trace, **numbers), for_epochs)


def planned(
    path: str | Path | None,
    for_epochs: object,
    seconds: float | None = None,
    *,
    trace: bool = True,
    **numbers: Any,  # noqa: ANN401 - as the user gave them
) -> Plan:
    """Return a plan without a script; arguments of a wrong type are refused.

    Raises:
        CaptureError: an argument is invalid.
    """
    for name, value in numbers.items():
        if not isinstance(value, int):
            raise CaptureError(f"{name} must be a whole number, not {value!r}.")
    if seconds is not None and not isinstance(seconds, int | float):
        raise CaptureError(f"seconds must be a number, not {seconds!r}.")
    plan = Plan(script="", out=None if path is None else Path(path), seconds=seconds, trace=trace, **numbers)
    if for_epochs is not None and not (isinstance(for_epochs, int) and for_epochs >= 1):
        raise CaptureError(f"for_epochs must be a whole number of at least 1, not {for_epochs!r}.")
    return plan


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
    path, number = Path("notebook" if inline.notebook() else name or at), 1
    while True:  # a folder named by the time gets a number where that name is taken
        again = "" if number == 1 else f"-{number}"
        named = replace(plan, script=str(path.with_name(f"{path.stem}{again}{path.suffix}")))
        try:
            return in_process.InProcessRecording.begin(named, at, places, what)
        except NotEmptyError:
            if plan.out is not None:
                raise
            number += 1


def say(text: str) -> None:
    """Print a message as the command line does."""
    sys.stderr.write(harmless(f"tfdoctor: {text}\n"))
    sys.stderr.flush()
