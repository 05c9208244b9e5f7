"""Whether a graph can hold a function as it is: a list of what is allowed, and everything else declines.

A graph runs Python once, when it is traced. So a function qualifies where its Python has no effect outside of
it, reads nothing that changes, has no loop, and never needs the value of a tensor
(https://www.tensorflow.org/guide/function#limitations).
"""

import ast
from collections.abc import Iterable
from typing import Any

from tfdoctor.edits.kit import *

ONCE = "and a graph runs Python only once, when it is traced"

# Built-in functions that only arrange what they get.
BUILTINS = frozenset(["enumerate", "list", "range", "reversed", "tuple", "zip"])
# Built-in functions that need the value or the length of what they get.
NEED_VALUES = frozenset(["bool", "float", "int", "len", "max", "min", "round", "sorted", "str"])

# Methods of tapes, optimizers, metrics, variables and Keras models that work in a graph.
METHODS = frozenset(
    ["apply", "apply_gradients", "assign", "assign_add", "assign_sub", "get_scaled_loss", "get_unscaled_gradients",
     "gradient", "items", "jacobian", "reset_state", "result", "scale_loss", "update_state", "values", "watch"]
)  # fmt: skip

# Parts of TensorFlow that act outside of the graph or differently in it, or that make something at each call.
DENIED = (
    "tensorflow.Variable", "tensorflow.compat", "tensorflow.config", "tensorflow.data", "tensorflow.debugging",
    "tensorflow.distribute", "tensorflow.executing_eagerly", "tensorflow.experimental", "tensorflow.function",
    "tensorflow.get_logger", "tensorflow.get_static_value", "tensorflow.inside_function", "tensorflow.io.gfile",
    "tensorflow.make_ndarray", "tensorflow.numpy_function", "tensorflow.profiler", "tensorflow.py_function",
    "tensorflow.random.set_seed", "tensorflow.saved_model", "tensorflow.summary", "tensorflow.train",
    "keras.ops.convert_to_numpy",
)  # fmt: skip

# Classes of TensorFlow whose objects may be made in a step.
MADE_IN_STEP = frozenset(["GradientTape", "IndexedSlices", "TensorShape", "TensorArray"])
KERAS_CALLS = ("activations", "losses", "ops")  # Modules of Keras whose functions and classes have no variables

# Syntax without an effect of its own; its parts are checked.
PLAIN = (
    ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Subscript, ast.Slice, ast.BinOp, ast.Pass,
    ast.Expr, ast.Delete,
)  # fmt: skip


