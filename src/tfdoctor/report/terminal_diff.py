"""The user's own lines before and after a change, short enough for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest

from tfdoctor.terms.humanize import counted
from tfdoctor.terms.text import shorten

LINES = 8  # Lines of a change
WIDEST = 160  # Characters of a line; longer ones are cut around what differs
BEFORE = 50  # Characters of a long line before the part that differs

CUT = " … "


def brief(diff: str) -> list[str]:
    """Return the lines of a diff from the first that changes on, each cut around its change."""
    lines = diff.splitlines()
    first = next((at for at, line in enumerate(lines) if line[:1] in "-+"), 0)
    start = max(0, first - 1) if len(lines) > LINES else 0
    shown, left_out = lines[start : start + LINES], len(lines) - start - LINES
    more = [f"  … {counted(left_out, 'more line')}"] if left_out > 0 else []
    return [*_cut(shown), *more]


def _cut(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines; of each that goes, the part in which it differs from the one that comes."""
    hunk: list[str] = []
    for line in lines:
        if hunk and not (hunk[-1][:1] == "-" and line[:1] in "-+") and hunk[-1][:1] != line[:1]:
            yield from _hunk(hunk)
            hunk = []
        hunk.append(line)
    yield from _hunk(hunk)


def _hunk(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines that go, then lines that come, each cut where it differs from its partner."""
    marks = {mark: list(mine) for mark, mine in groupby(lines, key=lambda line: line[:1])}
    gone, come = marks.get("-", []), marks.get("+", [])
    pairs = list(zip_longest(gone, come, fillvalue=""))
    yield from (_around(old, new) for old, new in pairs if old)
    yield from (_around(new, old) for old, new in pairs if new)
    yield from (shorten(line, WIDEST) for line in marks.get(" ", ()))


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


def _alike(first: str, second: str) -> int:
    """Return the length of the common start of two texts."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
