"""The modules of TensorFlow that the agent asks: imported only where the script has TensorFlow already."""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .declared import Foreign


def in_use() -> bool:
    """Say whether TensorFlow's context is made, or a session of version 1 is: with it, threads that no fork has."""
    context = sys.modules.get("tensorflow.python.eager.context")
    made = getattr(context, "_context", None)
    sessions = sys.modules.get("tensorflow.python.client.session")
    return bool(getattr(made, "_initialized", False) or getattr(sessions, "_tfdoctor_made", False))


def of_tensorflow(name: str) -> Foreign:
    """Return a module of TensorFlow's Python."""
    whole = f"tensorflow.python.{name}"
    known = sys.modules.get(whole)  # each scope of a layer asks for one, and imports are slower
    return importlib.import_module(whole) if known is None else known


def context() -> Foreign:
    """Return the module that knows whether TensorFlow runs eagerly at this moment."""
    return of_tensorflow("eager.context")


def on_host() -> Foreign:
    """Return a context whose operations run on the host."""
    return of_tensorflow("framework.ops").device("/CPU:0")


def probe_dataset_number() -> int:
    """Make a small dataset and return the number that TensorFlow gave it.

    Raises:
        LookupError: the serialized dataset has no name.
    """
    from tensorflow.core.framework import dataset_metadata_pb2, graph_pb2

    dtypes, gen_dataset_ops = of_tensorflow("framework.dtypes"), of_tensorflow("ops.gen_dataset_ops")
    with on_host():
        dataset = gen_dataset_ops.range_dataset(
            start=0, stop=1, step=1, output_types=[dtypes.int64], output_shapes=[[]]
        )
        text = gen_dataset_ops.dataset_to_graph_v2(dataset).numpy()
    for node in graph_pb2.GraphDef.FromString(text).node:
        if node.op == "RangeDataset":
            metadata = dataset_metadata_pb2.Metadata.FromString(node.attr["metadata"].s)
            return int(metadata.name.rpartition(b":")[2])
    raise LookupError("a serialized dataset has no name")
