"""What the graphs compute: each operation with its shapes, types, attributes, line, layer and part of Keras."""

from __future__ import annotations

import hashlib
import re
from functools import cache

from ..process.kept import io
from ..process.stack import traced_line
from . import held_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from ..process.declared import Foreign, Graph, GraphOperation, Tensor, Traceback, TracedFrame
    from ..process.stack import Line
    from .layers import Layers, Scopes

    Traced = tuple[tuple[Line, ...], bool, tuple[str, str] | None]

# What the cost of an operation depends on, besides its shapes (`tfdoctor.recording.program.Attributes`).
ATTRIBUTES = frozenset(("adj_x", "data_format", "equation", "ratio", "strides", "transpose_a"))
# Of an operation's type: which of them it has, and whether it may return other results for equal inputs.
_known: dict[str, tuple[list[str], bool]] = {}
# Operations that return the same until their variable is written.
READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
FIELDS_OF_GRAPH = ("name", "input", "experimental_debug_info")  # What says where an operation is,
NAMES_OF_GRAPH = ("_class", "_output_shapes")  # the attributes too, and not what it computes
# Elements of a constant whose value is looked at: comparing longer ones costs more time than it explains.
LONGEST_CONSTANT = 4096
NUMBERS = ("float_val", "double_val", "int_val", "int64_val")  # Where a constant keeps its number, by its type
DATASET_FUNCTIONS = "Dataset_"  # How tf.data names the functions that it traces
SESSION = "session"  # The name we give the graph of a session, which has none

# Where Keras 2 and 3 and tf_keras keep the parts that no layer owns; single files in old versions.
PART = re.compile(r"keras[\\/](?:src[\\/])?(metrics|losses|optimizers|regularizers)[\\/]?")
KINDS = {"metrics": "metric", "losses": "loss", "optimizers": "optimizer", "regularizers": "regularizer"}
# Files of the classes that all parts of a kind share: they do not say which one it is.
SHARED = re.compile(r"[\\/](metric|base_metric|reduction_metrics|loss|base_optimizer|optimizer)\.py$")
CLIPPING = re.compile(r"clip", re.IGNORECASE)  # In the names of the optimizers' functions that clip gradients
DEFINED = re.compile(r"(?:class|def) (\w+)")  # A definition of a module
# Classes that call a function, which says what it is.
WRAPPERS = frozenset({"LossFunctionWrapper", "MeanMetricWrapper"})


def describe(
    graph: Graph, layers: Layers, dataset_graphs: Container[int], scopes: Scopes | None
) -> dict[str, object]:
    """Return one graph; `scopes` are the name scopes that its layers got, None where it was traced unseen."""
    name = getattr(graph, "name", SESSION)
    of_data = id(graph) in dataset_graphs or name.startswith(DATASET_FUNCTIONS)
    outer = getattr(graph, "outer_graph", None)
    owner = layers.owner(scopes)
    operations = graph.get_operations()
    numbers = {op.name: number for number, op in enumerate(operations)}
    nothing: dict[str, object] = {"zeros": [], "kernels": [], "captured": []}
    known: dict[Traceback, Traced] = {}
    return {
        "name": name,
        "kind": "dataset" if of_data else "function",
        "outer": getattr(outer, "name", None),
        "given": _given(graph),
        "operations": [_operation(op, owner, numbers, known) for op in operations],
        **(nothing if of_data else held_tensors.describe(graph, operations)),
    }


def _given(graph: Graph) -> list[str] | None:
    """Return what the function was traced for: one text an argument; None where it does not say."""
    signature = getattr(graph, "structured_input_signature", None)
    if not signature:
        return None
    by_place, by_name = signature
    given = [str(argument)[:200] for argument in by_place]
    return given + [f"{name}={str(argument)[:200]}" for name, argument in by_name.items()]


