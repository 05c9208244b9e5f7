"""A test for each of several rows of values: one mark for all of its parameters."""

import re
from collections.abc import Callable, Iterable
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tfdoctor.facts.chart import Unavailable

T = TypeVar("T", bound=Callable[..., object])
Known = TypeVar("Known")
Ids = Iterable[Any] | Callable[[Any], Any] | None


def text_parts(path: Path) -> dict[str, str]:
    """Return the parts of a text file by their titles: a line each, behind ##."""
    _, *found = re.split(r"(?m)^## (.*)\n", path.read_text("utf-8"))
    return dict(zip(found[::2], found[1::2], strict=True))


def sure(value: Known | None) -> Known:
    """Return what must be there."""
    assert value is not None
    return value


def cases(*rows: tuple[Any, ...], ids: Ids = None) -> Callable[[T], T]:
    """Have a test run with each row: the values of its first parameters, in their order."""

    def marked(test: T) -> T:
        names = [*signature(test).parameters][: len(rows[0]) if rows else 1]
        rowed: T = pytest.mark.parametrize(names, rows, ids=ids)(test)
        return rowed

    return marked


def each(*values: Any, ids: Ids = None) -> Callable[[T], T]:
    """Have a test run with each value of its first parameter."""
    return cases(*((value,) for value in values), ids=ids)


def answers(ask: Callable[..., object], *rows: tuple[Any, ...]) -> Callable[..., None]:
    """Return a test: what is asked of the first values of each row is its last one (reals: nearly)."""

    def words(row: tuple[Any, ...]) -> str:
        return " ".join(str(value) for value in row if isinstance(value, str | int | float))[:80]

    @each(*rows, ids=[f"{number} {words(row)}" for number, row in enumerate(rows)])
    def test(row: tuple[Any, ...]) -> None:
        *given, expected = row
        found = ask(*given)
        same = found is expected if isinstance(expected, bool | None) else found == nearly(expected)
        assert same, f"{found!r} is not {expected!r}"

    return test


def nearly(value: Any) -> Any:
    """Return what is equal to a value also where its real numbers differ by as little as rounding."""
    match value:
        case float():
            return pytest.approx(value)
        case dict():
            return {key: nearly(one) for key, one in value.items()}
        case tuple() | list():
            return type(value)(map(nearly, value))
        case _:
            return value


def unavailable(*rows: tuple[Callable[[], object], str]) -> Callable[..., None]:
    """Return a test: what each row asks for is unavailable, for a reason that matches."""

    @cases(*rows, ids=[f"{number} {why}" for number, (_, why) in enumerate(rows)])
    def test(asked: Callable[[], object], why: str) -> None:
        with pytest.raises(Unavailable, match=why or None):
            asked()

    return test
