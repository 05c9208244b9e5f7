"""Edited files as one unified diff."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it is and as it will be; ``path`` is relative, with slashes."""

    path: str
    before: bytes
    after: bytes


def unified(changes: Iterable[FileChange], within: str = "") -> bytes:
    """Return a diff that ``git apply`` takes in the folder that the paths are relative to.

    ``within`` is where that folder is in its repository: "jobs/train/", or "" for the top of it or none.
    Where a path begins like that, git would take it for one from the top, and change another file: such
    a diff names all files from the top, in the header that git reads so.
    """
    ordered = sorted(changes, key=lambda change: change.path)
    ends = [f"{side}{change.path}" for change in ordered for side in ("", "a/", "b/")]
    if not within or not any(end.startswith(within) for end in ends):
        return b"".join(map(_file, ordered))
    from_top = [FileChange(f"{within}{one.path}", one.before, one.after) for one in ordered]
    return b"".join(_header(one) + _file(one) for one in from_top if one.before != one.after)


def _header(change: FileChange) -> bytes:
    return f"diff --git a/{change.path} b/{change.path}\n".encode()


def _file(change: FileChange) -> bytes:
    # Latin-1 maps each byte to a character and back, whatever the file's encoding is.
    before, after = (_lines(data.decode("latin-1")) for data in (change.before, change.after))
    # A tab ends a name that has spaces.
    end = "\t" if " " in change.path else ""
    names = (f"a/{change.path}{end}", f"b/{change.path}{end}")
    found = list(difflib.unified_diff(before, after, *names))
    head = "".join(found[:2]).encode()
    return head + "".join(map(_ended, found[2:])).encode("latin-1")


def _lines(text: str) -> list[str]:
    """Split at line feeds only, as git does."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
