"""The modules of TensorFlow that the agent asks: imported only where the script has TensorFlow already."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .declared import Foreign, Graph, TraceMarker


def in_use() -> bool:
    """Say whether TensorFlow's context is made, or a session of version 1 is: with it, threads that no fork has."""
    context = sys.modules.get("tensorflow.python.eager.context")
    made = getattr(context, "_context", None)
    sessions = sys.modules.get("tensorflow.python.client.session")
    return bool(getattr(made, "_initialized", False) or getattr(sessions, "_tfdoctor_made", False))


def context() -> Foreign:
    """Return the module that knows whether TensorFlow runs eagerly at this moment."""
    if "tensorflow.python.eager.context" in sys.modules:  # each scope of a layer asks, and imports are slower
        return sys.modules["tensorflow.python.eager.context"]
    from tensorflow.python.eager import context as module

    return module


def default_graph() -> Callable[[], Graph]:
    """Return the function that returns the graph which is being traced."""
    from tensorflow.python.framework import ops

    getter: Callable[[], Graph] = ops.get_default_graph
    return getter


def trace_class() -> Callable[..., TraceMarker]:
    """Return the class of the profiler's markers."""
    from tensorflow.python.profiler import trace

    marker: Callable[..., TraceMarker] = trace.Trace
    return marker


def is_stateful(type_name: str) -> bool:
    """Say whether an operation of a type has state, or is unknown."""
    from tensorflow.python.framework import op_def_registry

    known = op_def_registry.get(type_name)
    return known is None or bool(known.is_stateful)


def probe_dataset_number() -> int:
    """Make a small dataset and return the number that TensorFlow gave it.

    Raises:
        LookupError: the serialized dataset has no name.
    """
    from tensorflow.core.framework import dataset_metadata_pb2, graph_pb2
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import gen_dataset_ops

    with ops.device("/CPU:0"):
        dataset = gen_dataset_ops.range_dataset(
            start=0, stop=1, step=1, output_types=[dtypes.int64], output_shapes=[[]]
        )
        text = gen_dataset_ops.dataset_to_graph_v2(dataset).numpy()
    for node in graph_pb2.GraphDef.FromString(text).node:
        if node.op == "RangeDataset":
            metadata = dataset_metadata_pb2.Metadata.FromString(node.attr["metadata"].s)
            return int(metadata.name.rpartition(b":")[2])
    raise LookupError("a serialized dataset has no name")


def flat_specs(element_spec: Foreign) -> list[Foreign]:
    """Return the types of an element's tensors; none where one of them is no plain tensor."""
    import tensorflow as tf

    specs = tf.nest.flatten(element_spec)
    return list(specs) if all(isinstance(spec, tf.TensorSpec) for spec in specs) else []


def iterator_parts() -> tuple[Foreign, Foreign, Foreign, type[Exception]]:
    """Return the raw operations of datasets, the class of iterators, nested structures, and the end of data."""
    from tensorflow.python.data.ops import iterator_ops
    from tensorflow.python.data.util import structure
    from tensorflow.python.framework import errors
    from tensorflow.python.ops import gen_dataset_ops

    return gen_dataset_ops, iterator_ops.OwnedIterator, structure, errors.OutOfRangeError


def on_host() -> Foreign:
    """Return a context whose operations run on the host."""
    from tensorflow.python.framework import ops

    return ops.device("/CPU:0")
