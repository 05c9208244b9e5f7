"""A test for each of several rows of values: one mark for all of its parameters."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, TypeVar

import pytest

from tfdoctor.facts.chart import Unavailable

T = TypeVar("T", bound=Callable[..., object])
Known = TypeVar("Known")


def cases(*rows: tuple[Any, ...], ids: Sequence[str] | None = None) -> Callable[[T], T]:
    """Have a test run with each row: the values of its first parameters, in their order."""

    def marked(test: T) -> T:
        names = [*signature(test).parameters][: len(rows[0])]
        rowed: T = pytest.mark.parametrize(names, rows, ids=ids)(test)
        return rowed

    return marked


def each(*values: Any, ids: Sequence[str] | None = None) -> Callable[[T], T]:
    """Have a test run with each value of its first parameter."""
    return cases(*((value,) for value in values), ids=ids)


def sure(value: Known | None) -> Known:
    """Return what must be there."""
    assert value is not None
    return value


def unavailable(*rows: tuple[Callable[[], object], str]) -> Callable[..., None]:
    """Return a test: what each row asks for is unavailable, for a reason that matches."""

    @cases(*rows, ids=[f"{number} {why}" for number, (_, why) in enumerate(rows)])
    def test(asked: Callable[[], object], why: str) -> None:
        with pytest.raises(Unavailable, match=why or None):
            asked()

    return test
