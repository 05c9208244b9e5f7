"""Edited files as one unified diff."""

import difflib
from collections.abc import Iterable
from dataclasses import replace
from io import StringIO

from tfdoctor.terms.record import Record


class FileChange(Record):
    """A file as it is and as it will be; ``path`` is relative, with slashes."""

    path: str
    before: bytes
    after: bytes


def unified(changes: Iterable[FileChange], within: str = "") -> bytes:
    """Return a diff that ``git apply`` accepts in the folder that the paths are relative to.

    ``within`` is the path of that folder in its repository: "jobs/train/", or "" at the top or without one.
    Where a path begins with it, git would read the path from the top and change another file. Such a diff
    names all files from the top, in the header that git reads.
    """
    ordered = sorted(changes, key=lambda change: change.path)
    ends = [f"{side}{change.path}" for change in ordered for side in ("", "a/", "b/")]
    if not within or not any(end.startswith(within) for end in ends):
        return b"".join(map(_file, ordered))
    changed = [change for change in ordered if change.before != change.after]
    from_top = [replace(change, path=f"{within}{change.path}") for change in changed]
    return b"".join(f"diff --git a/{change.path} b/{change.path}\n".encode() + _file(change) for change in from_top)


def _file(change: FileChange) -> bytes:
    # Latin-1 maps each byte to a character and back, whatever the file's encoding is.
    texts = (data.decode("latin-1") for data in (change.before, change.after))
    before, after = (list(StringIO(text)) for text in texts)  # lines end at line feeds only, as git's do
    # A tab ends a name with spaces.
    end = "\t" if " " in change.path else ""
    names = (f"a/{change.path}{end}", f"b/{change.path}{end}")
    lines = list(difflib.unified_diff(before, after, *names))
    head = "".join(lines[:2]).encode()
    ended = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines[2:])
    return head + "".join(ended).encode("latin-1")
