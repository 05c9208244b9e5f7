"""The edit that batches before a map, where the mapped function does the same to a batch as to each element."""

import re
from typing import Any

import libcst as cst

from tfdoctor.edits.chains import methods_of, segment
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

ELEMENTWISE = frozenset(
    ["abs", "add", "cast", "clip_by_value", "cos", "divide", "equal", "exp", "greater", "less", "log", "log1p",
     "maximum", "minimum", "multiply", "one_hot", "round", "sigmoid", "sign", "sin", "sqrt", "square", "subtract",
     "tanh"]
)  # fmt: skip
"""Functions of TensorFlow that compute each element alone (one_hot adds a dimension at the end)."""

_NAMED = re.compile(r"\.map\((\w+),")
_OTHER_FEATURES = re.compile(r"\b(VarLen|Ragged|Sparse|FixedLenSequence)Feature\b")

_SYNTAX = (
    cst.BaseNumber, cst.SimpleString, cst.Name, cst.Attribute, cst.Call, cst.BinaryOperation, cst.UnaryOperation,
    cst.Tuple, cst.List, cst.Dict, cst.Subscript, cst.ListComp, cst.Comparison,
)  # fmt: skip


def vectorized_map(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Exchange ``.map(f).batch(n)``, and parse whole batches in ``f``."""
    named = _NAMED.search(example)
    values = Values(module)
    function = values.function(named[1]) if named else None
    if function is None:
        raise Declined("the mapped function is not one of the file with a name of its own")
    uses = [name for name in module.all(cst.Name) if name.value == function.name.value]
    if len(uses) != 2:  # noqa: PLR2004 - its definition and the map
        raise Declined(f"{function.name.value}() is also used elsewhere")
    mapped, batch = _stages(module, function.name.value, line)
    parses = _must_be_elementwise(module, values, function)
    first, second = segment(module, mapped), segment(module, batch)
    return [
        Splice(first.start, first.end, 0, second.text),
        Splice(second.start, second.end, 0, first.text),
        *(Splice(*module.span(call.func), 0, _whole(module, call)) for call in parses),
    ]


def _whole(module: SyntaxTree, call: cst.Call) -> str:
    return module.written(call.func).replace("parse_single_example", "parse_example")


def _stages(module: SyntaxTree, name: str, line: int) -> tuple[cst.Call, cst.Call]:
    """Return the map of a function, and the batch directly after it in the same chain."""
    for batch in module.all(cst.Call):
        inner = batch.func.value if isinstance(batch.func, cst.Attribute) else None
        if methods_of(batch)[:2] != ["batch", "map"] or not isinstance(inner, cst.Call):
            continue
        if (
            inner.args
            and module.written(inner.args[0].value) == name
            and module.covers(batch, line)
        ):
            return inner, batch
    raise Declined("batch() does not stand directly after the map in one chain")


def _must_be_elementwise(
    module: SyntaxTree, values: Values, function: cst.FunctionDef
) -> list[cst.Call]:
    """Return the calls that parse one example; decline what may treat a batch in another way."""
    if _OTHER_FEATURES.search(module.text):
        raise Declined("features of variable length are parsed in another way in batches")
    if len(function.params.params) != 1 or function.decorators:
        raise Declined(f"{function.name.value}() takes more than the serialized example")
    inside = [call for call in module.all(cst.Call) if module.within(call, function.body)]
    parses = [call for call in inside if _parses(values, call)]
    if len(parses) != 1:
        raise Declined(f"{function.name.value}() does not parse one example")
    kinds: tuple[Any, ...] = (cst.BaseExpression, cst.BaseCompoundStatement)
    nodes = [node for kind in kinds for node in module.all(kind)]
    for node in nodes:
        if module.within(node, function.body):
            _must_be_known(module, node, values)
    return parses


def _must_be_known(module: SyntaxTree, node: cst.CSTNode, values: Values) -> None:
    line = module.line(node)
    if not isinstance(node, _SYNTAX):
        raise Declined(f"line {line} may treat a batch in another way than one element")
    if isinstance(node, cst.Subscript) and not _is_key(module, node):
        raise Declined(f"line {line} takes a part of a tensor, which is another one in a batch")
    sides = _sides(node)
    if sides and not any(_is_number(values, side) for side in sides):
        raise Declined(
            f"line {line} computes with two tensors, which broadcast in another way in a batch"
        )
    if isinstance(node, cst.Call) and not _is_alike(module, values, node):
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
            loop = next(module.around(node, cst.ListComp), None)
            through = loop.for_in if loop else None
            return (
                through is not None
                and module.written(through.target) == key.value
                and isinstance(through.iter, cst.Call)
                and module.written(through.iter) == f"sorted({module.written(node.value)})"
            )
        case _:
            return False


def _parses(values: Values, call: cst.Call) -> bool:
    """Say whether a call parses one example by a dictionary of features."""
    return values.from_tensorflow(call.func) in (
        "tensorflow.io.parse_single_example",
        "tensorflow.parse_single_example",
    ) and all(argument.keyword is None for argument in call.args)


def _is_alike(module: SyntaxTree, values: Values, call: cst.Call) -> bool:
    """Say whether a call does the same to each element of a batch."""
    name, origin = last_name(call.func), values.from_tensorflow(call.func)
    if _parses(values, call):
        return True
    if origin and name == "stack":
        return any(module.written(argument.value) == "-1" for argument in call.args[1:])
    if origin:
        rest = call.args[1:]  # two tensors of different ranks would broadcast in another way
        plain = all(_is_number(values, argument.value) for argument in rest)
        return name in ELEMENTWISE and plain
    if isinstance(call.func, cst.Name):
        return name == "sorted"
    return (
        name == "pop" and len(call.args) == 1 and isinstance(call.args[0].value, cst.SimpleString)
    )


def _is_number(values: Values, value: cst.BaseExpression) -> bool:
    """Say whether an expression is a Python number, or a name of TensorFlow such as tf.float32."""
    if isinstance(value, cst.Name):
        return isinstance(values.object(value), cst.BaseNumber)
    return isinstance(value, cst.BaseNumber) or bool(values.from_tensorflow(value))
