"""Reads or replaces all texts in a value, except those in the documentation of rules."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TypeVar

from tfdoctor.diagnosis.rule import Rule
from tfdoctor.terms.record import rebuilt

T = TypeVar("T")


def texts(value: object) -> Iterator[str]:
    """Yield every text in a value of dataclasses, tuples, lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from texts(part)
    elif is_dataclass(value) and not isinstance(value, Rule):
        for field in fields(value):
            yield from texts(getattr(value, field.name))


def rewritten(value: T, words: Callable[[str], str]) -> T:
    """Return a frozen value with every text in it replaced; numbers, kinds, keys and rules stay."""
    return rebuilt(value, lambda part: words(part) if isinstance(part, str) else part, kept=(Rule,))
