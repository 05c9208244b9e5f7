"""Replacement of parts of a text: all other characters stay as they were written."""

import bisect
import os.path
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TypeVar

from tfdoctor.terms.record import Record

Found = TypeVar("Found")

_LINE_END = re.compile(r"\r\n|\n|\r")


class Declined(Exception):  # noqa: N818 - not an error: the report shows the generic example instead
    """An edit is not made; the message is a clause that says why."""


def only(found: Sequence[Found], why: str, noun: str = "call") -> Found:
    """Return the only one of those found.

    Raises:
        Declined: there are several, or none: "{}" in the message is "several calls" or "no call".
    """
    if len(found) != 1:
        raise Declined(why.replace("{}", f"several {noun}s" if found else f"no {noun}"))
    return found[0]


def known(found: Found | None, why: str) -> Found:
    """Return what was found.

    Raises:
        Declined: nothing was; the message says why.
    """
    if found is None:
        raise Declined(why)
    return found


def in_example(pattern: str, example: str, what: str) -> re.Match[str]:
    """Return what a pattern finds in the example of a rule.

    Raises:
        Declined: the example does not name it.
    """
    return known(re.search(pattern, example), f"the finding does not name {what}")


class Splice(Record, order=True):
    """Replace the characters from ``start`` to ``end``; at one place the smaller ``rank`` comes first."""

    start: int
    end: int
    rank: int
    new: str


def insert(at: int, new: str, rank: int = 0) -> Splice:
    """Return the splice that only adds."""
    return Splice(at, at, rank, new)


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with all splices done, each counted in the text as it was.

    Raises:
        Declined: two of them change the same characters.
    """
    ordered = sorted(set(splices))
    if overlapping(ordered):
        raise Declined("another change edits the same code")
    parts, done = [], 0
    for splice in ordered:
        parts += [text[done : splice.start], splice.new]
        done = splice.end
    return "".join([*parts, text[done:]])


def overlapping(splices: Iterable[Splice]) -> bool:
    """Say whether two different splices change the same characters, or one adds inside another."""
    return any(after.start < before.end for before, after in pairwise(sorted(set(splices))))


class Lines(Record):
    """Where the lines of a text begin."""

    text: str
    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> "Lines":
        """Split at line feeds, carriage returns and both, as Python does."""
        return cls(text, (0, *(match.end() for match in _LINE_END.finditer(text))))

    @property
    def newline(self) -> str:
        """How the first line ends."""
        line_end = _LINE_END.search(self.text)
        return line_end.group() if line_end else "\n"

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line (from 1) and a column (from 0, in bytes of UTF-8, as ``ast`` counts)."""
        start = self.starts[line - 1]
        before = self.text[start : start + column]
        return start + (column if before.isascii() else len(before.encode()[:column].decode()))

    def number(self, offset: int) -> int:
        """Return the line (from 1) that an offset is on."""
        return bisect.bisect_right(self.starts, offset)

    def place(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, both from 1."""
        return self.number(offset), offset - self.start(offset) + 1

    def start(self, offset: int) -> int:
        """Return where the line of an offset begins."""
        return self.starts[self.number(offset) - 1]

    def end(self, offset: int) -> int:
        """Return where the line of an offset ends, before its line break."""
        line_end = _LINE_END.search(self.text, offset)
        return line_end.start() if line_end else len(self.text)

    def next(self, offset: int) -> int:
        """Return where the line after that of an offset begins."""
        line_end = _LINE_END.search(self.text, offset)
        return line_end.end() if line_end else len(self.text)

    def indent(self, offset: int) -> str:
        """Return the white space in front of the line of an offset."""
        line = self.text[self.start(offset) : self.end(offset)]
        return line[: len(line) - len(line.lstrip(" \t"))]


def before_and_after(text: str, splices: Iterable[Splice]) -> tuple[int, str, str]:
    """Return the first line that changes (from 1), and the changed lines before and after.

    A line of dots separates lines that are not adjacent.
    """
    lines, before, after = Lines.of(text), [], []
    ordered = sorted(set(splices))
    for first, last, group in _regions(lines, ordered):
        start, end = lines.starts[first - 1], lines.end(lines.starts[last - 1])
        moved = [Splice(s.start - start, s.end - start, s.rank, s.new) for s in group]
        before.append(text[start:end])
        # A removed line is removed with its line break.
        after.append(spliced(text[start : max([end, *(s.end for s in group)])], moved))
    return lines.number(ordered[0].start), _joined(before), _joined(after)


def _regions(lines: Lines, ordered: list[Splice]) -> list[tuple[int, int, list[Splice]]]:
    """Return the runs of lines that change, each with its splices."""
    regions: list[tuple[int, int, list[Splice]]] = []
    for splice in ordered:
        first = lines.number(splice.start)
        last = lines.number(max(splice.start, splice.end - 1))
        if regions and first <= regions[-1][1] + 1:
            begin, end, splices = regions[-1]
            regions[-1] = (begin, max(last, end), [*splices, splice])
        else:
            regions.append((first, last, [splice]))
    return regions


def _joined(pieces: list[str]) -> str:
    """Return the pieces with line feeds and without the indent that all of their lines share."""
    cleaned = [_LINE_END.sub("\n", piece).strip("\n") for piece in pieces]
    lines = "\n...\n".join(piece for piece in cleaned if piece.strip()).split("\n")
    indents = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip() not in ("", "...")]
    shared = len(os.path.commonprefix(indents))  # noqa: RUF071 - of characters, as is meant
    return "\n".join(line if line == "..." else line[shared:] for line in lines)
