"""The tf.data pipelines of the run: what each stage is, and which line made it."""

from __future__ import annotations

from ..process import tensorflow_api
from ..process.stack import defined_at
from . import file_lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..process.declared import DatasetFunction, TfDataset
    from .registry import Registry

    Value = bool | int | float | str

# Kept by TensorFlow as `_<name>` on its dataset objects.
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

UNKNOWN = -2  # tf.data's cardinality of what it cannot count

PYTHON_OPS = frozenset(("PyFunc", "EagerPyFunc", "PyFuncStateless"))


class Datasets:
    """All live datasets, numbered."""

    def __init__(self, registry: Registry) -> None:
        self.lines, self.makers = registry.lines, registry.makers
        self.numbering = registry.numbering
        alive = (reference() for reference in registry.datasets)
        self.datasets = [dataset for dataset in alive if dataset is not None]
        self.ids = {id(dataset): number for number, dataset in enumerate(self.datasets)}

    def id_of(self, dataset: TfDataset | None) -> int | None:
        """Return the number of a dataset, or None."""
        return self.ids.get(id(dataset)) if dataset is not None else None

    def graphs(self) -> set[int]:
        """Return the ids of the graphs that tf.data runs."""
        functions = (function for dataset in self.datasets for function in _functions(dataset))
        return {id(function.function.graph) for function in functions}

    def describe(self) -> list[dict[str, object]]:
        """Return one entry a dataset."""
        ids, numbering = self.ids, self.numbering
        return [
            {
                "id": number,
                "class": type(dataset).__name__,
                "trace_name": numbering.name(dataset),
                "inputs": [ids[id(one)] for one in dataset._inputs() if id(one) in ids],
                "parameters": _parameters(dataset),
                "options": _options(dataset),
                "files": file_lists.describe(dataset),
                "function": next(map(_function, _functions(dataset)), None),
                "element_spec": str(dataset.element_spec)[:500],
                "tensors": str(dataset.element_spec).count("TensorSpec("),
                "cardinality": _cardinality(dataset),
                "at": self.lines.get(dataset),
                "made_by": self.makers.get(dataset, ""),
            }
            for number, dataset in enumerate(self.datasets)
        ]


def _functions(dataset: TfDataset) -> Sequence[DatasetFunction]:
    try:
        return [wrapper for wrapper in dataset._functions() if hasattr(wrapper, "function")]
    except Exception:  # a user's own dataset class need not know its functions
        return []


def _function(wrapper: DatasetFunction) -> dict[str, object]:
    function = wrapper._func
    known = wrapper.function.graph.as_graph_def()
    inner = known.library.function  # the branches and loops within
    nodes = [*known.node, *(node for each in inner for node in each.node_def)]
    types = {node.op for node in nodes} - {each.signature.name for each in inner}
    return {
        "name": getattr(function, "__name__", type(function).__name__),
        "at": defined_at(function),
        "python": bool(types & PYTHON_OPS),
        "types": sorted(types),
        "stateful": sorted(name for name in types if tensorflow_api.is_stateful(name)),
    }


def batch_of(dataset: TfDataset | None) -> Value | None:
    """Return the size of the batches that a pipeline yields, as its last batch() set it, or None."""
    while dataset is not None:
        size = _scalar(getattr(dataset, "_batch_size", None))
        if size is not None:
            return size
        inputs = dataset._inputs() if hasattr(dataset, "_inputs") else []
        dataset = inputs[0] if len(inputs) == 1 else None
    return None


def _parameters(dataset: TfDataset) -> dict[str, Value | None]:
    parameters = {}
    for name in PARAMETERS:
        value = _scalar(getattr(dataset, f"_{name}", None))
        if value is not None or (name == "num_parallel_calls" and hasattr(dataset, "_map_func")):
            parameters[name] = value
    return parameters


def _options(dataset: TfDataset) -> dict[str, Value] | None:
    """Return the options that hold for a pipeline up to here and were set, by dotted name; None when unknown."""
    if _symbolic(dataset):
        return None
    options: dict[str, Value] = {}
    if hasattr(dataset, "options"):
        _collect(dataset.options(), "", options)
    return options


def _collect(options: object, prefix: str, known: dict[str, Value]) -> None:
    for name, value in getattr(options, "_options", {}).items():
        if hasattr(value, "_options"):
            _collect(value, prefix + name + ".", known)
        elif value is not None:
            known[prefix + name] = value if isinstance(value, (bool, int, float)) else str(value)


def _scalar(value: object) -> Value | None:
    """Return a number or a text that TensorFlow may keep as an eager tensor."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if hasattr(value, "ndim"):
        value = value.item() if value.ndim == 0 and hasattr(value, "item") else None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value if isinstance(value, (bool, int, float, str)) else None


def _symbolic(dataset: TfDataset) -> bool:
    """Say whether a dataset was made inside a graph: there is nothing to ask then."""
    return not hasattr(getattr(dataset, "_variant_tensor_attr", None), "numpy")


def _cardinality(dataset: TfDataset) -> int | None:
    """Return how many elements there are; None when unknown, -1 when infinite."""
    if _symbolic(dataset):
        return None
    number = int(dataset.cardinality().numpy())
    return None if number == UNKNOWN else number
