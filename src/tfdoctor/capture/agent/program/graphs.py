"""What the graphs compute: each operation with its shapes, types, attributes, line and layer."""

from __future__ import annotations

import hashlib

from ..process.stack import traced_line
from . import kernels, zeros
from .origins import origin
from .outside_tensors import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from ..process.declared import Foreign, Graph, GraphOperation, Tensor
    from .layers import Layers, Scopes

# What the cost of an operation depends on, besides its shapes.
ATTRIBUTES = frozenset(
    (
        *("DstT", "SrcT", "T", "adj_x", "adj_y", "data_format", "dilations", "epsilon", "equation"),
        *("explicit_paddings", "is_training", "ksize", "padding", "ratio", "strides"),
        *("transpose_a", "transpose_b"),
    )
)

_wanted: dict[str, list[str]] = {}  # Which of them an operation of a type has
_types: dict[int, object] = {}  # The names of the data types by their numbers
_differs: dict[str, bool] = {}  # Whether an operation of a type may return other results for equal inputs
# Operations that return the same until their variable is written.
READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
NAMES_OF_GRAPH = ("_class", "_output_shapes")  # Attributes that say where an operation is, and not what it computes
# Elements of a constant whose value is looked at: comparing longer ones costs more time than it explains.
LONGEST_CONSTANT = 4096
NUMBERS = ("float_val", "double_val", "int_val", "int64_val")  # Where a constant keeps its number, by its type
DATASET_FUNCTIONS = "Dataset_"  # How tf.data names the functions that it traces
SESSION = "session"  # The name we give the graph of a session, which has none


def describe(graph: Graph, layers: Layers, dataset_graphs: Container[int], scopes: Scopes) -> dict[str, object]:
    """Return one graph; `scopes` are the name scopes that its layers got."""
    name = getattr(graph, "name", SESSION)
    of_data = id(graph) in dataset_graphs or name.startswith(DATASET_FUNCTIONS)
    outer = getattr(graph, "outer_graph", None)
    owner = layers.owner(scopes)
    operations = graph.get_operations()
    numbers = {op.name: number for number, op in enumerate(operations)}
    return {
        "name": name,
        "kind": "dataset" if of_data else "function",
        "outer": getattr(outer, "name", None),
        "given": _given(graph),
        "operations": [_operation(op, owner, numbers) for op in operations],
        "zeros": [] if of_data else zeros.describe(graph),
        "kernels": [] if of_data else kernels.describe(graph),
        "captured": [] if of_data else [name for _, name in held(graph)],
    }


def _given(graph: Graph) -> list[str] | None:
    """Return what the function was traced for: one text an argument; None where it does not say."""
    signature = getattr(graph, "structured_input_signature", None)
    if not signature:
        return None
    by_place, by_name = signature
    given = [str(argument)[:200] for argument in by_place]
    return given + [f"{name}={str(argument)[:200]}" for name, argument in by_name.items()]


def _operation(
    op: GraphOperation, owner: Callable[[str], str | None], numbers: Mapping[str, int]
) -> dict[str, object]:
    """Return one operation; `from` are the numbers of those that make its inputs."""
    lines, direct, called = traced_line(op.traceback)
    layer, node = owner(op.name), None if _is_long(op) else op.node_def
    described: dict[str, object] = {
        "name": op.name,
        "type": op.type,
        "inputs": [_tensor(tensor) for tensor in op.inputs],
        "from": [numbers.get(tensor.op.name) for tensor in op.inputs],
        "outputs": [_tensor(tensor) for tensor in op.outputs],
        "attrs": _attributes(op, node),
        "at": lines[0] if lines else None,
        "by": lines[1] if len(lines) > 1 else None,
        "direct": direct,
        "layer": layer,
        "origin": None if layer else origin(called),
        "computes": _computes(op, node),  # last: it takes out of the node what does not count
    }
    ports = [getattr(tensor, "value_index", 0) for tensor in op.inputs]
    return described | {"ports": ports} if any(ports) else described


def _is_long(op: GraphOperation) -> bool:
    elements = (op.outputs[0].shape.num_elements() or 0) if op.type == "Const" else 0
    return elements > LONGEST_CONSTANT


def _computes(op: GraphOperation, node: Foreign) -> str:
    """Return a digest of type and attributes, "" where equal inputs may give other results or it is too long."""
    if op.type not in _differs:
        _differs[op.type] = op.op_def.is_stateful and op.type not in READS
    if _differs[op.type] or node is None:
        return ""
    for name in ("name", "input", "experimental_debug_info"):
        node.ClearField(name)
    for name in NAMES_OF_GRAPH:
        node.attr.pop(name, None)
    text = node.SerializeToString(deterministic=True)
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:12]


def _tensor(tensor: Tensor) -> list[object]:
    shape = tensor.shape
    return [tensor.dtype.name, None if shape.rank is None else shape.as_list()]


def _attributes(op: GraphOperation, node: Foreign) -> dict[str, object]:
    """Return the attributes that matter, as JSON knows them."""
    if op.type not in _wanted:
        names = (attribute.name for attribute in op.op_def.attr)
        _wanted[op.type] = [name for name in names if name in ATTRIBUTES]
    wanted = {name: _attribute(op, node, name) for name in _wanted[op.type]}
    number = number_of(op) if op.type == "Const" else None
    return wanted if number is None else wanted | {"scalar": number}


def _attribute(op: GraphOperation, node: Foreign, name: str) -> object:
    """Return one attribute; of its node, which has all at once, where that needs nothing of TensorFlow to read."""
    value = node.attr[name] if node is not None and name in node.attr else None
    kind = None if value is None else value.WhichOneof("value")
    if value is None or kind not in {"type", "b", "i", "f", "s"}:
        return _plain(op.get_attr(name))
    if kind != "type":
        return _plain(getattr(value, kind))
    if value.type not in _types:
        _types[value.type] = _plain(op.get_attr(name))
    return _types[value.type]


def number_of(op: GraphOperation) -> float | str | None:
    """Return the value of a constant that is one number: an exponent of 2 makes a square.

    An infinite one and NaN, which JSON does not have, are texts.
    """
    if op.outputs[0].shape.rank != 0:
        return None
    value = op.get_attr("value")
    kept = (getattr(value, field) for field in NUMBERS)
    number = next((float(numbers[0]) for numbers in kept if len(numbers) == 1), None)
    return number if number is None or number - number == 0 else str(number)


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else getattr(value, "name", str(value))
