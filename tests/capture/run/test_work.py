"""What a stack is doing, told by the modules and functions on it: real frames, of modules that are named so."""

from tests.capture.run.kit import *

work = agent.load("run.stacks")

INSTALLED = "/usr/lib/python3.11/site-packages/"


def frames(stack: str) -> tuple[str, str]:
    """Call functions of modules, below one of the user's; return the work and what is imported."""
    found: list[tuple[str, str]] = []

    def call() -> None:
        frame = caller()
        found.append((work.work_of(frame), work.imported(frame)))

    for one in reversed(["user:main", *stack.split()]):
        module, function = one.split(":")
        path = USERS if module == "user" else INSTALLED + module.replace(".", "/")
        path = "<frozen importlib._bootstrap>" if module.startswith("importlib") else path
        source = f"def {function}(name='pandas.core'):\n    call()\n"
        call = users(source, path, __name__=module, call=call)[function]
    call()
    return found[0]


LOADS = "importlib._bootstrap:_find_and_load"
OLD, FEEDS, ITERATES = (
    "keras.engine",
    "keras.engine.data_adapter:__init__",
    "tensorflow.python.framework.ops:__iter__",
)
SAVES, BUILDS = "keras.src.saving.saving_api:save_model", "keras.src.layers.layer:__init__"


@cases(
    ("", "other"),
    ("numpy:append", "other"),
    (SAVES, "saving"),
    ("tf_keras.src.engine.training:save_weights", "saving"),
    ("tensorflow.python.checkpoint.checkpoint:save", "saving"),
    ("tensorflow.python.checkpoint.checkpoint:restore", "building"),
    ("tensorflow.python.ops.summary_ops_v2:write", "saving"),
    (f"{OLD}.training:fit {FEEDS} {OLD}.training_utils:handle_partial_sample_weights {ITERATES}", "weights"),
    (f"{FEEDS} {OLD}.training_utils:list_to_tuple", "input"),
    (BUILDS, "building"),
    ("keras.src.models.sequential:add", "building"),
    ("keras.src.trainers.trainer:compile", "building"),
    ("keras.src.models.model:from_config", "building"),
    ("tensorflow.python.eager.context:ensure_initialized", "building"),
    (
        "tensorflow.python.framework.func_graph:func_graph_from_py_func user:step keras.src.layers.layer:__call__",
        "tracing",
    ),
    ("keras.src.layers.layer:__call__", "model"),
    ("tensorflow.python.data.ops.iterator_ops:__next__", "input"),
    ("tensorflow.python.data.ops.dataset_ops:from_generator user:read", "input"),
    ("keras.src.trainers.data_adapters.array_data_adapter:f", "input"),
    ("keras.src.trainers.trainer:fit", "other"),
    ("my_keras.src.layers.layer:__init__", "other"),
    (f"{LOADS} pandas:x", "importing"),
    (f"{LOADS} user:module numpy:append", "other"),
    (f"{SAVES} {BUILDS}", "saving"),  # the first kind of work counts wherever it is on the stack
    (f"{BUILDS} {SAVES}", "saving"),
)
def test_work_by_module_and_function(stack: str, expected: str) -> None:
    assert frames(stack)[0] == expected


def test_what_is_imported_is_what_the_users_line_asks_for() -> None:
    assert [frames(stack)[1] for stack in (f"{LOADS} pandas:x", "numpy:append")] == ["pandas.core", ""]


def test_frames_of_a_module_without_a_name_are_nobodys() -> None:
    f = users("def f():\n    return sys._getframe()\n", "<string>", sys=sys, __name__=None)["f"]
    assert work.work_of(f()) == "other"


def test_the_call_of_the_outermost_model_is_told_from_those_of_its_layers() -> None:
    path = "/lib/site-packages/keras/src/layers/layer.py"
    layer = users("def __call__(inner):\n    return inner()\n", path, __name__="keras.src.layers.layer")
    call, found = layer["__call__"], []

    def look() -> None:
        found.append(work.calls_model(inspect.currentframe()))

    def evaluates() -> None:
        call(lambda: call(look))

    evaluates()
    look()
    assert [frame and frame.f_code.co_name for frame in found] == ["evaluates", None]
