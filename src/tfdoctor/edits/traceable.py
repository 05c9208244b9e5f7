"""Whether a graph can hold a function as it is: a list of what is allowed, and everything else declines.

A graph runs Python once, when it is traced. So a function qualifies where its Python has no effect outside of
it, reads nothing that changes, and never needs the value of a tensor
(https://www.tensorflow.org/guide/function#limitations).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from tfdoctor.edits.kit import *

ONCE = "and a graph runs Python only once, when it is traced"

# Built-in functions that only arrange what they get.
BUILTINS = frozenset(["enumerate", "list", "range", "reversed", "super", "tuple", "zip"])
# Built-in functions that need the value or the length of what they get.
NEED_VALUES = frozenset(["bool", "float", "int", "len", "max", "min", "round", "sorted", "str"])

# Methods of tapes, optimizers, metrics, variables and Keras models that work in a graph.
METHODS = frozenset(
    ["add_loss", "apply", "apply_gradients", "assign", "assign_add", "assign_sub", "compute_loss",
     "compute_metrics", "get_scaled_loss", "get_unscaled_gradients", "gradient", "items", "jacobian",
     "reset_state", "result", "scale_loss", "update_state", "values", "watch"]
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
# Ends of the names of Keras' attributes that are lists.
LISTS = ("variables", "weights", "losses", "metrics", "layers")
# Methods of layers and models that Keras calls in a step.
CALLED_BY_KERAS = frozenset(["call", "compute_loss", "compute_mask", "compute_metrics", "test_step", "train_step"])
BEFORE_STEPS = frozenset(["__init__", "build", "compile"])  # Methods that run before the first step

# Syntax without an effect of its own; its parts are checked.
PLAIN = (
    ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Subscript, ast.Slice, ast.BinOp, ast.Pass,
    ast.Expr, ast.Delete,
)  # fmt: skip

LITERAL_LISTS = (ast.List, ast.Tuple, ast.ListComp)


class Traceable:
    """Checks functions of one file; each of them once.

    ``batch_is_known``: the step is called with whole tensors, so that shapes are numbers when it is traced. Keras'
    fit traces with an unknown batch size.
    """

    def __init__(self, module: SyntaxTree, *, batch_is_known: bool) -> None:
        self.module, self.batch_is_known = module, batch_is_known
        self.checked: set[ast.AST] = set()

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

    def check_class(self, definition: ast.ClassDef) -> None:
        """Decline unless a graph can hold the methods of a layer or a model that Keras calls in a step."""
        for method in own_methods(definition, *CALLED_BY_KERAS):
            self.check(method)

    # Nodes of a function: statements and expressions

    def _all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._node(node)

    def _node(self, node: ast.AST) -> None:
        match node:
            case ast.Name():
                self._name(node)
            case ast.Attribute():
                self._attribute(node)
            case ast.Call():
                self._call(node)
            case ast.Assign() | ast.AugAssign():
                self._assignment(node)
            case ast.With():
                self._with(node)
            case ast.For():
                self._loop(node, node.body, node.orelse)
            case (
                ast.ListComp(elt=made, generators=[loop, *more])
                | ast.GeneratorExp(elt=made, generators=[loop, *more])
            ):
                self._node(made)
                self._loop(loop, (), more)
                for condition in loop.ifs:
                    self._condition(condition)
            case _:
                self._all(self._parts(node))

    def _parts(self, node: ast.AST) -> Iterable[ast.AST]:
        """Return the parts of a node without an effect of its own that are still to be checked."""
        match node:
            case ast.If(test=test, body=body, orelse=orelse):
                self._condition(test)
                return [*body, *orelse]
            case ast.IfExp(test=test, body=made, orelse=other):
                self._condition(test)
                return [made, other]
            case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, ast.In | ast.NotIn):
                return [left, right]
            case ast.UnaryOp(op=ast.UAdd() | ast.USub(), operand=operand):
                return [operand]
            case ast.Return(value=value):
                self._result(node)
                return [value] if value else []
            case _ if isinstance(node, PLAIN) and None not in getattr(node, "keys", ()):  # as of {**other}
                return [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            case _:
                raise Declined(f"{_at(node)} has Python that a graph may not keep")

    def _name(self, name: ast.Name) -> None:
        if self._local(name) or self.module.from_tensorflow(name):  # that is a part of a longer name
            return
        if (own := self.module.function(name.id)) is not None:
            self.check(own)
        elif why := why_not_fixed(self.module, name):
            raise Declined(f"{_at(name)} uses a name of outside: {why}")

    def _attribute(self, node: ast.Attribute) -> None:
        if self.module.from_tensorflow(node):
            return
        if node.attr in ("shape", "ndim") and not self.batch_is_known and not self._static(node):
            raise Declined(f"{_at(node)} reads a shape, whose batch size a graph may not know")
        self._must_stay(node)
        self._node(node.value)

    def _static(self, shape: ast.Attribute) -> bool:
        """Say whether only dimensions after the first are read of a shape."""
        match self.module.parent(shape):
            case ast.Subscript(slice=ast.Constant(value=int(at))):
                return at != 0
            case ast.Subscript(slice=ast.UnaryOp() as minus):
                return self.module.written(minus) == "-1"
            case _:
                return shape.attr == "ndim"

    def _assignment(self, node: ast.Assign | ast.AugAssign) -> None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if not all(isinstance(part, ast.Name) and self._local(part) for part in _flat(target)):
                raise Declined(f"{_at(node)} changes an object outside of the function")
        self._node(node.value)

    def _result(self, node: ast.Return) -> None:
        """Decline a result that a graph would turn from a number into a tensor."""
        for value in _flat(node.value) if node.value else ():
            outer = isinstance(value, ast.Name) and not self._local(value)
            if outer or (isinstance(value, ast.Constant) and value.value is not None):
                raise Declined(f"{_at(node)} returns a constant, which a graph makes a tensor")

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            call = item.context_expr
            origin = self.module.from_tensorflow(call.func) if isinstance(call, ast.Call) else ""
            if origin.rpartition(".")[2] not in ("GradientTape", "name_scope"):
                raise Declined(f"{_at(call)} has a `with` of something other than a tape")
            self._node(call)
        self._all(node.body)

    # Loops and conditions: none may depend on the value of a tensor

    def _loop(self, loop: ast.For | ast.comprehension, body: Iterable[ast.AST], more: Sequence[ast.AST]) -> None:
        self._iterates(loop.iter)
        self._all((loop.iter, *body))
        if more:
            raise Declined(f"{_at(loop.target)} has a loop in a loop")

    def _iterates(self, through: ast.expr) -> None:
        """Decline a loop over what may be a tensor."""
        match through:
            case ast.Call(func=ast.Name(id="range")):
                if not all(map(self._is_number, arguments(through))):
                    raise Declined(f"{_at(through)} loops as often as a value says")
            case ast.Call(func=ast.Name(id="zip" | "enumerate" | "reversed" | "list")):
                for argument in arguments(through):
                    self._iterates(argument)
            case ast.Call(func=ast.Attribute(attr="gradient" | "items" | "values")):
                return
            case ast.BinOp(left=left, right=right):
                self._iterates(left)
                self._iterates(right)
            case _:
                if not self._is_list(through):
                    raise Declined(f"{_at(through)} loops over what may be a tensor")

    def _is_number(self, value: ast.expr) -> bool:
        """Say whether an expression is a Python number that does not change."""
        match value:
            case ast.Constant(value=int()) | ast.Attribute(value=ast.Name(id="self")):
                return True
            case _:
                return isinstance(value, ast.Name) and not why_not_fixed(self.module, value)

    def _is_list(self, value: ast.expr) -> bool:
        """Say whether an expression is a list of variables, gradients or constants."""
        match value:
            case ast.Name():
                sources = self.module.sources(value)
                held = (not source.each and _holds_list(source.value, source.place) for source in sources)
                return bool(sources) and all(held)
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if not name.endswith(LISTS):
                made = self._made(value)
                return bool(made) and all(isinstance(one, LITERAL_LISTS) for one in made)
            case _:
                return not isinstance(value, ast.Call) and _holds_list(value, -1)

    def _condition(self, test: ast.expr) -> None:
        """Decline a condition that may be a tensor: left are training, `x is None` and constants."""
        match test:
            case ast.Name(id="training") | ast.Constant(value=bool()):
                return
            case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                self._condition(inner)
            case ast.BoolOp(values=parts):
                for part in parts:
                    self._condition(part)
            case _:
                self._node(test)
                raise Declined(f"{_at(test)} decides by what may be the value of a tensor")

    # Calls: of TensorFlow, of layers, and of functions and methods of the file

    def _call(self, call: ast.Call) -> None:
        self._called(call)
        if not all(word.arg for word in call.keywords):
            raise Declined(f"{_at(call)} passes arguments with **")
        self._all(one.value if isinstance(one, ast.Starred) else one for one in arguments(call))

    def _called(self, call: ast.Call) -> None:  # noqa: PLR0911 - one case a kind
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
            case ast.Name(id="sum") if not self.module.bound(func) and len(arguments(call)) == 1:
                return self._iterates(arguments(call)[0])
            case ast.Name() if not self.module.bound(func) or self.module.imports.get(name):
                raise Declined(f"{line} calls {name}(), {ONCE}")
            case ast.Name():
                return self._object(func, func)
            case ast.Attribute():
                return self._method(call, func)
            case ast.Call():
                return self._called(func)
            case _:
                raise Declined(f"{line} calls what the file does not name")

    def _given(self, name: ast.Name) -> None:
        """Check the call of a name that the function is given, or that goes through its layers."""
        sources = self.module.sources(name)
        for source in sources:
            through = source.value
            if source.each and source.place < 0 and isinstance(through, ast.Attribute):
                self._list_of_layers(through)
            elif isinstance(through, ast.Name) and source.whole:
                self._object(name, through)
            else:
                sources = []
        if not sources:
            raise Declined(f"{_at(name)} calls {name.id}(), which may be any Python")

    def _object(self, name: ast.Name, given: ast.Name) -> None:
        """Decline the call of a name that is given no layer, model, loss or metric."""
        if why := why_not_fixed(self.module, given):
            raise Declined(f"{_at(name)} calls {name.id}(): {why}")

    def _method(self, call: ast.Call, func: ast.Attribute) -> None:
        line, name, of = _at(call), func.attr, func.value
        if name in ("numpy", "item", "tolist"):
            raise Declined(f"{line} calls .{name}(), which needs the values of a tensor")
        if isinstance(of, ast.Call) and tail(of) == "super":
            return None
        if isinstance(of, ast.Name) and of.id == "self":
            return self._own(func)
        made = made_by(self.module, of) if isinstance(of, ast.Name) else None
        kind = dotted(made.func) if isinstance(made, ast.Call) else ""
        for method in own_methods(keras_class(self.module, kind), name):
            return self.check(method)  # of a layer or model whose class the file defines
        methods = [method for method in self.module.functions if method.name == name]
        classes = [self.module.nearest(method, ast.ClassDef) for method in methods]
        pythons = any(found and not keras_class(self.module, found.name) for found in classes)
        if name not in METHODS or pythons:
            several = methods and not (pythons or made)
            raise Declined(f"{line} calls .{name}(){' of what may be several objects' if several else f', {ONCE}'}")
        return self._node(of)

    def _own(self, func: ast.Attribute) -> None:
        """Check a method of the class, or decline an attribute that is no layer of its __init__."""
        definition, name = self.module.nearest(func, ast.ClassDef), func.attr
        if method := next(iter(own_methods(definition, name)), None):
            self.check(method)
        elif not (name in METHODS and definition and keras_class(self.module, definition.name)):
            made = self._made(func)
            if len(made) != 1 or not self._is_layer(made[0]):
                raise Declined(f"{_at(func)} calls self.{name}, which is no layer of Keras made in __init__")

    # Objects: layers, models, and attributes that do not change between steps

    def _local(self, name: ast.Name) -> bool:
        """Say whether the function binds a name itself."""
        function, bound = self.module.function_around(name), self.module.bound(name)
        return bool(bound) and all(function in [*self.module.outward(node)] for node in bound)

    def _must_stay(self, node: ast.Attribute) -> None:
        """Decline an attribute that the file sets outside of __init__ and build."""
        for target in (*self.module.targets, *(one.target for one in self.module.all(ast.AugAssign))):
            same = isinstance(target, ast.Attribute) and target.attr == node.attr
            if same and self.module.home(target) not in BEFORE_STEPS:
                raise Declined(f"{_at(target)} sets .{node.attr}, which the step reads")

    def _made(self, node: ast.Attribute) -> list[ast.expr]:
        """Return what the methods of the class assign to an attribute of self, outside of steps."""
        self._must_stay(node)
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        made = attributes(self.module, self.module.nearest(node, ast.ClassDef)) if own else {}
        return made.get(node.attr, [])

    def _is_layer(self, value: ast.expr) -> bool:
        match value:
            case ast.Call(func=func):
                own = isinstance(func, ast.Name) and keras_class(self.module, func.id)
                return bool(self.module.from_tensorflow(func) or own)
            case ast.Attribute():
                return bool(self.module.from_tensorflow(value))
            case _:
                return isinstance(value, ast.Name) and self._is_given(value)

    def _is_given(self, name: ast.Name) -> bool:
        """Say whether a parameter of __init__ or compile() gets an object of Keras from the only call."""
        method, definition = self.module.function_around(name), self.module.nearest(name, ast.ClassDef)
        parameter = all(isinstance(node, ast.arg) for node in self.module.bound(name))
        if method is None or definition is None or not parameter:
            return False
        if method.name == "compile":
            return True  # what compile() gets is checked where it is called
        calls = [call for call in self.module.all(ast.Call) if self.module.written(call.func) == definition.name]
        value = given(method, calls[0], name.id, skip=1) if len(calls) == 1 else None
        if isinstance(value, ast.Name):
            return not why_not_fixed(self.module, value)
        return value is not None and self._is_layer(value)

    def _list_of_layers(self, node: ast.Attribute) -> None:
        """Decline an attribute of self that is no list of layers made in __init__."""
        made = self._made(node)
        for value in made:
            items = value.elts if isinstance(value, ast.List | ast.Tuple) else []
            inner = [value.elt] if isinstance(value, ast.ListComp) else items
            if not inner or not all(map(self._is_layer, inner)):
                made = []
        if not made:
            raise Declined(f"{_at(node)} uses self.{node.attr}, which is no list of layers")


def _at(node: Any) -> str:  # noqa: ANN401 - of any class that has a place
    return f"line {node.lineno}"


def _holds_list(value: ast.expr, place: int) -> bool:
    match value:
        case ast.Call(func=func):
            name = last_name(func)
            return name == "gradient" or (name == "clip_by_global_norm" and place == 0)
        case ast.Attribute():
            return last_name(value).endswith(LISTS)
        case ast.BinOp(left=left, right=right):
            return _holds_list(left, place) and _holds_list(right, place)
        case _:
            return isinstance(value, LITERAL_LISTS) and place < 0


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
