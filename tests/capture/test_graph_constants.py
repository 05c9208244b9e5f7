"""Constants of one number: what the agent notes of their value."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent
from tfdoctor.recording.program import Attributes
from tfdoctor.recording.typed import read


def noted(stored: dict[str, list[float]], rank: int = 0) -> float | str | None:
    empty: dict[str, list[float]] = {name: [] for name in ("float_val", "double_val", "int_val", "int64_val")}
    value = SimpleNamespace(**(empty | stored))
    op: Any = SimpleNamespace(
        outputs=[SimpleNamespace(shape=SimpleNamespace(rank=rank))], get_attr={"value": value}.get
    )
    number: float | str | None = agent.load("program.graphs").number_of(op)
    return number


@pytest.mark.parametrize("name", ["float_val", "double_val", "int_val", "int64_val"])
def test_a_number_of_each_type(name: str) -> None:
    assert noted({name: [2.0]}) == 2.0


def test_what_is_no_number_is_not_noted() -> None:
    assert noted({"float_val": [2.0]}, rank=1) is None
    assert noted({}) is None


@pytest.mark.parametrize("number", [float("-inf"), float("inf"), float("nan"), -3.4e38, 1e308])
def test_a_number_of_any_size_is_read_as_it_was(number: float) -> None:
    """JSON has neither infinity nor NaN, and a mask of attention adds the least number of float32."""
    written = json.dumps({"scalar": noted({"double_val": [number]})}, allow_nan=False)
    faults: list[str] = []
    assert str(read(Attributes, json.loads(written), faults).scalar) == str(number)
    assert not faults
