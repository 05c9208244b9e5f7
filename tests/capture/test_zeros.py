"""How many zeros captured matrices hold, and at what is not looked."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.capture import agent


class Tensor:
    """Stands for an eager tensor."""

    def __init__(self, values: Any) -> None:
        self.values = values
        size = values.size
        self.shape = SimpleNamespace(
            rank=values.ndim, num_elements=lambda: size, as_list=lambda: list(values.shape)
        )
        self.dtype = SimpleNamespace(is_floating=values.dtype.kind == "f", name=str(values.dtype))

    def _numpy(self) -> Any:
        return self.values


def described(values: Any) -> Any:
    placeholder = SimpleNamespace(op=SimpleNamespace(name="m"))
    graph = SimpleNamespace(captures=[(Tensor(values), placeholder)])
    return agent.load("program.zeros").describe(graph)


def test_a_diagonal_matrix() -> None:
    found = described(np.eye(300, dtype="float32"))[0]
    assert found["share"] == pytest.approx(299 / 300)
    assert (found["fullest"], found["diagonal"]) == (1, True)


def test_one_hot_rows_are_no_diagonal() -> None:
    values = np.zeros((300, 300), "float32")
    values[:, 7] = 1.0
    found = described(values)[0]
    assert (found["fullest"], found["diagonal"]) == (1, False)


def test_a_full_matrix() -> None:
    found = described(np.ones((300, 400), "float32"))[0]
    assert (found["share"], found["fullest"], found["diagonal"]) == (0.0, 400, False)


@pytest.mark.parametrize(
    "values", [np.zeros((255, 256), "float32"), np.zeros(70_000, "float32"), np.zeros((300, 300), int)]
)
def test_what_is_small_or_no_matrix_of_floats_is_left_out(values: Any) -> None:
    assert described(values) == []


def test_a_matrix_that_an_outer_function_captured() -> None:
    """Keras calls the user's train_step from a function of its own."""
    inner = SimpleNamespace(op=SimpleNamespace(name="m"))
    outer = SimpleNamespace(graph=None)
    outer.graph = SimpleNamespace(captures=[(Tensor(np.eye(300, dtype="float32")), outer)])
    (found,) = agent.load("program.zeros").describe(SimpleNamespace(captures=[(outer, inner)]))
    assert (found["name"], found["diagonal"]) == ("m", True)


def test_variables_and_arguments_of_outer_functions_are_not_held() -> None:
    placeholder = SimpleNamespace(op=SimpleNamespace(name="m"))
    variable = Tensor(np.eye(300, dtype="float32"))
    variable.dtype.name = "resource"
    argument = SimpleNamespace(graph=SimpleNamespace(captures=[]))
    graph = SimpleNamespace(captures=[(variable, placeholder), (argument, placeholder)])
    assert list(agent.load("program.outside_tensors").held(graph)) == []


def constant(values: Any, *, stored: bool = True) -> Any:
    """A graph that holds a matrix as a constant."""
    tensor = Tensor(values)
    content = values.tobytes() if stored else b""
    value = SimpleNamespace(tensor_content=content, float_val=[1.0])
    op = SimpleNamespace(name="adjacency", type="Const", outputs=[tensor], get_attr={"value": value}.get)
    return SimpleNamespace(captures=[], get_operations=lambda: [op])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_constant_in_the_graph(dtype: str) -> None:
    values = np.zeros((512, 300), dtype)
    values[:, :3] = 1.0
    (found,) = agent.load("program.zeros").describe(constant(values))
    assert found["share"] == pytest.approx(0.99)
    assert (found["name"], found["fullest"], found["diagonal"]) == ("adjacency", 3, False)


def test_a_constant_of_one_number_or_another_type_is_left_out() -> None:
    zeros = agent.load("program.zeros")
    assert zeros.describe(constant(np.zeros((300, 300), "float32"), stored=False)) == []
    assert zeros.describe(constant(np.zeros((300, 300), "float16"))) == []
