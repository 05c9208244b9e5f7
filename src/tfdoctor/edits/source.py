"""A user's file, read only where it is what the recording saw."""

import hashlib
import tokenize
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from tfdoctor.edits.splice import Declined
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.verdict import Location


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of Python, as bytes and as text; ``path`` is as the report names it.

    ``name`` is what a patch calls it: relative to the folder of the run, and not by a link, or "";
    ``within`` is where that folder is in its repository of git: "jobs/train/", or "".
    """

    path: str
    data: bytes
    encoding: str
    text: str
    name: str = ""
    within: str = ""

    @classmethod
    def read(cls, path: str, data: bytes, name: str = "", within: str = "") -> "SourceFile":
        """Decode a file as Python does: by its mark, its first two lines, or as UTF-8.

        Raises:
            Declined: it is not text of that encoding, or another text has the same bytes.
        """
        try:
            encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
            text = data.decode(encoding)
            same = text.encode(encoding) == data
        except (SyntaxError, UnicodeError, LookupError) as error:
            raise Declined(f"{path} cannot be read as Python ({error})") from error
        if not same:
            raise Declined(f"{path} would change in other places when it is written in {encoding}")
        return cls(path, data, encoding, text, name, within)

    def encoded(self, text: str) -> bytes:
        """Return the bytes of a text in the encoding of the file."""
        return text.encode(self.encoding)


class Sources:
    """The files of a recording, each read once."""

    def __init__(self, recording: Recording) -> None:
        self.program = recording.program or ProgramRecord()
        self.cwd = recording.manifest.cwd if recording.manifest else ""
        self.hashes = self.program.sources
        self._read: dict[str, SourceFile | Declined] = {}

    def __getitem__(self, path: str) -> SourceFile:
        """Return the file that a location names.

        Raises:
            Declined: it is not at hand, or not as it was.
        """
        if path not in self._read:
            try:
                self._read[path] = self._checked(path)
            except Declined as why:
                self._read[path] = why
        found = self._read[path]
        if isinstance(found, Declined):
            raise Declined(str(found))
        return found

    def _checked(self, path: str) -> SourceFile:
        """Read it from where it ran, or from below the current folder: of another clone, say."""
        recorded = str(Path(self.cwd) / path)
        expected = self.hashes.get(recorded)
        if expected is None:
            raise Declined(f"the recording does not tell what {path} was when it ran")
        seen = False
        for folder in dict.fromkeys((Path(self.cwd), Path.cwd())):
            data = _bytes(folder / path)
            seen = seen or data is not None
            if data is not None and hashlib.sha256(data).hexdigest() == expected:
                return SourceFile.read(path, data, _name(folder, path), _within(folder))
        if seen:
            raise Declined(f"{path} has changed since the recording: record the run again")
        raise Declined(f"{path} is not at hand")

    def trains(self) -> Location | None:
        """Return the file that calls fit, else the only file, with line 0: unknown; None when no file is known."""
        prefix = f"{self.cwd}/" if self.cwd else ""
        if at := self.program.run.fit_at:
            return Location(at[0].removeprefix(prefix), 0)
        if len(self.hashes) != 1:
            return None
        return Location(next(iter(self.hashes)).removeprefix(prefix), 0)


def _name(folder: Path, path: str) -> str:
    """Return the path below a folder of the file itself, which git wants in place of a link to it."""
    real, root = (folder / path).resolve(), folder.resolve()
    return real.relative_to(root).as_posix() if real.is_relative_to(root) else ""


def _within(folder: Path) -> str:
    """Return where a folder is below the top of its repository, with a slash at the end, or ""."""
    real = folder.resolve()
    top = next((each for each in (real, *real.parents) if (each / ".git").exists()), real)
    return "" if top == real else f"{real.relative_to(top).as_posix()}/"


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:  # gone, a folder, or not ours to read: it is not at hand
        return None
