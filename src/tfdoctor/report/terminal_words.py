"""What a line on a terminal never ends within: a number and its unit."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from tfdoctor.terms.text import unbroken

# Stands for a space that ends no line: to rich, which wraps at any space, it is a letter.
HELD = "\N{OBJECT REPLACEMENT CHARACTER}"


def held(text: Text) -> Text:
    """Return a text of the same length and style with a letter between each number and its unit."""
    kept = text.copy()
    kept.plain = unbroken(text.plain, HELD)
    return kept


class HoldingConsole(Console):
    """A console that wraps no line between a number and its unit; `released` has the spaces back."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of a renderable, as rich does for each text and each cell of a table."""
        text = held(renderable) if isinstance(renderable, Text) else renderable
        return super().render(text, options)


def released(printed: str) -> str:
    """Return what was printed with its spaces."""
    return printed.replace(HELD, " ")
