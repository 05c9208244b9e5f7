"""The files of the user: read only where they are unchanged since the recording; their paths in a repository."""

import hashlib
import posixpath
from collections.abc import Iterable, Iterator
from pathlib import Path

from tfdoctor.diagnosis.results import Result
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.source_code.splice import Declined
from tfdoctor.source_code.tree import decoded
from tfdoctor.terms.files import NotReadableError, content
from tfdoctor.terms.humanize import location
from tfdoctor.terms.record import Record
from tfdoctor.terms.verdict import Finding, Location, Table


class SourceFile(Record):
    """A Python file, as bytes and as text; ``path`` is its name in the report.

    ``name`` is its path in a patch: relative to the folder of the run, with links resolved, or "";
    ``within`` is the path of that folder in its git repository: "jobs/train/", or "".
    """

    path: str
    data: bytes
    encoding: str
    text: str
    name: str = ""
    within: str = ""

    @classmethod
    def read(cls, path: str, data: bytes, name: str = "", within: str = "") -> "SourceFile":
        """Decode a file as Python does: by its byte order mark, its first two lines, or as UTF-8.

        Raises:
            Declined: it is not text of that encoding, or another text has the same bytes.
        """
        try:
            encoding, text = decoded(data)
            same = text.encode(encoding) == data
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise Declined(f"{path} cannot be read as Python ({error})") from error
        if not same:
            raise Declined(f"writing {path} in {encoding} would change other parts of the file")
        return cls(path, data, encoding, text, name, within)

    def encoded(self, text: str) -> bytes:
        """Return the bytes of a text in the encoding of the file."""
        return text.encode(self.encoding)


class Sources:
    """The files of a recording, each read once."""

    def __init__(self, recording: Recording) -> None:
        self.program = recording.program or ProgramRecord()
        self.folders = recording.manifest.folders if recording.manifest else ()
        self.places = Places.of(recording)
        self.hashes = self.program.sources
        self._read = dict[str, SourceFile]()

    def __getitem__(self, path: str) -> SourceFile:
        """Return the file that a location names, from a folder of the run or from this one, such as another clone.

        Raises:
            Declined: it was not found, or has changed.
        """
        if path in self._read:
            return self._read[path]
        expected = self.hashes[self.recorded(path)]
        exists = False
        for folder in folders_of(self.folders):
            file = existing(folder / path)
            data = _bytes(file, path) if file else None
            exists = exists or data is not None
            if file and data is not None and hashlib.sha256(data).hexdigest() == expected:
                # Its name is that below the folder, with links resolved, as git needs it.
                name = file.relative_to(folder).as_posix() if file.is_relative_to(folder) else ""
                self._read[path] = SourceFile.read(path, data, name, within_repository(folder))
                return self._read[path]
        if exists:
            raise Declined(f"{path} has changed since the recording: record the run again")
        raise Declined(f"{path} was not found")

    def recorded(self, path: str) -> str:
        """Return the absolute path, as recorded, of the one file that reports show as this path.

        Raises:
            Declined: the recording has none, or several.
        """
        recorded = [name for name in self.hashes if self.places.shown(name) == path]
        if not recorded:
            raise Declined(f"the recording has no hash of {path}, so the file may have changed")
        if len(recorded) > 1:
            raise Declined(f"the run has more than one {path}")
        return recorded[0]

    def trains(self) -> Location | None:
        """Return the file that calls fit, else the only file, with line 0 (unknown); None when there is none."""
        if at := self.program.run.fit_at:
            return Location(self.places.shown(at[0]), 0)
        if len(self.hashes) != 1:
            return None
        return Location(self.places.shown(next(iter(self.hashes))), 0)


def existing(path: Path) -> Path | None:
    """Return a recorded path with links resolved; None where nothing is there, or nothing can be."""
    try:
        return path.resolve(strict=True)
    except (OSError, ValueError):
        return None


def folders_of(recorded: Iterable[str]) -> list[Path]:
    """Return the folders to find files in: those of the run that exist here, and the current one."""
    found = map(existing, (*map(Path, recorded), Path.cwd()))
    return list(dict.fromkeys(filter(None, found)))


def within_repository(folder: Path) -> str:
    """Return the path of a folder in its git repository, with a slash at the end, or ""."""
    real = folder.resolve()
    folders = (real, *real.parents)
    top = next((parent for parent in folders if (parent / ".git").exists()), real)
    return "" if top == real else f"{real.relative_to(top).as_posix()}/"


def _bytes(file: Path, path: str) -> bytes | None:
    """Return what is in a file, or None of one that is gone or may not be read.

    Raises:
        Declined: it is no file of a program.
    """
    try:
        return content(file)
    except NotReadableError as error:
        raise Declined(f"{path} is no file of a program ({error.strerror})") from error
    except OSError:
        return None


def repository_paths(recording: Recording, results: Iterable[Result]) -> dict[str, str]:
    """Return the path in the repository of each file that findings name and that lies in one, by its name there."""
    names: dict[str, None] = {}
    for result in results:
        names |= dict.fromkeys(at.path for at in locations(result))
        names |= dict.fromkeys(place.path for place in result.fallbacks)
    found = ((name, _in_repository(recording, name)) for name in names)
    return {name: path for name, path in found if path}


def line_hashes(recording: Recording, results: Iterable[Result]) -> dict[str, str]:
    """Return the hash of each line that findings name, by its place as text, as far as the recording has it."""
    program, places = recording.program or ProgramRecord(), Places.of(recording)
    paths = {places.shown(path): path for path in program.lines}
    named = dict.fromkeys(at for result in results for at in locations(result))
    hashes = {location(at): program.line(paths.get(at.path, ""), at.line) for at in named}
    return {at: digits for at, digits in hashes.items() if digits}


def locations(result: Result) -> Iterator[Location]:
    """Yield the places of a finding: those of its edits, of its remedies, and of its evidence."""
    if not isinstance(result.outcome, Finding):
        return
    yield from (edit.at for edit in result.edits if edit.at)
    yield from (remedy.at for remedy in result.outcome.remedies if remedy.at)
    tables = (item for item in result.outcome.evidence if isinstance(item, Table))
    cells = (cell for table in tables for row in table.rows for cell in row)
    yield from (cell for cell in cells if isinstance(cell, Location))


def _in_repository(recording: Recording, name: str) -> str:
    """Return a file's path in its repository; "" of one that lies outside, or that does not exist."""
    folders = recording.manifest.folders if recording.manifest else ()
    for folder in folders_of(folders):
        if (file := existing(folder / name)) and file.is_file():
            within = posixpath.normpath(posixpath.join(within_repository(folder), name))
            return "" if within.startswith(("/", "../")) else within
    return ""
