"""The tf.data pipelines of the run: what each stage is, which line made it, and what traces call it."""

from __future__ import annotations

import weakref

from ..process import tensorflow_api
from ..process.stack import defined_at
from . import input_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..process.declared import DatasetFunction, TfDataset
    from ..process.stack import Line, Way

    Value = bool | int | float | str
    # The line that made a dataset, the function that this calls, and the way to it:
    Made = tuple[Line | None, str, Way]

# Kept by TensorFlow as `_<name>` on its dataset objects.
PARAMETERS = (
    *("num_parallel_calls", "buffer_size", "batch_size", "drop_remainder"),
    *("reshuffle_each_iteration", "count", "compression_type"),
)
UNKNOWN: Made = (None, "", ())  # Of a dataset that nobody saw being made
UNCOUNTED = -2  # tf.data's cardinality of what it cannot count
PYTHON_OPS = frozenset(("PyFunc", "EagerPyFunc", "PyFuncStateless"))

# Classes that make exactly one kernel, and the type of that kernel.
KERNELS = {
    **{
        f"_{kind}": kind
        for kind in (
            *("ConcatenateDataset", "FilterDataset", "MapDataset", "OptionsDataset", "ParallelBatchDataset"),
            *("PrefetchDataset", "RangeDataset", "RepeatDataset", "ShardDataset", "SkipDataset", "TakeDataset"),
            *("TensorDataset", "TensorSliceDataset", "ZipDataset"),
        )
    },
    "CacheDataset": "CacheDatasetV2",
    "_BatchDataset": "BatchDatasetV2",
    "_PaddedBatchDataset": "PaddedBatchDatasetV2",
    "_ParallelMapDataset": "ParallelMapDatasetV2",
    "_ShuffleDataset": "ShuffleDatasetV3",
}
# Classes that make one kernel, whose functions make more while the data flows.
MAKERS = {
    "_FlatMapDataset": "FlatMapDataset",
    "_InterleaveDataset": "InterleaveDataset",
    "_ParallelInterleaveDataset": "ParallelInterleaveDatasetV4",
}


class Numbering:
    """What tf.data calls a dataset in traces: its kernel's type and its number in the process.

    Tested: TensorFlow numbers the datasets that a process makes, in order, from 0 ("MapDataset:4"); a name that the
    user gave replaces that. Rewriting a pipeline keeps the names. Datasets that functions make while the data flows
    (flat_map, interleave) are numbered as well, unseen by Python: once such exist, the count is read back from a
    small dataset of our own, serialized with its name.
    """

    def __init__(self) -> None:
        self.following = 0
        self.settled = True  # every dataset so far was made where we see it
        self.numbers: weakref.WeakKeyDictionary[TfDataset, int] = weakref.WeakKeyDictionary()

    def note(self, dataset: TfDataset) -> None:
        """A dataset has just been made."""
        if not tensorflow_api.context().executing_eagerly():
            self.settled = False  # a function that will make datasets whenever it runs
            return
        kind = type(dataset).__name__
        if kind not in KERNELS and kind not in MAKERS:
            self.settled = False
        if self.settled:
            number, self.following = self.following, self.following + 1
        else:
            number = self._counted() - 1
        if kind in MAKERS:
            self.settled = False
        if number >= 0:
            self.numbers[dataset] = number

    def name(self, dataset: TfDataset) -> str | None:
        """Return the dataset's name in traces, or None when it is not certain."""
        given = getattr(getattr(dataset, "_metadata", None), "name", b"")
        if given:
            return given.decode("utf-8", "replace") if isinstance(given, bytes) else str(given)
        kind, number = type(dataset).__name__, self.numbers.get(dataset)
        type_name = KERNELS.get(kind) or MAKERS.get(kind)
        return None if number is None or type_name is None else f"{type_name}:{number}"

    def _counted(self) -> int:
        """Return the number that TensorFlow gives next; negative when others count meanwhile."""
        first = tensorflow_api.probe_dataset_number()
        second = tensorflow_api.probe_dataset_number()
        return first if second == first + 1 else -1


def graphs(datasets: Iterable[TfDataset]) -> set[int]:
    """Return the ids of the graphs that tf.data runs."""
    return {id(function.function.graph) for dataset in datasets for function in _functions(dataset)}


def describe(
    datasets: Sequence[TfDataset], numbering: Numbering, made: Mapping[TfDataset, Made]
) -> list[dict[str, object]]:
    """Return one entry a dataset, with its line and the function that this calls; its id is its place."""
    ids = {id(dataset): number for number, dataset in enumerate(datasets)}
    return [
        {
            "id": number,
            "class": type(dataset).__name__,
            "trace_name": numbering.name(dataset),
            "inputs": [ids[id(one)] for one in dataset._inputs() if id(one) in ids],
            "parameters": dict(_parameters(dataset)),
            # Those that hold for a pipeline up to here and were set; None when unknown:
            "options": None if _symbolic(dataset) else dict(_options(getattr(dataset, "options", object)())),
            "files": input_files.describe(dataset),
            "function": next(map(_function, _functions(dataset)), None),
            "element_spec": str(dataset.element_spec)[:500],
            "tensors": str(dataset.element_spec).count("TensorSpec("),
            "cardinality": _cardinality(dataset),
            "at": made.get(dataset, UNKNOWN)[0],
            "made_by": made.get(dataset, UNKNOWN)[1],
        }
        for number, dataset in enumerate(datasets)
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
        "stateful": sorted(filter(_is_stateful, types)),
    }


def _is_stateful(type_name: str) -> bool:
    """Say whether an operation of a type has state, or is unknown."""
    known = tensorflow_api.of_tensorflow("framework.op_def_registry").get(type_name)
    return known is None or bool(known.is_stateful)


def batch_of(dataset: TfDataset | None) -> Value | None:
    """Return the size of the batches that a pipeline yields, as its last batch() set it, or None."""
    while dataset is not None:
        size = _scalar(getattr(dataset, "_batch_size", None))
        if size is not None:
            return size
        inputs = dataset._inputs() if hasattr(dataset, "_inputs") else []
        dataset = inputs[0] if len(inputs) == 1 else None
    return None


def _parameters(dataset: TfDataset) -> Iterator[tuple[str, Value | None]]:
    for name in PARAMETERS:
        value = _scalar(getattr(dataset, f"_{name}", None))
        if value is not None or (name == "num_parallel_calls" and hasattr(dataset, "_map_func")):
            yield name, value


def _options(options: object, prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Yield the options that were set, by dotted name."""
    for name, value in getattr(options, "_options", {}).items():
        if hasattr(value, "_options"):
            yield from _options(value, prefix + name + ".")
        elif value is not None:
            yield prefix + name, value if isinstance(value, (bool, int, float)) else str(value)


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
    return None if number == UNCOUNTED else number
