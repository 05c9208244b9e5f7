"""What a line of the user's does, by the names of the functions below it."""

import re
from enum import StrEnum

from tfdoctor.recording.program import SeenPlace


class LineWork(StrEnum):
    """What kind of thing a line does."""

    READING = "reading"  # copies a tensor to NumPy
    CONVERTING = "converting"  # makes tensors of arrays and Python values
    ENTERING = "entering"  # starts a compiled function of TensorFlow, and returns from it
    DISPATCHING = "dispatching"  # waits in one between two of its operations: not the line's own work
    LOOPING = "looping"  # the framework's own work for each step: Keras' iterator and metrics, checks of arguments
    OPERATIONS = "operations"  # runs TensorFlow operations one by one, or Python code of TensorFlow and Keras
    PYTHON = "python"  # Python's own work and that of other packages


# What TensorFlow and Keras do for a compiled function: apart from the work of the line that calls it.
WITHIN = (LineWork.ENTERING, LineWork.DISPATCHING, LineWork.LOOPING)
# Functions of Keras that train: what they do besides is not the choice of the line that calls them.
LOOPS = ("fit", "train_on_batch")
# The end of the name of TensorFlow's way into a compiled function, which checks the arguments.
CALL = "polymorphic_function.Function.__call__"
# Methods of tensors and variables that copy the value to the host.
READS = frozenset(("numpy", "_numpy", "__array__", "__float__", "__int__", "__bool__", "item"))

# Functions of TensorFlow that make a tensor of another value.
CONVERTS = frozenset(
    ("convert_to_eager_tensor", "convert_to_tensor", "constant", "_constant_impl",
     "_constant_eager_impl", "tensor_conversion_function")
)  # fmt: skip

ENTERS = "quick_execute"  # The function of TensorFlow that runs a compiled function, in every version since 2.0

KERAS = ("keras", "tf_keras")
LIBRARIES = ("tensorflow", *KERAS)  # Packages whose functions run TensorFlow operations


def work_of(place: SeenPlace) -> LineWork:
    """Return what kind of thing a sampled line does."""
    calls, runs = place.calls.rpartition(".")[2], place.runs.rpartition(".")[2]
    if not _in_library(place.calls):
        return LineWork.PYTHON
    if calls in READS:
        return LineWork.READING
    if calls in CONVERTS or (place.inside and runs in CONVERTS):  # of the compiled function's arguments
        return LineWork.CONVERTING
    if place.inside and runs == ENTERS:
        return LineWork.ENTERING
    of_keras = place.calls.partition(".")[0] in KERAS and calls in LOOPS
    of_call = place.inside and place.calls.endswith(CALL)
    own = (of_keras or of_call) and not place.callback
    return LineWork.LOOPING if own else LineWork.OPERATIONS


def shown(place: SeenPlace) -> str:
    """Return the function to name: what the line calls, or what TensorFlow does inside its own calls."""
    return place.runs if place.inside and _in_library(place.calls) else place.calls


def _in_library(name: str) -> bool:
    return name.partition(".")[0] in LIBRARIES


class SlowCall(StrEnum):
    """A kind of call that is made for a whole run or epoch, and takes much longer than a step needs it to."""

    FIT = "fit"
    PREDICT = "predict"
    EVALUATE = "evaluate"
    WEIGHTS = "get_weights and set_weights"
    CLONE = "clone_model"
    SAVE = "save"
    CLEAR = "clear_session"
    MODEL = "a model outside of a tf.function"
    SINGLE = "a tf.function for one example"  # see SingleCalls
    WRITE = "functions that write logs or files"  # for somebody who reads them


# Names of functions of Keras (2 and 3) and of TensorFlow's checkpoints; nothing else there has these names.
FUNCTIONS = {
    "fit": SlowCall.FIT, "predict": SlowCall.PREDICT, "evaluate": SlowCall.EVALUATE,
    "get_weights": SlowCall.WEIGHTS, "set_weights": SlowCall.WEIGHTS, "clone_model": SlowCall.CLONE,
    "save": SlowCall.SAVE, "save_weights": SlowCall.SAVE, "save_model": SlowCall.SAVE,
    "clear_session": SlowCall.CLEAR,
}  # fmt: skip

# The end of the full name in lower case: of Layer in Keras, or of its module before Python 3.11.
LAYER_CALL = "layer.__call__"

# Functions, by their full names, that write what somebody reads: summaries, logs, tables, images.
WRITES = re.compile(
    r"(tensorflow\.(summary|python\.ops\.summary_ops_v2|print$)|tensorboardX?|mlflow|wandb|neptune|comet_ml|clearml"
    r"|aim|logging|loguru|csv|_csv|imageio)\b"
    r"|(builtins\.print|cv2\.imwrite|PIL\..*\.save|matplotlib\..*(savefig|imsave)|pandas\..*\.to_(csv|json|excel))$"
)


def slow_call(function: str) -> SlowCall | None:
    """Return what a function is, by its full name ("keras.src.models.cloning.clone_model"); None for any other."""
    if WRITES.match(function):
        return SlowCall.WRITE
    if not _in_library(function):
        return None
    return SlowCall.MODEL if function.lower().endswith(LAYER_CALL) else FUNCTIONS.get(function.rpartition(".")[2])
