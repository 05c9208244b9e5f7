"""The results of a recording from Python: its diagnosis, its reports and their display."""

import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from tfdoctor.api import inline
from tfdoctor.capture.in_process import InProcessRecording
from tfdoctor.capture.result_line import sentence
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.recording import Recording
from tfdoctor.report.formats import FORMATS, is_streamed
from tfdoctor.terms.errors import CaptureError, TfdoctorError
from tfdoctor.terms.text import harmless


class Results:
    """A recording before, during and after it runs."""

    _inside: InProcessRecording | None = None
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

    @property
    def diagnosis(self) -> Diagnosis:
        """The diagnosis of the recording by every rule.

        Raises:
            CaptureError: there is no recording, or it has not ended.
            ConfigError: the settings of the current project are invalid.
            InputError: its trace is damaged.
        """
        recording = self.recording
        if recording is None:
            raise CaptureError(f"There is no recording to report on: {self._gap()}.")
        return self._diagnosis

    @cached_property
    def _diagnosis(self) -> Diagnosis:
        from tfdoctor.examination import Question, examined  # noqa: PLC0415 - same
        from tfdoctor.rulebook.book import rulebook  # noqa: PLC0415 - same
        from tfdoctor.rulebook.config import find  # noqa: PLC0415 - only when asked for
        from tfdoctor.stored.report import finished  # noqa: PLC0415 - same

        assert self.recording is not None  # noqa: S101 - seen to by `diagnosis`
        config = find(Path())
        question = Question(budget=config.budget, for_epochs=self._for_epochs)
        return finished(examined(self.recording, str(self.path), rulebook(config), question))

    def report(self, formats: Iterable[str] = ("html", "json"), out: str | Path | None = None) -> tuple[Path, ...]:
        """Write `report.<format>` for each format to the recording, or to the folder `out`; return the paths.

        Raises:
            CaptureError: there is no recording, or no such format.
            InputError: its trace is damaged.
            OutputError: the folder cannot be written to.
        """
        from tfdoctor.report.files import write  # noqa: PLC0415 - brings plotly

        diagnosis = self.diagnosis
        return write(diagnosis, Path(out or self.path or ""), _formats(formats))

    def show(self) -> None:
        """Show the report: the HTML page in a notebook, elsewhere the summary of the command line."""
        self.diagnosis  # noqa: B018 - a fault is raised here, not shown
        if not inline.display(self):
            sys.stdout.write(f"{self!r}\n")

    def _gap(self) -> str:
        """Return why there is no recording."""
        inside = self._inside
        if inside is None:
            return self._why_none
        if inside.faults:
            return f"recording failed ({inside.faults[0]})"
        return f"the {inside.what} is still running"

    def _summary(self) -> str:
        """Return the line that is printed when the recording has ended."""
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
        if self.recording is None:
            return None
        try:
            return inline.frame(self.diagnosis)
        except TfdoctorError:
            return None

    def _repr_markdown_(self) -> str | None:
        """Return the report for a viewer of notebooks that shows no frames; None as for HTML."""
        if self.recording is None:
            return None
        from tfdoctor.report.formats import md  # noqa: PLC0415 - only where it is shown

        try:
            return md.render(self.diagnosis)
        except TfdoctorError:
            return None


def say(text: str) -> None:
    """Print a message as the command line does."""
    sys.stderr.write(harmless(f"tfdoctor: {text}\n"))
    sys.stderr.flush()


def _formats(names: Iterable[str]) -> list[str]:
    names = [names] if isinstance(names, str) else list(names)
    files = [name for name in FORMATS if not is_streamed(name)]
    unknown = [name for name in names if name not in files]
    if unknown:
        raise CaptureError(f"Unknown report format {unknown[0]!r}: use {', '.join(files)}.")
    return list(dict.fromkeys(names))
