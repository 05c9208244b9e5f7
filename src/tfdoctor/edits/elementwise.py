"""Whether a function that tf.data maps computes the same for a batch as for each element."""

import re
from typing import Any

import libcst as cst

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.syntax import last_name
from tfdoctor.edits.values import made_by

# Functions of TensorFlow that compute each element alone (one_hot adds a dimension at the end).
ELEMENTWISE = frozenset(
    ["abs", "add", "cast", "clip_by_value", "cos", "divide", "equal", "exp", "greater", "less", "log", "log1p",
     "maximum", "minimum", "multiply", "one_hot", "round", "sigmoid", "sign", "sin", "sqrt", "square", "subtract",
     "tanh"]
)  # fmt: skip

_OTHER_FEATURES = re.compile(r"\b(VarLen|Ragged|Sparse|FixedLenSequence)Feature\b")

# Functions that make a list of columns of a line of text, and of many lines.
COLUMNS = frozenset(["tensorflow.io.decode_csv", "tensorflow.compat.v1.decode_csv"])

_SYNTAX = (
    cst.BaseNumber, cst.SimpleString, cst.Name, cst.Attribute, cst.Call, cst.BinaryOperation, cst.UnaryOperation,
    cst.Tuple, cst.List, cst.Dict, cst.Subscript, cst.ListComp, cst.Comparison,
)  # fmt: skip


def must_be_elementwise(module: SyntaxTree, function: cst.FunctionDef) -> list[cst.Call]:
    """Return the calls that parse one example; decline what may treat a batch in another way."""
    if _OTHER_FEATURES.search(module.text):
        raise Declined("features of variable length are parsed in another way in batches")
    if len(function.params.params) != 1 or function.decorators:
        raise Declined(f"{function.name.value}() takes more than the serialized example")
    parses = [call for call in module.inside(cst.Call, function.body) if _parses(module, call)]
    if len(parses) != 1:
        raise Declined(f"{function.name.value}() does not parse one example")
    kinds: tuple[Any, ...] = (cst.BaseExpression, cst.BaseCompoundStatement)
    nodes = [node for kind in kinds for node in module.inside(kind, function.body)]
    given = [argument for call in parses for argument in call.args[1:]]
    for node in nodes:
        if not any(module.within(node, argument) for argument in given):
            _must_be_known(module, node)
    return parses


def stacked(module: SyntaxTree, function: cst.FunctionDef) -> list[cst.Call]:
    """Return the calls that stack columns along the first dimension, which is the last one of a scalar's."""
    return [
        call for call in module.inside(cst.Call, function.body) if _stacks(module, call) and len(call.args) == 1
    ]


def _stacks(module: SyntaxTree, call: cst.Call) -> bool:
    """Say whether a call stacks the columns of a line of text, which are scalars."""
    return module.from_tensorflow(call.func) == "tensorflow.stack" and bool(
        call.args and _are_columns(module, call.args[0].value)
    )


def _are_columns(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    """Say whether an expression is the list of columns of a line of text, or a slice of it."""
    match value:
        case cst.Name():
            sources = module.sources(value)
            return len(sources) == 1 and sources[0].place < 0 and _columns(module, sources[0].value)
        case cst.Subscript(value=cst.Name() as whole, slice=[cst.SubscriptElement(slice=cst.Slice())]):
            return _are_columns(module, whole)
        case _:
            return False


def _columns(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Call) and module.from_tensorflow(value.func) in COLUMNS


def _must_be_known(module: SyntaxTree, node: cst.CSTNode) -> None:
    line = module.line(node)
    if not isinstance(node, _SYNTAX):
        raise Declined(f"line {line} may treat a batch in another way than one element")
    if isinstance(node, cst.Subscript) and not (_is_key(module, node) or _are_columns(module, node.value)):
        raise Declined(f"line {line} takes a part of a tensor, which is another one in a batch")
    sides = _sides(node)
    if sides and not any(_is_number(module, side) for side in sides):
        raise Declined(f"line {line} computes with two tensors, which broadcast in another way in a batch")
    if isinstance(node, cst.Call) and not _is_alike(module, node):
        raise Declined(
            f"line {line} calls {last_name(node.func)}(), which may treat a batch in another way than one element"
        )


def _sides(node: cst.CSTNode) -> tuple[cst.BaseExpression, ...]:
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return left, right
        case cst.Comparison(left=left, comparisons=comparisons):
            return left, *(other.comparator for other in comparisons)
        case _:
            return ()


def _is_key(module: SyntaxTree, node: cst.Subscript) -> bool:
    """Say whether an item is taken by a text, as of a dictionary, or by a name that goes through its keys."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString()))]:
            return True
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Name() as key))]:
            loop = module.nearest(node, cst.ListComp)
            through = loop.for_in if loop else None
            return (
                through is not None
                and module.written(through.target) == key.value
                and isinstance(through.iter, cst.Call)
                and module.written(through.iter) == f"sorted({module.written(node.value)})"
            )
        case _:
            return False


def _parses(module: SyntaxTree, call: cst.Call) -> bool:
    """Say whether a call parses one example by a dictionary of features, or one line of columns."""
    if _columns(module, call):
        return True
    return module.from_tensorflow(call.func) in (
        "tensorflow.io.parse_single_example",
        "tensorflow.parse_single_example",
    ) and all(argument.keyword is None for argument in call.args)


def _is_alike(module: SyntaxTree, call: cst.Call) -> bool:
    """Say whether a call does the same to each element of a batch."""
    name, origin = last_name(call.func), module.from_tensorflow(call.func)
    if _parses(module, call):
        return True
    if origin and name == "stack":
        return (_stacks(module, call) and len(call.args) == 1) or any(
            module.written(argument.value) == "-1" for argument in call.args[1:]
        )
    if origin:
        rest = call.args[1:]  # two tensors of different ranks would broadcast in another way
        plain = all(_is_number(module, argument.value) for argument in rest)
        return name in ELEMENTWISE and plain
    if isinstance(call.func, cst.Name):
        return name == "sorted"
    return name == "pop" and len(call.args) == 1 and isinstance(call.args[0].value, cst.SimpleString)


def _is_number(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    """Say whether an expression is a Python number, or a name of TensorFlow such as tf.float32."""
    if isinstance(value, cst.Name):
        return isinstance(made_by(module, value), cst.BaseNumber)
    return isinstance(value, cst.BaseNumber) or bool(module.from_tensorflow(value))
