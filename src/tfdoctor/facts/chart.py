"""Measures facts on demand, each one once."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, cast

F = TypeVar("F")
R = TypeVar("R")


class Unavailable(Exception):  # noqa: N818 - it is an answer, not a fault
    """What a fact needs is missing; the message says what, and how to get it."""


class Fact(Protocol):
    """A frozen dataclass whose ``measure`` takes the recording's parts or other facts, by type."""

    measure: Callable[..., Any]


def needs(function: Callable[..., Any]) -> dict[str, type]:
    """Return what a function asks for: its parameters and their types."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    return {parameter.name: parameter.annotation for parameter in parameters}


class Chart:
    """The facts known about one recording."""

    def __init__(self, given: Iterable[object], missing: dict[type, Unavailable] | None = None) -> None:
        """Start with the parts of a recording, and the reasons for those it lacks."""
        self._known: dict[type, object] = {type(part): part for part in given}
        self._known |= missing or {}

    def fact(self, kind: type[F]) -> F:
        """Return the fact of this type, measuring it on first use.

        Raises:
            Unavailable: the recording does not hold what the fact needs.
        """
        if kind not in self._known:
            self._known[kind] = self._measure(kind)
        known = self._known[kind]
        if isinstance(known, Unavailable):
            raise known.with_traceback(None)
        return cast("F", known)

    def call(self, function: Callable[..., R]) -> R:
        """Call a function with the facts its signature names."""
        return function(**{name: self.fact(kind) for name, kind in needs(function).items()})

    def _measure(self, kind: type) -> object:
        try:
            return self.call(cast("type[Fact]", kind).measure)
        except Unavailable as missing:
            return missing
