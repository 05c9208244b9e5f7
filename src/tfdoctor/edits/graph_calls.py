"""What a function in a graph may call: lists of Python's, TensorFlow's and Keras' functions and methods."""

from tfdoctor.edits.splice import Declined

ONCE = "and a graph runs Python only once, when it is traced"

# Built-in functions that only arrange what they get.
BUILTINS = frozenset(["enumerate", "list", "range", "reversed", "super", "tuple", "zip"])
# Built-in functions that need the value or the length of what they get.
NEED_VALUES = frozenset(["bool", "float", "int", "len", "max", "min", "round", "sorted", "str"])

# Methods of tapes, optimizers, metrics, variables and Keras models that work in a graph.
METHODS = frozenset(
    ["add_loss", "apply", "apply_gradients", "assign", "assign_add", "assign_sub", "compute_loss",
     "compute_metrics", "get_scaled_loss", "get_unscaled_gradients", "gradient", "items", "jacobian",
     "reset_state", "result", "scale_loss", "update_state", "values", "watch"]
)  # fmt: skip

# Parts of TensorFlow with effects outside of the graph, or that make something at each call.
DENIED = (
    "tensorflow.Variable", "tensorflow.compat", "tensorflow.config", "tensorflow.data", "tensorflow.debugging",
    "tensorflow.distribute", "tensorflow.executing_eagerly", "tensorflow.experimental", "tensorflow.function",
    "tensorflow.get_logger", "tensorflow.get_static_value", "tensorflow.inside_function", "tensorflow.io.gfile",
    "tensorflow.make_ndarray", "tensorflow.numpy_function", "tensorflow.profiler", "tensorflow.py_function",
    "tensorflow.random.set_seed", "tensorflow.saved_model", "tensorflow.summary", "tensorflow.train",
    "keras.ops.convert_to_numpy",
)  # fmt: skip

# Classes of TensorFlow whose objects may be made in a step.
MADE_IN_STEP = frozenset(["GradientTape", "IndexedSlices", "TensorShape", "TensorArray"])
KERAS_CALLS = ("activations", "losses", "ops")  # Modules of Keras whose functions and classes have no variables
# Ends of the names of Keras' attributes that are lists.
LISTS = ("variables", "weights", "losses", "metrics", "layers")
# Methods of layers and models that Keras calls in a step.
CALLED_BY_KERAS = frozenset(["call", "compute_loss", "compute_mask", "compute_metrics", "test_step", "train_step"])
BEFORE_STEPS = frozenset(["__init__", "build", "compile"])  # Methods that run before the first step


def must_be_allowed(origin: str, line: str) -> None:
    """Decline the call of a part of TensorFlow or Keras that a step in a graph should not have."""
    name = origin.rpartition(".")[2]
    written = origin.removeprefix("tensorflow.")
    if any(f"{origin}.".startswith(f"{denied}.") for denied in DENIED):
        raise Declined(f"{line} calls {written}(), which has an effect outside of a graph")
    in_keras = origin.startswith(("keras.", "tf_keras.", "tensorflow.keras."))
    plain = any(f".{part}." in f".{origin}" for part in KERAS_CALLS)
    if in_keras and not plain:
        raise Declined(f"{line} calls {written}() in each step, which may create variables")
    if not in_keras and name[:1].isupper() and name not in MADE_IN_STEP:
        raise Declined(f"{line} creates a {name} in each step")
