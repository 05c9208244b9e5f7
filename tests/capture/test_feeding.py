"""What the training function is given: which arrays, where, and whether two calls get the same ones."""

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.capture import agent

BASE = np.arange(6000.0)


@pytest.fixture
def arguments(tmp_path: Path) -> Any:
    feeding = agent.load("window.call_arguments")
    return feeding.CallArguments(agent.load("process.journal").Journal(str(tmp_path)))


def noted(arguments: Any, *calls: tuple[Any, ...], **named: Any) -> Any:
    for given in calls:
        arguments.note(given, named)
    assert (arguments.wanted, arguments.log.errors) == (False, [])
    return arguments.call["arguments"]


class Frame:
    """As pandas': its values are NumPy's."""

    __module__ = "pandas.core.frame"

    def __init__(self) -> None:
        self.values = np.ones((4, 2))
        self.shape = self.values.shape


def test_the_place_kind_type_and_shape_of_arrays_in_structures(arguments: Any) -> None:
    """Trap: numbers, texts and scalars are no arrays."""
    arguments.begin("loop")
    given = 3, "x", np.float32(1.0), [BASE, {"b": Frame(), "a": np.ones((2, 3), np.int32)}]
    found = noted(arguments, given, given, mask=BASE[:1])
    assert [tuple(one[name] for name in ("place", "kind", "dtype", "shape", "same")) for one in found] == [
        ("3.0", "numpy", "float64", [6000], True),
        ("3.1.a", "numpy", "int32", [2, 3], True),
        ("3.1.b", "pandas", "float64", [4, 2], True),
        ("mask", "numpy", "float64", [1], True),
    ]


@pytest.mark.parametrize(
    ("second", "anew", "same"),
    [((BASE,), False, True), ((BASE.copy(),), True, True), ((BASE + 1,), True, False), ((BASE, BASE), None, None)],
)
def test_new_objects_are_told_from_new_values(
    arguments: Any, second: Any, *, anew: bool | None, same: bool | None
) -> None:
    """Calls with different arguments are not compared."""
    arguments.begin("loop")
    (found,) = noted(arguments, (BASE,), second)
    assert (found.get("anew"), found.get("same")) == (anew, same)


def test_an_array_that_is_filled_again_has_new_values(arguments: Any) -> None:
    """Trap: a buffer that every step writes its batch into is the same object."""
    buffer = np.zeros((64, 100), np.float32)
    arguments.begin("loop")
    arguments.note((buffer,), {})
    buffer[:] = 1.0
    (found,) = noted(arguments, (buffer,))
    assert (found["anew"], found["same"]) == (False, False)


def test_what_is_noted_before_a_window_is_that_of_the_window(arguments: Any) -> None:
    arguments.prepare("loop")
    noted(arguments, (BASE,), (BASE + 1,))
    assert not arguments.noted  # no window has opened
    arguments.begin("loop")
    assert not arguments.wanted
    assert arguments.noted["arguments"][0]["same"] is False
    arguments.begin("another")  # loop: what it is given is noted anew
    assert arguments.wanted
    assert arguments.noted is None


def test_a_batch_is_not_kept_alive(arguments: Any) -> None:
    """Trap: a loop may end between the two calls."""
    batch = np.ones(3)
    alive = weakref.ref(batch)
    arguments.prepare("loop")
    arguments.note((batch,), {})
    del batch
    assert alive() is None


class Placeholder:
    """As a tensor of a session's graph."""

    value_index = 0

    def __init__(self, name: str, dtype: str = "float32") -> None:
        self.op = SimpleNamespace(name=name)
        self.dtype = SimpleNamespace(name=dtype)


class Named:
    """As a session's graph, in which texts name tensors."""

    def as_graph_element(self, key: Any) -> Any:
        return Placeholder(key.partition(":")[0], "int32") if isinstance(key, str) else key


def test_feeds_have_the_names_and_types_of_their_placeholders(arguments: Any) -> None:
    """A list that is fed is no array."""
    table, rows, tokens = Placeholder("table"), Placeholder("rows"), np.arange(8)
    arguments.begin("session")
    for batch in (tokens, tokens + 1):
        given = {"tokens:0": batch, rows: [[1.0, 2.0]], (table, table): (1, 2)}
        arguments.note_feeds(Named(), {table: BASE, Placeholder("rate"): 0.5, **given})
    assert arguments.noted is None  # no function's arguments
    found = arguments.feeds["arguments"]
    assert [(one["place"], one["kind"], one.get("fed_as"), one.get("same")) for one in found] == [
        ("table", "numpy", "float32", True),
        ("tokens", "numpy", "int32", False),
        ("rows", "python", None, None),
    ]
    assert (arguments.log.errors, arguments.wanted) == ([], False)
    arguments.begin("loop")  # another, which calls functions again
    arguments.note((BASE,), {})
    assert arguments.feeds is None
    assert arguments.noted is not None
