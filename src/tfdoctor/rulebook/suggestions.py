"""Suggestions for misspelled names."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, ignoring case; None where none is similar."""
    lowered = {str(name).lower(): str(name) for name in sorted(known)}
    matches = get_close_matches(word.lower(), lowered, n=1)
    return lowered[matches[0]] if matches else None


def hint(word: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?", or all known words where none is similar."""
    words = sorted({str(name) for name in known})
    near = nearest(word, words)
    if near:
        return f"did you mean {near!r}?"
    return f"choose from {', '.join(words)}." if words else "there are none."
