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
    return agent.load("program.rates").ZeroRates(
        agent.load("process.journal").Journal(str(tmp_path))
    )


def optimizer(rate: object, name: str = "adam") -> Any:
    return SimpleNamespace(name=name, _learning_rate=rate)


def names(rates: Any) -> list[str]:
    return [one["name"] for one in rates.describe()]


def test_a_rate_of_zero_is_told_as_long_as_it_is_zero(rates: Any) -> None:
    rate = Rate(0.0)
    rates.made(optimizer(rate))
    rates.made(optimizer(Rate(0.1), "sgd"))
    assert names(rates) == ["adam"]
    rate.value = 1e-4
    assert names(rates) == []
    rate.value = 0.0
    assert names(rates) == []  # it has trained meanwhile


def test_a_schedule_is_no_number(rates: Any) -> None:
    rates.made(optimizer(lambda step: 0.0 * step))
    assert names(rates) == []


def test_two_optimizers_of_one_name_are_not_told_apart(rates: Any) -> None:
    for rate in (0.0, 0.0, 0.0):
        rates.made(optimizer(Rate(rate)))
    assert names(rates) == []
