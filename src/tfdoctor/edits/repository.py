"""Where the files that a report names lie in their git repository, and the hashes of the lines that it names."""

import posixpath
from collections.abc import Iterable, Iterator

from tfdoctor.diagnosis.results import Result
from tfdoctor.edits.source import existing, folders_of, within_repository
from tfdoctor.facts.run.program import Places
from tfdoctor.recording import Recording
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.terms.humanize import location
from tfdoctor.terms.verdict import Finding, Location, Table


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
