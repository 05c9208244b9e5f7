"""Which files of its folder a run wrote: those whose inodes changed while it ran, whatever program did it."""

import os
from collections.abc import Iterator
from pathlib import Path

from tfdoctor.recording.manifest import WrittenFiles

# Files that are looked at, some 0.3 s on a local disk; in a larger folder the answer is unknown.
MOST_ENTRIES = 50_000
NAMES = 20  # Names that are kept
NOT_SHOWN = frozenset((".git", "__pycache__"))  # Folders that programs keep for themselves


def written_since(folder: Path, unix_ns: int, recording: Path) -> WrittenFiles | None:
    """Return the files below a folder that changed since a moment, without those of the recording.

    A file counts by the time of its last change of any kind (``st_ctime_ns``), which no program can set. Links are
    not followed, and files that were removed do not show. None where there are too many files to look at.
    """
    names = []
    for number, entry in enumerate(_files(folder, recording)):
        if number == MOST_ENTRIES:
            return None
        try:
            changed_ns = entry.stat(follow_symlinks=False).st_ctime_ns
        except OSError:  # removed meanwhile
            continue
        if changed_ns >= unix_ns:
            names.append(os.path.relpath(entry.path, folder))
    return WrittenFiles(len(names), tuple(sorted(names)[:NAMES]))


def _files(folder: Path, recording: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files below a folder; those of a folder that cannot be read are left out."""
    ahead = [str(folder)]
    while ahead:
        try:
            with os.scandir(ahead.pop()) as entries:
                found = list(entries)
        except OSError:
            continue
        for entry in found:
            if not entry.is_dir(follow_symlinks=False):
                yield entry
            elif entry.name not in NOT_SHOWN and entry.path != str(recording):
                ahead.append(entry.path)
