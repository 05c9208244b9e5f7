"""Which known word an unknown one was meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most alike, be its letters small or large; None where none is near."""
    small = {str(one).lower(): str(one) for one in sorted(known)}
    near = get_close_matches(word.lower(), small, n=1)
    return small[near[0]] if near else None


def hint(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?", or all that is known where nothing is near."""
    words = sorted({str(one) for one in known})
    near = nearest(word, words)
    if near:
        return f"did you mean {near!r}?"
    return f"known are {', '.join(words)}." if words else "there is none."
