"""The edit that computes a function for all elements at once, where ``tf.map_fn`` calls it for one after the other.

``tf.vectorized_map`` computes the same where the calls do not depend on each other
(https://www.tensorflow.org/api_docs/python/tf/vectorized_map).
"""

from typing import Any

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.elementwise import ELEMENTWISE
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

# Functions of TensorFlow without an effect or random numbers, which it computes for many elements at once.
VECTORIZED = ELEMENTWISE | frozenset(
    ["argmax", "argmin", "concat", "expand_dims", "gather", "greater_equal", "less_equal", "logical_and",
     "logical_not", "logical_or", "matmul", "negative", "norm", "not_equal", "reduce_logsumexp", "reduce_max",
     "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "relu", "softmax", "squeeze", "stack", "tensordot",
     "transpose", "where", "zeros_like", "ones_like"]
)  # fmt: skip

# Arguments of map_fn that vectorized_map does not need: it takes the types from the function.
TYPES = frozenset(["dtype", "fn_output_signature", "name", "parallel_iterations"])

_SYNTAX: tuple[Any, ...] = (
    cst.BaseNumber, cst.Name, cst.Attribute, cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison,
    cst.Tuple, cst.List, cst.Subscript, cst.SimpleString,
)  # fmt: skip


def vectorized_fn(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Replace the only ``tf.map_fn`` of a file, or the one on a line, by ``tf.vectorized_map``."""
    values = Values(module)
    every = [call for call in module.all(cst.Call) if values.from_tensorflow(call.func) == "tensorflow.map_fn"]
    found = [call for call in every if module.covers(call, line)] or every
    if len(found) != 1:
        raise Declined(f"the file has {'several calls' if found else 'no call'} of tf.map_fn")
    call = found[0]
    positional = [argument for argument in call.args if argument.keyword is None]
    rest = {argument.keyword.value for argument in call.args if argument.keyword}
    if len(positional) != 2 or not rest <= TYPES or any(a.star for a in call.args):  # noqa: PLR2004
        raise Declined("tf.map_fn has arguments that tf.vectorized_map has not")
    _must_be_known(module, values, _body(values, positional[0].value))
    if not isinstance(call.func, cst.Attribute):
        raise Declined("tf.map_fn has another name in the file")
    kept, end = module.span(positional[1])[1], module.span(call)[1] - 1
    return [Splice(*module.span(call.func.attr), 0, "vectorized_map"), Splice(kept, end, 0, "")]


def _body(values: Values, mapped: cst.BaseExpression) -> cst.BaseExpression | cst.BaseSuite:
    """Return what the mapped function computes, which only assigns names and returns a value."""
    if isinstance(mapped, cst.Lambda):
        return mapped.body
    function = values.function(mapped.value) if isinstance(mapped, cst.Name) else None
    parts = function.body.body if function and not function.decorators else [None]
    straight = all(
        isinstance(part, cst.SimpleStatementLine) and all(map(_returns_or_names, part.body)) for part in parts
    )
    if function is None or not straight:
        raise Declined("the mapped function is not one of the file without branches and loops")
    return function.body


def _returns_or_names(one: cst.BaseSmallStatement) -> bool:
    names = isinstance(one, cst.Assign) and all(isinstance(target.target, cst.Name) for target in one.targets)
    return names or isinstance(one, cst.Return)


def _must_be_known(module: SyntaxTree, values: Values, body: cst.BaseExpression | cst.BaseSuite) -> None:
    kind: Any = cst.BaseExpression  # abstract, and only asked about
    for node in (node for node in module.all(kind) if module.within(node, body)):
        what = "" if isinstance(node, _SYNTAX) else "has Python that"
        if isinstance(node, cst.Call) and not (
            values.from_tensorflow(node.func) and last_name(node.func) in VECTORIZED
        ):
            what = f"calls {last_name(node.func)}(), which"
        if what:
            raise Declined(f"line {module.line(node)} {what} may not be computed for all elements at once")


EDITS: dict[str, Kind] = {"vectorized-fn": vectorized_fn}
