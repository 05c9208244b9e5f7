"""The recordings of some folders, as text for a model: nothing outside of these folders is read.

``python -m tfdoctor.mcp.runs`` answers one question about them, in a process with limits. On the standard input is
the question as JSON: the folders, the name of a method of `ServedRuns`, and its arguments. The answer goes to the
standard output; why there is none goes to the standard error, with the exit code 2.
"""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tfdoctor.compare.compare import compare
from tfdoctor.compare.reports import diagnosed, load, must_differ
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.examination import examined
from tfdoctor.recording import MANIFEST, Recording
from tfdoctor.recording.folders import whole
from tfdoctor.report import comparison
from tfdoctor.report.formats import llm, md
from tfdoctor.report.rule_page import rule_page
from tfdoctor.rulebook.book import Rulebook, rulebook
from tfdoctor.rulebook.config import Config
from tfdoctor.rulebook.values import hint
from tfdoctor.terms.errors import ConfigError, InputError, TfdoctorError
from tfdoctor.terms.limits import ROOM, TOO_MUCH_MEMORY
from tfdoctor.terms.record import Record
from tfdoctor.terms.text import name

MOST_RUNS = 50  # Recordings in a list, the newest first: more would fill a model's context
DEEP = 6  # Folders below a served one in which recordings are looked for

CUT = "\n… cut here.\n"


@cache
def _rules() -> Rulebook:
    """Return the rules of tfdoctor alone: rules of the user's own are code, which a client must not run."""
    return rulebook(Config())


class ServedRuns(Record):
    """The recordings below some folders, which are resolved paths; other paths raise an `InputError`."""

    folders: Sequence[Path]

    def listed(self) -> str:
        """Return the recordings, the newest first, each with its time and its command."""
        patterns = [f"{'*/' * depth}{MANIFEST}" for depth in range(DEEP)]
        files = ((base, file.resolve()) for base in self.folders for one in patterns for file in base.glob(one))
        manifests = {file for base, file in files if file.is_relative_to(base)}
        found = sorted((-one.stat().st_mtime, one.parent) for one in manifests)
        times = [(datetime.fromtimestamp(-at, UTC).isoformat(" ", "minutes"), run) for at, run in found[:MOST_RUNS]]
        lines = [f"- {run}, recorded {time}" for time, run in times]
        if len(found) > MOST_RUNS:
            lines.append(f"… {len(found) - MOST_RUNS:,} older ones")
        return "\n".join(lines) or f"No recording below {', '.join(map(str, self.folders))}."

    def report(self, run: str) -> str:
        """Return the report of a run: its account, findings with edits, and profile, at most llm.LIMIT bytes."""
        return llm.render(self._diagnosis(run))

    def patch(self, run: str) -> str:
        """Return the changes that can be applied automatically, as a diff for ``git apply``; "" without any."""
        return self._diagnosis(run).patch.decode("utf-8", errors="replace")

    def difference(self, before: str, after: str) -> str:
        """Return what differs between two runs of a program: the step, its parts and its findings."""
        paths = self.inside(before), self.inside(after)
        must_differ(paths)
        one, other = (load(path, self._examined, _rules().rules) for path in paths)
        told = md.as_it_is(comparison.render("md", compare([one], [other], in_ms=None)))
        if len(told.encode()) <= llm.LIMIT:
            return told
        return told.encode()[: llm.LIMIT - len(CUT.encode())].decode(errors="ignore") + CUT

    def inside(self, path: str) -> Path:
        """Return a path that is in the folders, links resolved.

        Raises:
            InputError: it is elsewhere, or there is nothing.
        """
        for place in self._places(path):
            if os.path.exists(place):  # noqa: PTH110 - False where no file can have this name
                return place
        served = ", ".join(map(str, self.folders))
        raise InputError(
            f"{name(path)!r} is not in the folders of this server ({served}): list_runs has its recordings."
        )

    def new(self, path: str) -> Path:
        """Return a path that is in the folders, where nothing is yet.

        Raises:
            InputError: it is elsewhere, or there is something.
        """
        place = next(self._places(path), None)
        if place is None or os.path.exists(place):  # noqa: PTH110 - as above
            raise InputError(f"{name(path)!r} must be a new folder in the folders of this server")
        return place

    def _places(self, path: str) -> Iterator[Path]:
        """Yield the paths in the folders that a text may mean, links resolved; nothing need be there."""
        for folder in () if "\0" in path else self.folders:
            place = Path(os.path.realpath(folder / path))
            if any(map(place.is_relative_to, self.folders)):
                yield place

    def _diagnosis(self, run: str) -> Diagnosis:
        return diagnosed(self.inside(run), self._examined, _rules().rules)

    def _examined(self, recording: Recording, title: str) -> Diagnosis:
        """Examine a recording of which nothing lies elsewhere, where a link in it may lead."""
        folders = map(whole, filter(None, (recording.root, *recording.workers)))
        for place in (*folders, *recording.traces):
            self.inside(str(place.absolute()))
        return examined(recording, title, _rules())


def explained(rule: str) -> str:
    """Return the page of a rule.

    Raises:
        ConfigError: there is no such rule.
    """
    known = {one.name: one for one in _rules().rules}
    if rule not in known:
        near = hint(rule, known, f"the rules are {', '.join(known)}.")
        raise ConfigError(f"unknown rule {rule[:60]!r}: {near}")
    return rule_page(known[rule])


def main() -> None:
    """Answer the question."""
    ROOM.begin()
    folders, method, arguments = json.load(sys.stdin)
    try:
        answer: str = getattr(ServedRuns([*map(Path, folders)]), method)(*arguments)
    except TfdoctorError as error:
        sys.stderr.buffer.write(str(error).encode("utf-8", "backslashreplace"))
        sys.exit(error.exit_code)
    except MemoryError:
        sys.exit(TOO_MUCH_MEMORY)
    sys.stdout.buffer.write(answer.encode("utf-8", "backslashreplace"))


if __name__ == "__main__":
    main()
