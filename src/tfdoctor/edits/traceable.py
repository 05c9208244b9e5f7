"""Whether a graph can hold a function as it is: a list of what is allowed, and everything else declines.

A graph runs Python once, when it is traced. So a function qualifies where its Python has no effect outside of
it, reads nothing that changes, and never needs the value of a tensor
(https://www.tensorflow.org/guide/function#limitations).
"""

from collections.abc import Iterable

import libcst as cst

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.syntax import given, last_name
from tfdoctor.edits.values import keras_class, made_by, why_not_fixed

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

# Parts of TensorFlow with effects outside of the graph, or that make something at each call.
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

# Syntax without a meaning of its own.
PUNCTUATION = (
    cst.BaseParenthesizableWhitespace, cst.TrailingWhitespace, cst.EmptyLine, cst.Newline, cst.Comma,
    cst.Semicolon, cst.Colon, cst.Dot, cst.AssignEqual, cst.LeftParen, cst.RightParen, cst.LeftSquareBracket,
    cst.RightSquareBracket, cst.LeftCurlyBrace, cst.RightCurlyBrace,
)  # fmt: skip

# Syntax without an effect of its own; its parts are checked.
PLAIN = (
    cst.BaseNumber, cst.SimpleString, cst.Ellipsis, cst.Tuple, cst.List, cst.Element, cst.Dict, cst.DictElement,
    cst.Subscript, cst.SubscriptElement, cst.Index, cst.Slice, cst.BinaryOperation, cst.BaseBinaryOp,
    cst.UnaryOperation, cst.Minus, cst.Plus, cst.Arg, cst.BaseAugOp, cst.AssignTarget, cst.AsName, cst.WithItem,
    cst.IndentedBlock, cst.SimpleStatementLine, cst.Return, cst.Pass, cst.Expr, cst.Del,
)  # fmt: skip

LITERAL_LISTS = (cst.List, cst.Tuple, cst.ListComp)


