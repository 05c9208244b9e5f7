"""What a stack is doing, by the functions of Python, TensorFlow and Keras on it."""

from __future__ import annotations

import functools
import re

from ..process.stack import user_file
from .kinds import BUILDING, IMPORTING, INPUT, MODEL, OTHER, SAVING, TRACING, WEIGHTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

IMPORT_SYSTEM = "<frozen importlib"  # How the files of Python's import system are called

KERAS = r"^(tf_keras|keras)(\.src)?\."

# Kinds of work, in the order in which they count: modules, and the functions in them; None are all.
WORK = (
    (WEIGHTS, re.compile(KERAS + r"engine\.training_utils$"), frozenset(("handle_partial_sample_weights",))),
    (
        SAVING,
        re.compile(
            KERAS + r"(saving|models|engine)\.|\.checkpoint\.checkpoint(_management)?$|\.saved_model\.save$"
            r"|\.training\.saver$|\.ops\.summary_ops_v2$"
        ),
        frozenset(
            (
                *("save", "save_model", "save_weights", "write", "flush", "save_model_to_hdf5"),
                *("save_weights_only", "_save_state", "save_and_return_nodes"),
            )
        ),
    ),
    (
        INPUT,
        re.compile(
            r"^tensorflow\.python\.data\.|"
            + KERAS
            + r"(trainers\.(data_adapters|epoch_iterator)|engine\.data_adapter"
            r"|utils\.(image_dataset|timeseries|text_dataset))"
        ),
        None,
    ),
    (
        BUILDING,
        re.compile(
            KERAS + r"(layers|models|engine|applications|optimizers|trainers|saving|initializers|metrics|losses"
            r"|ops\.(operation|function))|\.eager\.context$|\.ops\.resource_variable_ops$|\.saved_model\.load"
            r"|\.checkpoint\.checkpoint$|\.framework\.op_def_library$|\.training\.optimizer$|\.ops\.gradients_util$"
        ),
        frozenset(
            (
                *("__init__", "__new__", "build", "add", "add_weight", "symbolic_call"),
                *("compute_output_spec", "_functional_construction_call", "compile"),
                *("clone_model", "load_model", "load_weights", "model_from_json", "from_config"),
                *("set_weights", "ensure_initialized", "restore", "read", "load", "load_partial"),
                *("_apply_op_helper", "minimize", "_GradientsHelper"),
            )
        ),
    ),
    (TRACING, re.compile(r"^tensorflow\.python\.framework\.func_graph$"), None),
    (MODEL, re.compile(KERAS + r"(layers\.layer|engine\.base_layer)$"), frozenset(("__call__",))),
)


# The calls of models and layers.
MODEL_CALLS = next((modules, names) for kind, modules, names in WORK if kind == MODEL)


def calls_model(frame: FrameType | None) -> FrameType | None:
    """Return the frame that calls the outermost model or layer of Keras on a stack; None without one."""
    modules, names = MODEL_CALLS
    outermost = None
    while frame is not None:
        if frame.f_code.co_name in (names or ()) and modules.search(str(frame.f_globals.get("__name__", ""))):
            outermost = frame.f_back
        frame = frame.f_back
    return outermost


def work_of(frame: FrameType | None) -> str:
    """Return what a stack is doing, the innermost frame first."""
    if _imports(frame):
        return IMPORTING
    best = len(WORK)
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if isinstance(name, str) and not name.startswith("_tfdoctor"):
            best = min(best, _place(name, frame.f_code.co_name))
        frame = frame.f_back
    return WORK[best][0] if best < len(WORK) else OTHER


@functools.lru_cache(maxsize=20_000)
def _place(module: str, function: str) -> int:
    """Return the place of the first kind of work that a function belongs to."""
    for number, (_, modules, functions) in enumerate(WORK):
        if (functions is None or function in functions) and modules.search(module):
            return number
    return len(WORK)


def _imports(frame: FrameType | None) -> bool:
    """Say whether a stack imports a module that is not the user's: below their innermost line Python imports."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(IMPORT_SYSTEM):
            return True
        if user_file(name) is not None:
            return False
        frame = frame.f_back
    return False


def imported(frame: FrameType | None) -> str:
    """Return the module that the user's innermost line imports; "" is unknown."""
    found = ""
    while frame is not None and user_file(frame.f_code.co_filename) is None:
        if frame.f_code.co_name == "_find_and_load":
            found = str(frame.f_locals.get("name", found))
        frame = frame.f_back
    return found
