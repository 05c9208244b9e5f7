"""Where Python is between the calls: which lines make the arguments, and whose callback runs."""

import ast
import gc
import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.capture import agent

LOOP = """\
for epoch in range(3):
    for rows in order():
        batch = load(rows)
        batch = batch / 255
        loss = step(batch,
                    target)
        seen.append(describe(loss))
"""


@pytest.mark.parametrize(
    ("source", "line", "expected"),
    [
        (LOOP, 5, {2, 3, 4, 5, 6}),
        ("while True:\n    step(next(data))\n    log()\n", 2, {2}),
        ("step(x)\n", 1, None),
    ],
)
def test_the_lines_that_make_the_arguments(
    source: str, line: int, expected: set[int] | None
) -> None:
    found = agent.load("argument_lines").making(ast.parse(source), line)
    lines = found and {one for first, last in found for one in range(first, last + 1)}
    assert lines == expected


class Callback:
    """As Keras' base class is called."""


class Slow(Callback):
    def on_train_batch_end(self, sampler: Any) -> Any:
        return sampler._place(sys._getframe(), inside=False)  # noqa: SLF001 - as the agent does


def test_a_callback_is_named_with_its_line(sampler: Any) -> None:
    stack, callback, _ = Slow().on_train_batch_end(sampler)
    assert callback == "Slow.on_train_batch_end"
    assert stack.line[0] == __file__
    assert stack.looped is None


def training(depth: int = 0) -> SimpleNamespace:
    return SimpleNamespace(running=False, depth=depth, function=None)


@pytest.fixture
def sampler(tmp_path: Path) -> Any:
    log = agent.load("journal").Journal(str(tmp_path))
    return agent.load("stack_samples").StackSampler(log, agent.load("feeding").CallArguments(log))


@pytest.mark.parametrize(("depth", "inside"), [(0, 0), (1, 1)])
def test_calls_that_train_are_counted_apart(sampler: Any, depth: int, inside: int) -> None:
    sampler.sample(threading.get_ident(), training(depth))
    assert sampler.inside == inside
    (place,) = sampler.describe()["places"]
    assert (place["inside"], place["seen"], len(place["when_us"])) == (bool(inside), 1, 1)


def test_it_leaves_python_as_it_was(sampler: Any) -> None:
    before = sys.getswitchinterval(), list(gc.callbacks)
    sampler.begin(training())
    gc.collect()
    sampler.end()
    assert (sys.getswitchinterval(), gc.callbacks) == before
    assert sampler.collected_ns > 0


class Array:
    """What NumPy's arrays and tensors have in common."""

    dtype, shape = "float32", (8, 4)


def test_arguments_made_anew_are_told_from_those_that_stay(sampler: Any) -> None:
    arguments, stays = sampler.arguments, Array()
    arguments.begin()
    for _ in range(2):
        arguments.note((stays, Array(), 3), {})
    assert [argument["anew"] for argument in arguments.call["arguments"]] == [False, True]
    assert not arguments.wanted


def encoded(sampler: Any) -> Any:
    found: list[Any] = []

    def default(_: object) -> int:
        found.append(sampler._place(sys._getframe(1), inside=True))  # noqa: SLF001 - as the agent does
        return 0

    json.dumps(object(), default=default)
    return found[0]


def test_a_line_says_what_it_calls_and_who_called_it(sampler: Any) -> None:
    public = agent.load("stack").public_name
    stack, callback, inside = encoded(sampler)
    assert stack.line[0] == stack.caller[0] == __file__
    assert stack.line[1] < stack.caller[1]
    assert public(stack.calls) == "json.dumps"
    assert public(stack.runs).startswith("json.encoder.")
    assert (callback, inside) == (None, True)


def test_a_known_stack_is_one_place_with_all_its_times(sampler: Any) -> None:
    for _ in range(3):
        sampler.sample(threading.get_ident(), training())
    (place,) = sampler.describe()["places"]
    assert place["seen"] == 3
    assert place["when_us"] == sorted(place["when_us"])