class Traceable:
    """Checks functions of one file; each of them once.

    ``batch_is_known``: the step is called with whole tensors, so that shapes are numbers when it is traced. Keras'
    fit traces with an unknown batch size.
    """

    def __init__(self, module: SyntaxTree, *, batch_is_known: bool) -> None:
        self.module, self.batch_is_known = module, batch_is_known
        self.checked: set[cst.CSTNode] = set()

    def check(self, function: cst.FunctionDef) -> None:
        """Decline unless a graph can hold a function and all functions of the file that it calls."""
        if function in self.checked:
            return
        self.checked.add(function)
        if function.decorators:
            raise Declined(f"{function.name.value}() has a decorator")
        if function.asynchronous:
            raise Declined(f"{function.name.value}() is asynchronous")
        for part in function.body.children:
            self._node(part, function)

    def check_class(self, definition: cst.ClassDef) -> None:
        """Decline unless a graph can hold the methods of a layer or a model that Keras calls in a step."""
        for method in _methods(definition):
            if method.name.value in CALLED_BY_KERAS:
                self.check(method)

    # Nodes of a function: statements and expressions

    def _node(self, node: cst.CSTNode, function: cst.FunctionDef) -> None:  # noqa: PLR0911 - one case a kind
        match node:
            case cst.Name():
                return self._name(node, function)
            case cst.Attribute():
                return self._attribute(node, function)
            case cst.Call():
                return self._call(node, function)
            case cst.Assign() | cst.AugAssign():
                return self._assignment(node, function)
            case cst.With():
                return self._with(node, function)
            case cst.For() | cst.CompFor():
                return self._loop(node, function)
            case cst.Return():
                self._result(node, function)
            case cst.If(test=test) | cst.IfExp(test=test):
                self._condition(test)
            case _:
                pass  # only its parts count
        for part in self._parts(node):
            self._node(part, function)
        return None

    def _parts(self, node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        """Return the parts of a node without an effect of its own that are still to be checked."""
        match node:
            case _ if isinstance(node, PUNCTUATION):
                return ()
            case cst.If(body=body, orelse=orelse) | cst.IfExp(body=body, orelse=orelse):
                return [body] if orelse is None else [body, orelse]
            case cst.Else(body=body):
                return [body]
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget() as other]) if not isinstance(
                other.operator, cst.In | cst.NotIn
            ):
                return [left, other.comparator]
            case cst.ListComp(elt=made, for_in=loop) | cst.GeneratorExp(elt=made, for_in=loop):
                return [made, loop]
            case _ if isinstance(node, PLAIN):
                return node.children
            case _:
                raise Declined(f"{self._at(node)} has Python that a graph may not keep")

    def _name(self, name: cst.Name, function: cst.FunctionDef) -> None:
        if name.value in ("True", "False", "None") or self._local(name, function):
            return
        if self.module.from_tensorflow(name):
            return  # as a part of a longer name
        if (own := self.module.function(name.value)) is not None:
            self.check(own)
        elif why := why_not_fixed(self.module, name):
            raise Declined(f"{self._at(name)} uses a name of outside: {why}")

    def _attribute(self, node: cst.Attribute, function: cst.FunctionDef) -> None:
        if self.module.from_tensorflow(node):
            return
        if node.attr.value in ("shape", "ndim") and not self.batch_is_known and not self._static(node):
            raise Declined(f"{self._at(node)} reads a shape, whose batch size a graph may not know")
        self._must_stay(node)
        self._node(node.value, function)

    def _static(self, shape: cst.Attribute) -> bool:
        """Say whether only dimensions after the first are read of a shape."""
        match self.module.parent(shape):
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=at)))]):
                return at != "0"
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.UnaryOperation() as minus))]):
                return self.module.written(minus) == "-1"
            case _:
                return shape.attr.value == "ndim"

    def _assignment(self, node: cst.Assign | cst.AugAssign, function: cst.FunctionDef) -> None:
        targets = [part.target for part in node.targets] if isinstance(node, cst.Assign) else [node.target]
        for target in targets:
            if not all(isinstance(part, cst.Name) and self._local(part, function) for part in _flat(target)):
                raise Declined(f"{self._at(node)} changes an object outside of the function")
        self._node(node.value, function)

    def _result(self, node: cst.Return, function: cst.FunctionDef) -> None:
        """Decline a result that a graph would turn from a number into a tensor."""
        for value in _flat(node.value) if node.value else ():
            constant = isinstance(value, cst.BaseNumber | cst.SimpleString)
            if isinstance(value, cst.Name) and value.value != "None":
                constant = not self._local(value, function)
            if constant:
                raise Declined(f"{self._at(node)} returns a constant, which a graph makes a tensor")

    def _with(self, node: cst.With, function: cst.FunctionDef) -> None:
        for item in node.items:
            call = item.item
            origin = self.module.from_tensorflow(call.func) if isinstance(call, cst.Call) else ""
            if origin.rpartition(".")[2] not in ("GradientTape", "name_scope"):
                raise Declined(f"{self._at(item)} has a `with` of something other than a tape")
            self._node(call, function)
        self._node(node.body, function)

    # Loops and conditions: none may depend on the value of a tensor

    def _loop(self, node: cst.For | cst.CompFor, function: cst.FunctionDef) -> None:
        self._iterates(node.iter)
        self._node(node.iter, function)
        if isinstance(node, cst.For):
            self._node(node.body, function)
        if node.orelse if isinstance(node, cst.For) else node.inner_for_in:
            raise Declined(f"{self._at(node)} has a loop in a loop")
        for condition in node.ifs if isinstance(node, cst.CompFor) else ():
            self._condition(condition.test)

    def _iterates(self, through: cst.BaseExpression) -> None:
        """Decline a loop over what may be a tensor."""
        match through:
            case cst.Call(func=cst.Name(value="range"), args=args):
                if not all(self._is_number(argument.value) for argument in args):
                    raise Declined(f"{self._at(through)} loops as often as a value says")
            case cst.Call(func=cst.Name(value="zip" | "enumerate" | "reversed" | "list"), args=args):
                for argument in args:
                    self._iterates(argument.value)
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="gradient" | "items" | "values"))):
                return
            case cst.BinaryOperation(left=left, right=right):
                self._iterates(left)
                self._iterates(right)
            case _:
                if not self._is_list(through):
                    raise Declined(f"{self._at(through)} loops over what may be a tensor")

    def _is_number(self, value: cst.BaseExpression) -> bool:
        """Say whether an expression is a Python number that does not change."""
        own = isinstance(value, cst.Attribute) and self.module.written(value.value) == "self"
        fixed = isinstance(value, cst.Name) and not why_not_fixed(self.module, value)
        return isinstance(value, cst.Integer) or own or fixed

    def _is_list(self, value: cst.BaseExpression) -> bool:
        """Say whether an expression is a list of variables, gradients or constants."""
        match value:
            case cst.Name():
                sources = self.module.sources(value)
                held = (not source.each and _holds_list(source.value, source.place) for source in sources)
                return bool(sources) and all(held)
            case cst.Attribute(value=cst.Name(value="self")) if not last_name(value).endswith(LISTS):
                function = self.module.nearest(value, cst.FunctionDef)
                made = self._made(value, function) if function else []
                return bool(made) and all(isinstance(one, LITERAL_LISTS) for one in made)
            case _:
                return not isinstance(value, cst.Call) and _holds_list(value, -1)

    def _condition(self, test: cst.BaseExpression) -> None:
        """Decline a condition that may be a tensor: left are training, `x is None` and constants."""
        match test:
            case cst.Name(value="training" | "True" | "False"):
                return
            case cst.Comparison(
                comparisons=[
                    cst.ComparisonTarget(operator=cst.Is() | cst.IsNot(), comparator=cst.Name(value="None"))
                ]
            ):
                return
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                self._condition(inner)
            case cst.BooleanOperation(left=left, right=right):
                self._condition(left)
                self._condition(right)
            case _:
                raise Declined(f"{self._at(test)} decides by what may be the value of a tensor")

    # Calls: of TensorFlow, of layers, and of functions and methods of the file

    def _call(self, call: cst.Call, function: cst.FunctionDef) -> None:
        self._called(call, function)
        for argument in call.args:
            if argument.star == "**":
                raise Declined(f"{self._at(call)} passes arguments with **")
            self._node(argument.value, function)

    def _called(self, call: cst.Call, function: cst.FunctionDef) -> None:  # noqa: PLR0911 - one case a kind
        func, line = call.func, self._at(call)
        name = last_name(func)
        if origin := self.module.from_tensorflow(func):
            return _must_be_allowed(origin, line)
        match func:
            case cst.Name() if self._local(func, function):
                return self._given(func, function)
            case cst.Name() if (own := self.module.function(name)) is not None:
                return self.check(own)
            case cst.Name() if name in NEED_VALUES:
                raise Declined(f"{line} calls {name}(), which needs the values of a tensor")
            case cst.Name() if name in BUILTINS and not self.module.bound(func):
                return None
            case cst.Name(value="sum") if not self.module.bound(func) and len(call.args) == 1:
                return self._iterates(call.args[0].value)
            case cst.Name() if not self.module.bound(func) or self.module.imports.get(name):
                raise Declined(f"{line} calls {name}(), {ONCE}")
            case cst.Name():
                return self._object(func)
            case cst.Attribute():
                return self._method(call, func, function)
            case cst.Call():
                return self._called(func, function)
            case _:
                raise Declined(f"{line} calls what the file does not name")

    def _given(self, name: cst.Name, function: cst.FunctionDef) -> None:
        """Check the call of a name that the function is given, or that goes through its layers."""
        sources = self.module.sources(name)
        for source in sources:
            through = source.value
            if source.each and source.place < 0 and isinstance(through, cst.Attribute):
                self._list_of_layers(through, function)
            elif isinstance(through, cst.Name) and source.whole:
                self._object(through)
            else:
                sources = []
        if not sources:
            raise Declined(f"{self._at(name)} calls {name.value}(), which may be any Python")

    def _object(self, name: cst.Name) -> None:
        """Decline the call of a name that stands for no layer, model, loss or metric."""
        if why := why_not_fixed(self.module, name):
            raise Declined(f"{self._at(name)} calls {name.value}(): {why}")

    def _method(self, call: cst.Call, func: cst.Attribute, function: cst.FunctionDef) -> None:
        line, name, of = self._at(call), func.attr.value, func.value
        if name in ("numpy", "item", "tolist"):
            raise Declined(f"{line} calls .{name}(), which needs the values of a tensor")
        if isinstance(of, cst.Call) and last_name(of.func) == "super":
            return
        if isinstance(of, cst.Name) and of.value == "self":
            self._own(func, function)
            return
        # The method of a layer or model whose class the file defines
        made = made_by(self.module, of) if isinstance(of, cst.Name) else None
        kind = made.func.value if isinstance(made, cst.Call) and isinstance(made.func, cst.Name) else ""
        if (method := _method_named(keras_class(self.module, kind), name)) is not None:
            self.check(method)
            return
        methods = (f for f in self.module.all(cst.FunctionDef) if f.name.value == name)
        classes = [self.module.nearest(method, cst.ClassDef) for method in methods]
        pythons = any(found and not keras_class(self.module, found.name.value) for found in classes)
        if name not in METHODS or pythons:
            raise Declined(f"{line} calls .{name}(), {ONCE}")
        self._node(of, function)

    def _own(self, func: cst.Attribute, function: cst.FunctionDef) -> None:
        """Check a method of the class, or decline an attribute that is no layer of its __init__."""
        definition, name = self.module.nearest(function, cst.ClassDef), func.attr.value
        if (method := _method_named(definition, name)) is not None:
            self.check(method)
        elif not (name in METHODS and definition and keras_class(self.module, definition.name.value)):
            made = self._made(func, function)
            if len(made) != 1 or not self._is_layer(made[0]):
                what = f"self.{name}, which is no layer of Keras made in __init__"
                raise Declined(f"{self._at(func)} calls {what}")

    # Objects: layers, models, and attributes that do not change between steps

    def _at(self, node: cst.CSTNode) -> str:
        return f"line {self.module.line(node)}"

    def _local(self, name: cst.Name, function: cst.FunctionDef) -> bool:
        """Say whether the function binds a name itself."""
        first, last = self.module.span(function)
        bound = self.module.bound(name)
        return bool(bound) and all(first < self.module.span(node)[0] < last for node in bound)

    def _must_stay(self, node: cst.Attribute) -> None:
        """Decline an attribute that the file sets outside of __init__ and build."""
        for target in self.module.all(cst.AssignTarget) + self.module.all(cst.AugAssign):
            set_to, name = target.target, node.attr.value
            same = isinstance(set_to, cst.Attribute) and last_name(set_to) == name
            if same and self.module.home(target) not in BEFORE_STEPS:
                raise Declined(f"{self._at(target)} sets .{name}, which the step reads")

    def _made(self, node: cst.Attribute, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        """Return what the methods of the class assign to an attribute of self, outside of steps."""
        self._must_stay(node)
        methods = _methods(self.module.nearest(function, cst.ClassDef))
        if not isinstance(node.value, cst.Name) or node.value.value != "self":
            return []
        attribute = f"self.{node.attr.value}"
        return [
            assigned.value
            for assigned in self.module.all(cst.Assign)
            if any(self.module.written(part.target) == attribute for part in assigned.targets)
            and self.module.nearest(assigned, cst.FunctionDef) in methods
        ]

    def _is_layer(self, value: cst.BaseExpression) -> bool:
        match value:
            case cst.Call(func=func):
                own = isinstance(func, cst.Name) and keras_class(self.module, func.value)
                return bool(self.module.from_tensorflow(func) or own)
            case cst.Attribute():
                return bool(self.module.from_tensorflow(value))
            case cst.Name():
                return self._is_given(value)
            case _:
                return False

    def _is_given(self, name: cst.Name) -> bool:
        """Say whether a parameter of __init__ or compile() gets an object of Keras from the only call."""
        method, definition = self.module.nearest(name, cst.FunctionDef), self.module.nearest(name, cst.ClassDef)
        parameter = all(isinstance(node, cst.Param) for node in self.module.bound(name))
        if method is None or definition is None or not parameter:
            return False
        if method.name.value == "compile":
            return True  # what compile() gets is checked where it is called
        kind = definition.name.value
        calls = [call for call in self.module.all(cst.Call) if self.module.written(call.func) == kind]
        value = given(method, calls[0], name.value, skip=1) if len(calls) == 1 else None
        if isinstance(value, cst.Name):
            return not why_not_fixed(self.module, value)
        return value is not None and self._is_layer(value)

    def _list_of_layers(self, node: cst.Attribute, function: cst.FunctionDef) -> None:
        """Decline an attribute of self that is no list of layers made in __init__."""
        made = self._made(node, function)
        for value in made:
            items = value.elements if isinstance(value, cst.List | cst.Tuple) else ()
            inner = [value.elt] if isinstance(value, cst.ListComp) else [item.value for item in items]
            if not inner or not all(map(self._is_layer, inner)):
                made = []
        if not made:
            raise Declined(f"{self._at(node)} uses self.{node.attr.value}, which is no list of layers")


def _holds_list(value: cst.BaseExpression, place: int) -> bool:
    match value:
        case cst.Call(func=func):
            name = last_name(func)
            return name == "gradient" or (name == "clip_by_global_norm" and place == 0)
        case cst.Attribute():
            return last_name(value).endswith(LISTS)
        case cst.BinaryOperation(left=left, right=right):
            return _holds_list(left, place) and _holds_list(right, place)
        case _:
            return isinstance(value, LITERAL_LISTS) and place < 0


def _must_be_allowed(origin: str, line: str) -> None:
    """Decline the call of a part of TensorFlow or Keras that a step in a graph should not have."""
    name, written = origin.rpartition(".")[2], origin.removeprefix("tensorflow.")
    if any(f"{origin}.".startswith(f"{denied}.") for denied in DENIED):
        raise Declined(f"{line} calls {written}(), which has an effect outside of a graph")
    in_keras = origin.startswith(("keras.", "tf_keras.", "tensorflow.keras."))
    plain = any(f".{part}." in f".{origin}" for part in KERAS_CALLS)
    if in_keras and not plain:
        raise Declined(f"{line} calls {written}() in each step, which may create variables")
    if not in_keras and name[:1].isupper() and name not in MADE_IN_STEP:
        raise Declined(f"{line} creates a {name} in each step")


def _methods(definition: cst.ClassDef | None) -> list[cst.FunctionDef]:
    parts = definition.body.body if definition else ()
    return [part for part in parts if isinstance(part, cst.FunctionDef)]


def _method_named(definition: cst.ClassDef | None, name: str) -> cst.FunctionDef | None:
    return next((method for method in _methods(definition) if method.name.value == name), None)


def _flat(value: cst.BaseExpression) -> Iterable[cst.BaseExpression]:
    """Yield the parts of a tuple, a list or a dictionary, else the expression."""
    match value:
        case cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Dict(elements=elements):
            for element in elements:
                yield from _flat(element.value)
        case _:
            yield value
