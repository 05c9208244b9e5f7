"""The Python numbers that a traced function gets, and the lines that assigned them."""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.capture import agent
from tests.capture.run.test_loops import USERS, caller

traced_arguments = agent.load("run.traced_arguments")


def told(call: str, before: str = "") -> list[tuple[str, str, int | None]]:
    """Return what is told of the call of a user's function `step(x, lr, kind)` in their `run`."""
    found: list[Any] = []

    def function(*args: object, **kwargs: object) -> None:
        made = SimpleNamespace(python_function=names["step"])
        found.extend(traced_arguments.traced_numbers(made, args, kwargs, caller()))

    names: dict[str, Any] = {"function": function, "tensor": np.zeros(3), "np": np}
    source = f"def step(x, lr, kind='a'): ...\ndef run(rate):\n    lr = rate / 2\n{before}    {call}\nrun(0.5)\n"
    exec(compile(source, USERS, "exec"), names)
    return [(one["name"], one["value"], one["at"] and one["at"][1]) for one in found]


@pytest.mark.parametrize(
    ("call", "numbers"),
    [
        ("function(tensor, lr, 'mean')", [("lr", "0.25", 3), ("kind", "'mean'", None)]),
        ("function(tensor, rate)", [("lr", "0.5", None)]),  # a parameter: no line assigns it
        ("function(tensor, lr=lr)", [("lr", "0.25", None)]),
        ("function(tensor, lr * 2)", [("lr", "0.5", None)]),
        ("function(tensor, np.float64(lr))", []),  # becomes a tensor
        ("function(tensor, tensor)", []),
        ("function(tensor, True)", [("lr", "True", None)]),
    ],
)
def test_numbers_are_told_with_the_line_that_assigned_them(
    call: str, numbers: list[tuple[str, str, int | None]]
) -> None:
    assert told(call) == numbers


def test_the_last_assignment_above_the_call_counts() -> None:
    before = "    for lr in (0.1, 0.2):\n        pass\n"
    assert told("function(tensor, lr)", before) == [("lr", "0.2", 4)]


def test_a_function_is_defined_below_its_wrappers() -> None:
    names: dict[str, Any] = {}
    exec(compile("\ndef step(x): ...\n", USERS, "exec"), names)
    partial = functools.partial(names["step"], 1)
    assert traced_arguments.defined(SimpleNamespace(python_function=partial)) == (USERS, 2)
    assert traced_arguments.defined(SimpleNamespace(python_function=len)) is None
    assert traced_arguments.defined(SimpleNamespace()) is None


def test_self_is_no_argument_of_a_method_that_is_bound() -> None:
    names: dict[str, Any] = {}
    exec(compile("class Trainer:\n    def step(self, x, lr): ...\n", USERS, "exec"), names)
    function = SimpleNamespace(python_function=names["Trainer"].step)
    numbers = traced_arguments.traced_numbers(function, (3.0, 0.1), {}, None)
    assert [one["name"] for one in numbers] == ["x", "lr"]
    numbers = traced_arguments.traced_numbers(function, (names["Trainer"](), 3.0, 0.1), {}, None)
    assert [one["name"] for one in numbers] == ["x", "lr"]
