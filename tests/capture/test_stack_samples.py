"""Where Python is between the calls: which lines make the arguments, and whose callback runs."""

import ast
import gc
import sys
import threading
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
    found = agent.load("feeding").making(ast.parse(source), line)
    lines = found and {one for first, last in found for one in range(first, last + 1)}
    assert lines == expected


class Callback:
    """As Keras' base class is called."""


class Slow(Callback):
    def on_train_batch_end(self) -> Any:
        return agent.load("stack_samples").place(sys._getframe(), None)  # noqa: SLF001 - as the agent does


def test_a_callback_is_named_with_its_line() -> None:
    line, looped, callback = Slow().on_train_batch_end()
    assert callback == "Slow.on_train_batch_end"
    assert line[0] == __file__
    assert looped is None


def window(**loops: Any) -> SimpleNamespace:
    free = {"running": False, "depth": 0, "function": None, **loops}
    local = SimpleNamespace(loops=SimpleNamespace(**free))
    found = SimpleNamespace(local=local, log=None)
    found.fed = agent.load("feeding").Fed(found)
    return found


@pytest.mark.parametrize(("depth", "inside"), [(0, 0), (1, 1)])
def test_calls_that_train_are_counted_apart(depth: int, inside: int) -> None:
    seen = agent.load("stack_samples").Whereabouts(window())
    seen._look(threading.get_ident(), SimpleNamespace(running=False, depth=depth, function=None))  # noqa: SLF001 - one look
    assert seen.inside == inside
    assert sum(seen.places.values()) == 1 - inside


def test_it_leaves_python_as_it_was() -> None:
    before = sys.getswitchinterval(), list(gc.callbacks)
    seen = agent.load("stack_samples").Whereabouts(window())
    seen.begin()
    gc.collect()
    seen.end()
    assert (sys.getswitchinterval(), gc.callbacks) == before
    assert seen.collected_ns > 0


class Array:
    """What NumPy's arrays and tensors have in common."""

    dtype, shape = "float32", (8, 4)


def test_arguments_made_anew_are_told_from_those_that_stay() -> None:
    fed, stays = agent.load("feeding").Fed(window()), Array()
    fed.begin()
    for _ in range(2):
        fed.note((stays, Array(), 3), {})
    assert [one["anew"] for one in fed.told["arguments"]] == [False, True]
    assert not fed.wanted
