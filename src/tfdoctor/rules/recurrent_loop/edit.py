"""The edit that computes a function for all elements at once, where ``tf.map_fn`` calls it for one after the other.

``tf.vectorized_map`` computes the same where the calls do not depend on each other
(https://www.tensorflow.org/api_docs/python/tf/vectorized_map).
"""

from typing import Any

from tfdoctor.edits.elementwise import ELEMENTWISE
from tfdoctor.edits.kit import *

# Functions of TensorFlow without an effect or random numbers, which it computes for many elements at once.
VECTORIZED = ELEMENTWISE | frozenset(
    ["argmax", "argmin", "concat", "expand_dims", "gather", "greater_equal", "less_equal", "logical_and",
     "logical_not", "logical_or", "matmul", "negative", "norm", "not_equal", "reduce_logsumexp", "reduce_max",
     "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "relu", "softmax", "squeeze", "stack", "tensordot",
     "transpose", "where", "zeros_like", "ones_like"]
)  # fmt: skip

# Arguments of map_fn that vectorized_map does not need: it takes the types from the function.
TYPES = frozenset(["dtype", "fn_output_signature", "name", "parallel_iterations"])

_SYNTAX = (
    cst.BaseNumber, cst.Name, cst.Attribute, cst.Call, cst.BinaryOperation, cst.UnaryOperation, cst.Comparison,
    cst.Tuple, cst.List, cst.Subscript, cst.SimpleString,
)  # fmt: skip


def vectorized_fn(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Replace the only ``tf.map_fn`` of a file, or the one on a line, by ``tf.vectorized_map``."""
    values = Values(module)
    every = [call for call in module.all(cst.Call) if values.from_tensorflow(call.func) == "tensorflow.map_fn"]
    call = only([call for call in every if module.covers(call, line)] or every, "the file has {} of tf.map_fn")
    given = [argument for argument in call.args if argument.keyword is None]
    if len(given) != 2 or not named(call).keys() <= TYPES or any(arg.star for arg in call.args):  # noqa: PLR2004
        raise Declined("tf.map_fn has arguments that tf.vectorized_map has not")
    mapped = given[0].value
    function = values.function(mapped.value) if isinstance(mapped, cst.Name) else None
    body: cst.BaseExpression | cst.BaseSuite | None = mapped.body if isinstance(mapped, cst.Lambda) else None
    if function and not function.decorators:  # it only assigns names and returns a value
        lines = [one for one in function.body.body if isinstance(one, cst.SimpleStatementLine)]
        parts = [part for one in lines for part in one.body if not isinstance(part, cst.Return)]
        assigned = [part for part in parts if isinstance(part, cst.Assign)]
        names = all(isinstance(one.target, cst.Name) for part in assigned for one in part.targets)
        body = function.body if names and (len(lines), assigned) == (len(function.body.body), parts) else None
    if body is None:
        raise Declined("the mapped function is not one of the file without branches and loops")
    kind: Any = cst.BaseExpression  # abstract, and only asked about
    for node in module.inside(kind, body):
        what = "" if isinstance(node, _SYNTAX) else "has Python that"
        if isinstance(node, cst.Call):
            known = values.from_tensorflow(node.func) and last_name(node.func) in VECTORIZED
            what = "" if known else f"calls {last_name(node.func)}(), which"
        if what:
            raise Declined(f"line {module.line(node)} {what} may not be computed for all elements at once")
    if not isinstance(call.func, cst.Attribute):
        raise Declined("tf.map_fn has another name in the file")
    kept, end = module.span(given[1])[1], module.span(call)[1] - 1
    return [module.replaced(call.func.attr, "vectorized_map"), Splice(kept, end, 0, "")]


EDITS = {"vectorized-fn": vectorized_fn}
