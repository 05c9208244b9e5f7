"""Reads or replaces all texts in a value, except those in the documentation of rules."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from tfdoctor.diagnosis.rule import Rule


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


def rewritten(value: Any, words: Callable[[str], str]) -> Any:  # noqa: ANN401 - of any type, and the same
    """Return a frozen value with every text in it replaced; numbers, kinds, keys and rules stay."""
    match value:
        case Enum() | Rule():
            return value
        case str():
            return words(value)
        case tuple():
            return tuple(rewritten(part, words) for part in value)
        case Mapping():
            return {key: rewritten(part, words) for key, part in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            parts = {field.name: getattr(value, field.name) for field in fields(value)}
            return replace(value, **rewritten(parts, words))
        case _:
            return value