def _traced(op: GraphOperation, known: dict[Traceback, Traced]) -> Traced:
    """Return how the user's lines lead to an operation, and its part: loops make thousands at the same lines."""
    trace = op.traceback
    try:
        found = known.get(trace)
    except TypeError:  # of earlier TensorFlow it is a list
        return _read(trace)
    if found is None:
        found = known[trace] = _read(trace)
    return found


def _read(trace: Traceback | None) -> Traced:
    lines, direct, called = traced_line(trace)
    return lines, direct, _origin(called)


def _operation(
    op: GraphOperation,
    owner: Callable[[str], str | None],
    numbers: Mapping[str, int],
    known: dict[Traceback, Traced],
) -> dict[str, object]:
    """Return one operation; `from` are the numbers of those that make its inputs."""
    if op.type not in _known:
        names = [attribute.name for attribute in op.op_def.attr if attribute.name in ATTRIBUTES]
        _known[op.type] = names, op.op_def.is_stateful and op.type not in READS
    wanted, differs = _known[op.type]
    lines, direct, origin = _traced(op, known)
    layer = owner(op.name)
    is_long = op.type == "Const" and (op.outputs[0].shape.num_elements() or 0) > LONGEST_CONSTANT
    node = None if is_long else op.node_def
    attributes = {name: _plain(op.get_attr(name)) for name in wanted}
    number = number_of(op) if op.type == "Const" else None
    described: dict[str, object] = {
        "name": op.name,
        "type": op.type,
        "inputs": [_tensor(tensor) for tensor in op.inputs],
        "from": [numbers.get(tensor.op.name) for tensor in op.inputs],
        "outputs": [_tensor(tensor) for tensor in op.outputs],
        "attrs": attributes if number is None else attributes | {"scalar": number},
        "at": lines[0] if lines else None,
        "by": lines[1] if len(lines) > 1 else None,
        "direct": direct,
        "layer": layer,
        "origin": origin if layer is None else None,
        "computes": "" if differs or node is None else _digest(node),
    }
    if lines[2:]:
        described["around"] = lines[2:]
    ports = [getattr(tensor, "value_index", 0) for tensor in op.inputs]
    return described | {"ports": ports} if any(ports) else described


def _digest(node: Foreign) -> str:
    """Return a digest of type and attributes; takes out of the node what does not count."""
    for name in FIELDS_OF_GRAPH:
        node.ClearField(name)
    for name in NAMES_OF_GRAPH:
        node.attr.pop(name, None)
    text = node.SerializeToString(deterministic=True)
    return hashlib.sha1(text, usedforsecurity=False).hexdigest()[:12]


def _tensor(tensor: Tensor) -> list[object]:
    shape = tensor.shape
    return [tensor.dtype.name, None if shape.rank is None else shape.as_list()]


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
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _origin(frames: Sequence[TracedFrame]) -> tuple[str, str] | None:
    """Return which kind of part of Keras frames lead into, and its class or function; None if none.

    The user's frames are excluded, and the innermost is last.
    """
    parts = [(part, frame) for frame in frames if (part := _part(frame.filename))]
    if not parts:
        return None
    kind = parts[0][0]
    own = [frame for part, frame in parts if part == kind]
    if kind == "optimizers" and any(CLIPPING.search(frame.name) for frame in own):
        return "gradient clipping", ""
    named = (_defined(frame.filename, frame.lineno) for frame in own if not SHARED.search(frame.filename))
    return KINDS[kind], next((name for name in named if name and name not in WRAPPERS), "")


@cache
def _part(file: str) -> str:
    match = PART.search(file)
    return match[1] if match else ""


@cache
def _defined(file: str, line: int) -> str:
    """Return the class or function of a module that holds a line, "" where its file cannot be read."""
    try:
        with io.open(file, encoding="utf-8") as text:
            lines = [next(text, "") for _ in range(line)]
    except OSError:
        return ""
    found = (match[1] for each in reversed(lines) if (match := DEFINED.match(each)))
    return next(found, "")
