"""Which known word an unknown one was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def hint(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?", or all that is known where nothing is near."""
    words = sorted({str(one) for one in known})
    near = get_close_matches(word, words, n=1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known are {', '.join(words)}." if words else "there is none."
