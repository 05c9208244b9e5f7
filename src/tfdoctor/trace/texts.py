"""Texts of a trace, each kept once."""

from tfdoctor.terms.text import cut

# Characters to remove from names: control characters (TensorFlow 2.4 wrote names that begin with NUL), and those
# that change the direction of text on a terminal.
HIDDEN = dict.fromkeys([*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def clean(text: str) -> str:
    """Return a text without characters that a reader cannot see, and without the middle of an endless one."""
    return cut(text if text.isprintable() else text.translate(HIDDEN))


class Texts:
    """A table of texts, to which columns refer by position."""

    def __init__(self) -> None:
        self._positions: dict[str | bytes, int] = {}

    def add(self, text: str | bytes) -> int:
        """Return the position of a text."""
        return self._positions.setdefault(text, len(self._positions))

    def table(self) -> tuple[str | bytes, ...]:
        """Return the texts by position."""
        return tuple(self._positions)
