"""Markdown pages and wrapped lines on a terminal."""

import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.table import Table

WIDEST = 100  # Columns of a page in the terminal
NARROWEST = 25  # Fewest columns to wrap to: narrower lines would hold a word each


class _FoldingTable(TableElement):
    """Continues words that are too long for their cell on the next line; rich would cut them."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class _Page(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": _FoldingTable}


def rendered(page: str) -> str:
    """Return a page as the terminal shows it."""
    console = Console(width=_width(), force_terminal=True)
    with console.capture() as captured:
        console.print(_Page(page))
    return captured.get().rstrip("\n")


def wrapped(lines: Iterable[str]) -> str:
    """Return lines as they are, or wrapped on a terminal, each with its own indent."""
    if not sys.stdout.isatty():
        return "\n".join(lines)
    shown: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        broken = textwrap.wrap(line, _width(), subsequent_indent=indent, break_on_hyphens=False)
        shown += broken or [""]
    return "\n".join(shown)


def _width() -> int:
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))
