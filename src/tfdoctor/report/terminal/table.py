"""Text, tables and the user's own lines on a terminal: no line ends between a number and its unit."""

import os.path
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from tfdoctor.terms.text import counted, shorten, unbroken

# Stands for a space that ends no line: to rich, which wraps at any space, it is a letter.
HELD = "\N{OBJECT REPLACEMENT CHARACTER}"


def held(text: Text) -> Text:
    """Return a text of the same length and style with a letter between each number and its unit."""
    kept = text.copy()
    kept.plain = unbroken(text.plain, HELD)
    return kept


class HoldingConsole(Console):
    """A console that wraps no line between a number and its unit; what it prints has `HELD` there."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of a renderable, as rich does for each text and each cell of a table."""
        text = held(renderable) if isinstance(renderable, Text) else renderable
        return super().render(text, options)


GAP = 2  # Characters between two columns
# Share of the width from which on a word is broken, so that one long name leaves room for other columns.
LONG_WORD = 0.65
BROKEN_WORD = 1 / 3  # Share of the width that such a word asks for


def fitted(
    rows: Iterable[Sequence[Text]], width: int, *, header: Sequence[str] = (), numbers: Iterable[int] = ()
) -> Table:
    """Return rows as a table of at most so many characters; ``numbers`` are the right-aligned columns."""
    cells, right = list(rows), frozenset(numbers)
    heads = [Text(name, style="dim") for name in header]
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, show_header=bool(header))
    columns = list(zip(*([heads] if header else []), *cells, strict=True))
    room = width - GAP * (len(columns) - 1)
    least, most = ([max(map(size, column)) for column in columns] for size in (_word, _line))
    for at, characters in enumerate(widths(least, most, room)):
        table.add_column(
            heads[at] if header else "",
            width=characters,
            justify="right" if at in right else "left",
            overflow="fold",
        )
    for row in cells:
        table.add_row(*row)
    return table


def natural_width(rows: Sequence[Sequence[Text]]) -> int:
    """Return the characters of a table in which no line is wrapped."""
    columns = list(zip(*rows, strict=True))
    return sum(max(map(_line, column)) for column in columns) + GAP * (len(columns) - 1)


def widths(least: Sequence[int], most: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns by their longest words and their longest lines, in characters.

    Without room for all words, the longest of them are broken. What is left goes to the columns of most lines.
    """
    broken = int(BROKEN_WORD * room)
    words = [max(1, word if word <= LONG_WORD * room else broken) for word in least]
    limits = range(max(words, default=1), 1, -1)
    limit = next((one for one in limits if sum(min(one, word) for word in words) <= room), 1)
    found = [min(limit, word) for word in words]
    for _ in range(room - sum(found)):
        lines = [line / width for line, width in zip(most, found, strict=True)]
        tallest = max(lines, default=0)
        if tallest <= 1:
            break
        found[lines.index(tallest)] += 1
    return found


def _word(cell: Text) -> int:
    """Return the cells of the longest word."""
    return max((Text(word).cell_len for word in held(cell).plain.split()), default=0)


def _line(cell: Text) -> int:
    """Return the cells of the longest line."""
    return max((Text(line).cell_len for line in cell.plain.splitlines()), default=0)


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
