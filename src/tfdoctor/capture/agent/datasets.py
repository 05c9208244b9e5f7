"""The tf.data pipelines of the run: what each stage is, and which line made it."""

from . import file_lists
from .stack import user_file

PARAMETERS = (
    "num_parallel_calls",
    "buffer_size",
    "batch_size",
    "drop_remainder",
    "cycle_length",
    "block_length",
    "deterministic",
    "reshuffle_each_iteration",
    "count",
    "compression_type",
)
"""Kept by TensorFlow as `_<name>` on its dataset objects."""

UNKNOWN = -2
"""tf.data's cardinality of what it cannot count."""

PYTHON_OPS = frozenset(("PyFunc", "EagerPyFunc", "PyFuncStateless"))


class Datasets:
    """All live datasets, numbered."""

    def __init__(self, registry):
        self.lines = registry.lines
        self.numbering = registry.numbering
        self.found = [
            dataset for dataset in (ref() for ref in registry.datasets) if dataset is not None
        ]
        self.ids = {id(dataset): number for number, dataset in enumerate(self.found)}

    def id_of(self, dataset):
        """Return the number of a dataset, or None."""
        return self.ids.get(id(dataset)) if dataset is not None else None

    def graphs(self):
        """Return the ids of the graphs that tf.data runs."""
        return {
            id(wrapper.function.graph) for dataset in self.found for wrapper in _functions(dataset)
        }

    def describe(self):
        """Return one entry a dataset."""
        return [self._dataset(dataset) for dataset in self.found]

    def _dataset(self, dataset):
        return {
            "id": self.ids[id(dataset)],
            "class": type(dataset).__name__,
            "trace_name": self.numbering.name(dataset),
            "trace_number": self.numbering.numbers.get(dataset),
            "inputs": [
                self.ids[id(source)] for source in dataset._inputs() if id(source) in self.ids
            ],
            "parameters": _parameters(dataset),
            "options": _options(dataset),
            "files": file_lists.describe(dataset),
            "function": next(map(_function, _functions(dataset)), None),
            "element_spec": str(dataset.element_spec)[:500],
            "cardinality": _cardinality(dataset),
            "at": self.lines.get(dataset),
        }


def _functions(dataset):
    try:
        return [wrapper for wrapper in dataset._functions() if hasattr(wrapper, "function")]
    except Exception:  # a user's own dataset class need not know its functions
        return []


def _function(wrapper):
    function = wrapper._func
    code = getattr(function, "__code__", None)
    types = _types(wrapper.function.graph)
    return {
        "name": getattr(function, "__name__", type(function).__name__),
        "at": _defined(code) if code else None,
        "python": bool(types & PYTHON_OPS),
        "types": sorted(types),
        "stateful": sorted(name for name in types if _is_stateful(name)),
    }


def _types(graph):
    """Return the types of a function's operations and of those in the branches and loops within."""
    known = graph.as_graph_def()
    nodes = [*known.node, *(node for one in known.library.function for node in one.node_def)]
    return {node.op for node in nodes} - {one.signature.name for one in known.library.function}


def _is_stateful(name):
    from tensorflow.python.framework import op_def_registry

    known = op_def_registry.get(name)
    return known is None or known.is_stateful


def _defined(code):
    """Return the line of a function that is the user's, or None."""
    path = user_file(code.co_filename)
    return [path, code.co_firstlineno] if path else None


def batch_of(dataset):
    """Return the size of the batches that a pipeline yields, as its last batch() set it, or None."""
    while dataset is not None:
        size = _scalar(getattr(dataset, "_batch_size", None))
        if size is not None:
            return size
        inputs = dataset._inputs() if hasattr(dataset, "_inputs") else []
        dataset = inputs[0] if len(inputs) == 1 else None
    return None


def _parameters(dataset):
    found = {}
    for name in PARAMETERS:
        value = _scalar(getattr(dataset, f"_{name}", None))
        if value is not None or (name == "num_parallel_calls" and hasattr(dataset, "_map_func")):
            found[name] = value
    return found


def _options(dataset):
    """Return the options that hold for a pipeline up to here and were set, by dotted name; None when unknown."""
    if _symbolic(dataset):
        return None
    found = {}
    if hasattr(dataset, "options"):
        _collect(dataset.options(), "", found)
    return found


def _collect(options, prefix, found):
    for name, value in getattr(options, "_options", {}).items():
        if hasattr(value, "_options"):
            _collect(value, prefix + name + ".", found)
        elif value is not None:
            found[prefix + name] = value if isinstance(value, (bool, int, float)) else str(value)


def _scalar(value):
    """Return a number or a text that TensorFlow may keep as an eager tensor."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "ndim"):
        value = value.item() if value.ndim == 0 and hasattr(value, "item") else None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value if isinstance(value, (bool, int, float, str)) else None


def _symbolic(dataset):
    """Say whether a dataset was made inside a graph: there is nothing to ask then."""
    return not hasattr(getattr(dataset, "_variant_tensor_attr", None), "numpy")


def _cardinality(dataset):
    """Return how many elements there are; None when unknown, -1 when infinite."""
    if _symbolic(dataset):
        return None
    number = int(dataset.cardinality().numpy())
    return None if number == UNKNOWN else number
