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


def noted(arguments: Any, first: tuple[Any, ...], second: tuple[Any, ...], **named: Any) -> Any:
    arguments.begin("loop")
    for given in (first, second):
        arguments.note(given, named)
    assert not arguments.wanted
    assert arguments.log.errors == []
    return arguments.call["arguments"]


def test_the_place_type_and_shape_of_arrays_in_structures(arguments: Any) -> None:
    """Trap: numbers, texts and scalars are no arrays."""
    given = 3, "x", np.float32(1.0), [BASE, {"b": BASE[:2], "a": np.ones((2, 3), np.int32)}]
    found = noted(arguments, given, given, mask=BASE[:1])
    assert [(one["place"], one["dtype"], one["shape"]) for one in found] == [
        ("3.0", "float64", [6000]),
        ("3.1.a", "int32", [2, 3]),
        ("3.1.b", "float64", [2]),
        ("mask", "float64", [1]),
    ]
    assert {one["kind"] for one in found} == {"numpy"}


@pytest.mark.parametrize(
    ("second", "anew", "same"), [(BASE, False, True), (BASE.copy(), True, True), (BASE + 1, True, False)]
)
def test_new_objects_are_told_from_new_values(arguments: Any, second: Any, *, anew: bool, same: bool) -> None:
    (found,) = noted(arguments, (BASE,), (second,))
    assert (found["anew"], found["same"]) == (anew, same)


def test_an_array_that_is_filled_again_has_new_values(arguments: Any) -> None:
    """Trap: a buffer that every step writes its batch into is the same object."""
    buffer = np.zeros((64, 100), np.float32)
    arguments.begin("loop")
    arguments.note((buffer,), {})
    buffer[:] = 1.0
    arguments.note((buffer,), {})
    (found,) = arguments.call["arguments"]
    assert (found["anew"], found["same"]) == (False, False)


def test_what_is_noted_before_a_window_is_that_of_the_window(arguments: Any) -> None:
    arguments.prepare("loop")
    for given in (BASE, BASE + 1):
        arguments.note((given,), {})
    assert not arguments.wanted
    assert not arguments.noted  # no window has opened
    arguments.begin("loop")
    assert not arguments.wanted
    assert arguments.noted["arguments"][0]["same"] is False


def test_what_was_noted_before_the_window_of_another_loop_is_noted_anew(arguments: Any) -> None:
    arguments.prepare("loop")
    arguments.note((BASE,), {})
    arguments.begin("another")
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


def test_calls_with_different_arguments_are_not_compared(arguments: Any) -> None:
    (found,) = noted(arguments, (BASE,), (BASE, BASE))
    assert "same" not in found


class Frame:
    """As pandas': its values are NumPy's."""

    __module__ = "pandas.core.frame"

    def __init__(self) -> None:
        self.values = np.ones((4, 2))
        self.shape = self.values.shape


def test_data_frames_are_arrays(arguments: Any) -> None:
    frame = Frame()
    (found,) = noted(arguments, (frame,), (frame,))
    assert (found["kind"], found["dtype"], found["same"]) == ("pandas", "float64", True)


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
    table, tokens = Placeholder("table"), np.arange(8)
    arguments.begin("loop")
    for batch in (tokens, tokens + 1):
        feeds = {table: BASE, "tokens:0": batch, Placeholder("rate"): 0.5, (table, table): (1, 2)}
        arguments.note_feeds(Named(), feeds)
    assert arguments.noted is None  # no function's arguments
    first, second = arguments.feeds["arguments"]
    assert (first["place"], first["fed_as"], first["same"]) == ("table", "float32", True)
    assert (second["place"], second["fed_as"], second["same"]) == ("tokens", "int32", False)
    assert (arguments.log.errors, arguments.wanted) == ([], False)


def test_a_list_that_is_fed_is_noted_as_no_array(arguments: Any) -> None:
    arguments.begin("loop")
    for _ in range(2):
        arguments.note_feeds(Named(), {Placeholder("rows"): [[1.0, 2.0]], Placeholder("x"): BASE})
    assert [one["kind"] for one in arguments.feeds["arguments"]] == ["numpy", "python"]


def test_another_loop_calls_functions_again(arguments: Any) -> None:
    arguments.begin("session")
    arguments.note_feeds(Named(), {Placeholder("x"): BASE})
    arguments.begin("loop")
    arguments.note((BASE,), {})
    assert arguments.feeds is None
    assert arguments.noted is not None
