"""Constants of one number: what the agent notes of their value."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent


def noted(stored: dict[str, list[float]], rank: int = 0) -> float | None:
    empty: dict[str, list[float]] = {
        name: [] for name in ("float_val", "double_val", "int_val", "int64_val")
    }
    value = SimpleNamespace(**(empty | stored))
    op: Any = SimpleNamespace(
        outputs=[SimpleNamespace(shape=SimpleNamespace(rank=rank))], get_attr={"value": value}.get
    )
    number: float | None = agent.load("program.graphs").number_of(op)
    return number


@pytest.mark.parametrize("name", ["float_val", "double_val", "int_val", "int64_val"])
def test_a_number_of_each_type(name: str) -> None:
    assert noted({name: [2.0]}) == 2.0


def test_what_is_no_number_or_fits_no_json_is_not_noted() -> None:
    assert noted({"float_val": [2.0]}, rank=1) is None
    assert noted({}) is None
    assert noted({"float_val": [float("inf")]}) is None
    assert noted({"float_val": [float("nan")]}) is None
