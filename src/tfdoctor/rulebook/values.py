"""Values of settings: numbers that are checked, and how a message shows a wrong value or a misspelled name."""

import math
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

from tfdoctor.terms.errors import ConfigError
from tfdoctor.terms.record import Record

LONGEST = 60  # Characters of a wrong value that a message quotes


class Key(Record):
    """A setting: what reads its value, given with its place for messages, and what the reference says of it."""

    read: Callable[[object, str], Any]
    example: str  # or the default
    meaning: str
    at_least: bool = False  # whether a limit is the smallest value that is enough, not the largest


def number(value: object, where: str) -> float:
    """Return a finite number.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where} must be a number, not {shown(value)}.")
    try:
        amount = float(value)
    except OverflowError:
        amount = math.inf
    if not math.isfinite(amount):
        raise ConfigError(f"{where} must be a finite number, not {shown(value)}.")
    return amount


# Rules of earlier versions, and those that report what they found.
SUCCEEDED = {"python-in-loop": "between-steps"}


def key_name(name: str) -> str:
    """Return a key as TOML writes it, on one line."""
    return name if re.fullmatch(r"[\w-]{1,60}", name) else repr(name[:LONGEST])


def shown(value: object) -> str:
    """Return a value as TOML writes it, or its type where the value is long."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a table"
        case str() | int() | float() | list() if len(repr(value)) <= LONGEST:
            return repr(value)
        case _:
            return f"a long {type(value).__name__}"


def hint(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return "did you mean 'x'?", ignoring case; where no word is similar, ``otherwise``, or all known words."""
    if word in SUCCEEDED:
        return f"{SUCCEEDED[word]!r} reports it now."
    words = sorted({str(name) for name in known})
    lowered = {name.lower(): name for name in words}
    for near in get_close_matches(word.lower(), lowered, n=1):
        return f"did you mean {lowered[near]!r}?"
    return otherwise or (f"choose from {', '.join(words)}." if words else "there are none.")
