"""The user's own lines before and after a change, short enough for a terminal."""

import os.path
import re
from itertools import zip_longest

from tfdoctor.terms.humanize import counted
from tfdoctor.terms.text import shorten

LINES = 8  # Lines of a change
WIDEST = 160  # Characters of a line; longer ones are cut around what differs
BEFORE = 50  # Characters of a long line before the part that differs

CUT = " … "

# By the marks of their lines: those that go with those that come in their place, then those that stay.
HUNKS = re.compile(r"(-*)(\+*)( *)")


def brief(diff: str) -> list[str]:
    """Return the lines of a diff from the first that changes on, each cut where it differs from its partner."""
    lines = diff.splitlines()
    first = next((at for at, line in enumerate(lines) if line[:1] in "-+"), 0)
    start = max(0, first - 1) if len(lines) > LINES else 0
    shown, left_out = lines[start : start + LINES], len(lines) - start - LINES
    cut: list[str] = []
    for hunk in HUNKS.finditer("".join(line[:1] or "." for line in shown)):
        gone, come, stay = (shown[slice(*hunk.span(group))] for group in (1, 2, 3))
        pairs = list(zip_longest(gone, come, fillvalue=""))
        cut += [_around(old, new) for old, new in pairs if old]
        cut += [_around(new, old) for old, new in pairs if new]
        cut += [shorten(line, WIDEST) for line in stay]
    return [*cut, f"  … {counted(left_out, 'more line')}"] if left_out > 0 else cut


def _around(line: str, other: str) -> str:
    """Return a marked line, of a long one so much around the part in which it differs as there is room for."""
    if len(line) <= WIDEST:
        return line
    mark, text, theirs = line[:2], line[2:], other[2:]
    start = _alike(text, theirs)
    end = len(text) - _alike(text[start:][::-1], theirs[start:][::-1])
    room = WIDEST - len(mark) - 2 * len(CUT)
    if end - start >= room - BEFORE:
        return f"{mark}{CUT.lstrip() if start else ''}{shorten(text[start:], room)}"
    first = max(0, min(start - BEFORE, len(text) - room))
    last = first + room
    before, after = CUT.lstrip() if first else "", CUT.rstrip() if last < len(text) else ""
    return f"{mark}{before}{text[first:last]}{after}"


def _alike(*texts: str) -> int:
    return len(os.path.commonprefix(texts))  # noqa: RUF071 - of characters
