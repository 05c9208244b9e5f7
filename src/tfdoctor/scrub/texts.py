"""Every text within a value: to be read, or to be replaced. What a rule says of itself is not among them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from tfdoctor.rule import Rule


def texts(value: object) -> Iterator[str]:
    """Yield every text in a value of dataclasses, tuples, lists and mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, tuple | list):
        for each in value:
            yield from texts(each)
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
            return tuple(rewritten(each, words) for each in value)
        case Mapping():
            return {key: rewritten(each, words) for key, each in value.items()}
        case _ if is_dataclass(value) and not isinstance(value, type):
            parts = {field.name: getattr(value, field.name) for field in fields(value)}
            return replace(value, **rewritten(parts, words))
        case _:
            return value
