"""What a stack is doing, told by the modules and functions on it: real frames, of modules that are named so."""

import inspect
import sys
from types import FrameType
from typing import Any

import pytest

from tests.capture import agent

work = agent.load("run.stacks")


def caller() -> FrameType:
    """Return the frame that called the caller's function."""
    return inspect.stack()[2].frame


INSTALLED = "/usr/lib/python3.11/site-packages/"


def frames(*stack: tuple[str, str]) -> tuple[str, str]:
    """Call functions of modules, the outermost first; return the work and what is imported."""
    found: list[tuple[str, str]] = []

    def look(frame: FrameType) -> None:
        found.append((work.work_of(frame), work.imported(frame)))

    def inner() -> None:
        look(caller())

    call: Any = inner
    for module, function in reversed(stack):
        path = "/project/train.py" if module == "user" else INSTALLED + module.replace(".", "/")
        if module.startswith("importlib"):
            path = "<frozen importlib._bootstrap>"
        names = {"__name__": module, "call": call}
        source = f"def {function}(name='pandas.core'):\n    call()\n"
        exec(compile(source, path, "exec"), names)
        call = names[function]
    call()
    return found[0]


CASES = [
    ((("user", "main"),), "other"),
    ((("user", "main"), ("numpy", "append")), "other"),
    ((("user", "main"), ("keras.src.saving.saving_api", "save_model")), "saving"),
    ((("user", "main"), ("tf_keras.src.engine.training", "save_weights")), "saving"),
    ((("user", "main"), ("tensorflow.python.checkpoint.checkpoint", "save")), "saving"),
    ((("user", "main"), ("tensorflow.python.checkpoint.checkpoint", "restore")), "building"),
    ((("user", "main"), ("tensorflow.python.ops.summary_ops_v2", "write")), "saving"),
    (
        (
            ("user", "main"),
            ("keras.engine.training", "fit"),
            ("keras.engine.data_adapter", "__init__"),
            ("keras.engine.training_utils", "handle_partial_sample_weights"),
            ("tensorflow.python.framework.ops", "__iter__"),
        ),
        "weights",
    ),
    (
        (
            ("user", "main"),
            ("keras.engine.data_adapter", "__init__"),
            ("keras.engine.training_utils", "list_to_tuple"),
        ),
        "input",
    ),
    ((("user", "main"), ("keras.src.layers.layer", "__init__")), "building"),
    ((("user", "main"), ("keras.src.models.sequential", "add")), "building"),
    ((("user", "main"), ("keras.src.trainers.trainer", "compile")), "building"),
    ((("user", "main"), ("keras.src.models.model", "from_config")), "building"),
    ((("user", "main"), ("tensorflow.python.eager.context", "ensure_initialized")), "building"),
    (
        (
            ("user", "main"),
            ("tensorflow.python.framework.func_graph", "func_graph_from_py_func"),
            ("user", "step"),
            ("keras.src.layers.layer", "__call__"),
        ),
        "tracing",
    ),
    ((("user", "main"), ("keras.src.layers.layer", "__call__")), "model"),
    ((("user", "main"), ("tensorflow.python.data.ops.iterator_ops", "__next__")), "input"),
    ((("user", "main"), ("tensorflow.python.data.ops.dataset_ops", "from_generator"), ("user", "read")), "input"),
    ((("user", "main"), ("keras.src.trainers.data_adapters.array_data_adapter", "f")), "input"),
    ((("user", "main"), ("keras.src.trainers.trainer", "fit")), "other"),
    ((("user", "main"), ("my_keras.src.layers.layer", "__init__")), "other"),
    ((("user", "main"), ("importlib._bootstrap", "_find_and_load"), ("pandas", "x")), "importing"),
    (
        (("user", "main"), ("importlib._bootstrap", "_find_and_load"), ("user", "module"), ("numpy", "append")),
        "other",
    ),
]


@pytest.mark.parametrize(("stack", "expected"), CASES)
def test_work_by_module_and_function(stack: tuple[tuple[str, str], ...], expected: str) -> None:
    assert frames(*stack)[0] == expected


def test_the_first_kind_of_work_counts_wherever_it_is_on_the_stack() -> None:
    saving = ("keras.src.saving.saving_api", "save_model")
    building = ("keras.src.layers.layer", "__init__")
    assert frames(("user", "main"), saving, building)[0] == "saving"
    assert frames(("user", "main"), building, saving)[0] == "saving"


def test_what_is_imported_is_what_the_users_line_asks_for() -> None:
    load = ("importlib._bootstrap", "_find_and_load")
    assert frames(("user", "main"), load, ("pandas", "x"))[1] == "pandas.core"
    assert frames(("user", "main"), ("numpy", "append"))[1] == ""


def test_frames_of_a_module_without_a_name_are_nobodys() -> None:
    names: dict[str, Any] = {"sys": sys, "__name__": None}
    exec("def f():\n    return sys._getframe()\n", names)
    assert work.work_of(names["f"]()) == "other"


def test_the_call_of_the_outermost_model_is_told_from_those_of_its_layers() -> None:
    layer: dict[str, Any] = {"__name__": "keras.src.layers.layer"}
    source = "def __call__(inner):\n    return inner()\n"
    exec(compile(source, "/lib/site-packages/keras/src/layers/layer.py", "exec"), layer)
    call, found = layer["__call__"], []

    def look() -> None:
        found.append(work.calls_model(inspect.currentframe()))

    def model() -> None:
        call(look)

    def evaluates() -> None:
        call(model)

    evaluates()
    look()
    assert [frame and frame.f_code.co_name for frame in found] == ["evaluates", None]
