"""Which optimizers of a script keep a learning rate of zero."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent


class Rate:
    """Stands for a variable."""

    def __init__(self, value: float) -> None:
        self.value = value

    def numpy(self) -> float:
        return self.value


@pytest.fixture
def rates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    eager = SimpleNamespace(executing_eagerly=lambda: True)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__file__="/tf/__init__.py"))
    monkeypatch.setitem(sys.modules, "tensorflow.python", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager", SimpleNamespace(context=eager))
    return agent.load("program.rates").ZeroRates(agent.load("process.journal").Journal(str(tmp_path)))


def make(rates: Any, rate: object, name: str = "adam") -> None:
    """Make an optimizer, given this rate; a number becomes a variable."""
    given = rate.value if isinstance(rate, Rate) else rate
    rates.made(SimpleNamespace(name=name, _learning_rate=rate), given)


def names(rates: Any) -> list[str]:
    return [one["name"] for one in rates.describe()]


def test_a_rate_of_zero_is_told_as_long_as_it_is_zero(rates: Any) -> None:
    rate = Rate(0.0)
    make(rates, rate)
    make(rates, Rate(0.1), "sgd")
    assert names(rates) == ["adam"]
    rate.value = 1e-4
    assert names(rates) == []
    rate.value = 0.0
    assert names(rates) == []  # it has trained meanwhile


def test_a_schedule_is_no_number(rates: Any) -> None:
    make(rates, lambda step: 0.0 * step)
    assert names(rates) == []


def test_two_optimizers_of_one_name_are_not_told_apart(rates: Any) -> None:
    for rate in (0.0, 0.0, 0.0):
        make(rates, Rate(rate))
    assert names(rates) == []


def test_a_rate_that_falls_to_zero_has_trained(rates: Any) -> None:
    rate = Rate(1e-3)
    make(rates, rate)
    rate.value = 0.0  # as at the end of a schedule that a callback sets
    assert names(rates) == []