class Traceable(ast.NodeVisitor):
    """Checks functions of one file that has no layers and models of its own; each of them once."""

    def __init__(self, module: SyntaxTree) -> None:
        self.module, self.checked = module, set[ast.AST]()

    def check(self, function: Function) -> None:
        """Decline unless a graph can hold a function and all functions of the file that it calls."""
        if function in self.checked:
            return
        self.checked.add(function)
        if function.decorator_list:
            raise Declined(f"{function.name}() has a decorator")
        if isinstance(function, ast.AsyncFunctionDef):
            raise Declined(f"{function.name}() is asynchronous")
        self._all(function.body)

    # Nodes of a function: statements and expressions

    def _all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        """Check the parts of a node of another kind."""
        self._all(self._parts(node))

    def _parts(self, node: ast.AST) -> Iterable[ast.AST]:
        """Return the parts of a node without an effect of its own that are still to be checked."""
        match node:
            case ast.With(items=items, body=body):
                tapes = [item.context_expr for item in items]
                for tape in tapes:
                    origin = self.module.from_tensorflow(tape.func) if isinstance(tape, ast.Call) else ""
                    if origin.rpartition(".")[2] not in ("GradientTape", "name_scope"):
                        raise Declined(f"{_at(tape)} has a `with` of something other than a tape")
                return [*tapes, *body]
            case ast.If(test=test, body=body, orelse=orelse):
                self._condition(test)
                return [*body, *orelse]
            case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, ast.In | ast.NotIn):
                return [left, right]
            case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
                return [operand]
            case _ if isinstance(node, PLAIN) and None not in getattr(node, "keys", ()):  # as of {**other}
                return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            case _:
                raise Declined(f"{_at(node)} has Python that a graph may not keep")

    def visit_Name(self, name: ast.Name) -> None:
        """Check a name, unless the function binds it."""
        if self._local(name) or self.module.from_tensorflow(name):  # that is a part of a longer name
            return
        if (own := self.module.function(name.id)) is not None:
            self.check(own)
        elif why := why_not_fixed(self.module, name):
            raise Declined(f"{_at(name)} uses a name of outside: {why}")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Decline an attribute that the file sets."""
        if self.module.from_tensorflow(node):
            return
        for target in (*self.module.targets, *(one.target for one in self.module.all(ast.AugAssign))):
            if isinstance(target, ast.Attribute) and target.attr == node.attr:
                raise Declined(f"{_at(target)} sets .{node.attr}, which the step reads")
        self.visit(node.value)

    def _local(self, name: ast.Name) -> bool:
        """Say whether the function binds a name itself."""
        function, bound = self.module.function_around(name), self.module.bound(name)
        return bool(bound) and all(function in [*self.module.outward(node)] for node in bound)

    def visit_Assign(self, node: ast.Assign | ast.AugAssign) -> None:
        """Decline an assignment to anything but names of the function."""
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if not all(isinstance(part, ast.Name) and self._local(part) for part in _flat(target)):
                raise Declined(f"{_at(node)} changes an object outside of the function")
        self.visit(node.value)

    visit_AugAssign = visit_Assign  # noqa: N815 - as visitors are named

    def visit_Return(self, node: ast.Return) -> None:
        """Decline a result that a graph would turn from a number into a tensor."""
        for value in _flat(node.value) if node.value else ():
            outer = isinstance(value, ast.Name) and not self._local(value)
            if outer or (isinstance(value, ast.Constant) and value.value is not None):
                raise Declined(f"{_at(node)} returns a constant, which a graph makes a tensor")
        self._all([node.value] if node.value else [])

    def _condition(self, test: ast.expr) -> None:
        """Decline a condition that may be a tensor: left are training, `x is None` and constants."""
        match test:
            case ast.Name(id="training") | ast.Constant(value=bool()):
                return
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                self._condition(inner)
            case _:
                self.visit(test)
                raise Declined(f"{_at(test)} decides by what may be the value of a tensor")

    # Calls: of TensorFlow, of models, and of functions of the file

    def visit_Call(self, call: ast.Call) -> None:
        """Check a function, and what it is given."""
        self._called(call)
        if not all(word.arg for word in call.keywords):
            raise Declined(f"{_at(call)} passes arguments with **")
        self._all(one.value if isinstance(one, ast.Starred) else one for one in arguments(call))

    def _called(self, call: ast.Call) -> None:
        func, line = call.func, _at(call)
        name = last_name(func)
        if origin := self.module.from_tensorflow(func):
            return _must_be_allowed(origin, line)
        match func:
            case ast.Name() if self._local(func):
                return self._given(func)
            case ast.Name() if (own := self.module.function(name)) is not None:
                return self.check(own)
            case ast.Name() if name in NEED_VALUES:
                raise Declined(f"{line} calls {name}(), which may need the values or the length of a tensor")
            case ast.Name() if name in BUILTINS and not self.module.bound(func):
                return None
            case ast.Name() if not self.module.bound(func) or self.module.imports.get(name):
                raise Declined(f"{line} calls {name}(), {ONCE}")
            case ast.Name():
                return self._object(func, func)
            case ast.Attribute():
                return self._method(func, line)
            case _:
                raise Declined(f"{line} calls what the file does not name")

    def _given(self, name: ast.Name) -> None:
        """Check the call of a name that the function is given."""
        sources = self.module.sources(name)
        given = [source.value for source in sources if source.whole and isinstance(source.value, ast.Name)]
        if not sources or len(given) < len(sources):
            raise Declined(f"{_at(name)} calls {name.id}(), which may be any Python")
        for one in given:
            self._object(name, one)

    def _object(self, name: ast.Name, given: ast.Name) -> None:
        """Decline the call of a name that is given no layer, model, loss or metric."""
        if why := why_not_fixed(self.module, given):
            raise Declined(f"{_at(name)} calls {name.id}(): {why}")

    def _method(self, func: ast.Attribute, line: str) -> None:
        name = func.attr
        if name in ("numpy", "item", "tolist"):
            raise Declined(f"{line} calls .{name}(), which needs the values of a tensor")
        if name not in METHODS or any(method.name == name for method in self.module.functions):
            raise Declined(f"{line} calls .{name}(), {ONCE}")
        self.visit(func.value)


def _at(node: Any) -> str:  # noqa: ANN401 - of any class that has a place
    return f"line {node.lineno}"


def _must_be_allowed(origin: str, line: str) -> None:
    """Decline the call of a part of TensorFlow or Keras that a step in a graph should not have."""
    name, written = origin.rpartition(".")[2], origin.removeprefix("tensorflow.")
    if any(f"{origin}.".startswith(f"{denied}.") for denied in DENIED):
        raise Declined(f"{line} calls {written}(), which may act differently in a graph")
    in_keras = origin.startswith(("keras.", "tf_keras.", "tensorflow.keras."))
    plain = any(f".{part}." in f".{origin}" for part in KERAS_CALLS)
    if in_keras and not plain:
        raise Declined(f"{line} calls {written}() in each step, which may create variables")
    if not in_keras and name[:1].isupper() and name not in MADE_IN_STEP:
        raise Declined(f"{line} creates a {name} in each step")


def _flat(value: ast.expr) -> Iterable[ast.expr]:
    """Yield the parts of a tuple, a list or a dictionary, else the expression."""
    match value:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _flat(part)
        case _:
            yield value
