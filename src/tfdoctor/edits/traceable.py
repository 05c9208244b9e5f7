"""Whether a graph can hold a function as it is: a list of what is allowed, and everything else declines.

A graph runs Python once, when it is traced. So a function qualifies where its Python has no effect outside of
it, reads nothing that changes, and never needs the value of a tensor
(https://www.tensorflow.org/guide/function#limitations).
"""

from collections.abc import Iterable

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.values import Values, given

ONCE = "and a graph runs Python only once, when it is traced"

BUILTINS = frozenset(["enumerate", "list", "range", "reversed", "super", "tuple", "zip"])
"""Built-in functions that only arrange what they get."""

NEED_VALUES = frozenset(["bool", "float", "int", "len", "max", "min", "round", "sorted", "str"])
"""Built-in functions that need the value or the length of what they get."""

METHODS = frozenset(
    [
        "add_loss",
        "apply",
        "apply_gradients",
        "assign",
        "assign_add",
        "assign_sub",
        "compute_loss",
        "compute_metrics",
        "get_scaled_loss",
        "get_unscaled_gradients",
        "gradient",
        "items",
        "jacobian",
        "reset_state",
        "result",
        "scale_loss",
        "update_state",
        "values",
        "watch",
    ]
)
"""Methods of tapes, optimizers, metrics, variables and Keras models that work in a graph."""

DENIED = (
    "tensorflow.Variable",
    "tensorflow.compat",
    "tensorflow.config",
    "tensorflow.data",
    "tensorflow.debugging",
    "tensorflow.distribute",
    "tensorflow.executing_eagerly",
    "tensorflow.experimental",
    "tensorflow.function",
    "tensorflow.get_logger",
    "tensorflow.get_static_value",
    "tensorflow.inside_function",
    "tensorflow.io.gfile",
    "tensorflow.make_ndarray",
    "tensorflow.numpy_function",
    "tensorflow.profiler",
    "tensorflow.py_function",
    "tensorflow.random.set_seed",
    "tensorflow.saved_model",
    "tensorflow.summary",
    "tensorflow.train",
    "keras.ops.convert_to_numpy",
)
"""Parts of TensorFlow with effects outside of the graph, or that make something at each call."""

MADE_IN_STEP = frozenset(["GradientTape", "IndexedSlices", "TensorShape", "TensorArray"])
"""Classes of TensorFlow whose objects may be made in a step."""

KERAS_CALLS = ("activations", "losses", "ops")
"""Modules of Keras whose functions and classes have no variables."""

LISTS = ("variables", "weights", "losses", "metrics", "layers")
"""Ends of the names of Keras' attributes that are lists."""

CALLED_BY_KERAS = frozenset(
    ["call", "compute_loss", "compute_mask", "compute_metrics", "test_step", "train_step"]
)
"""Methods of layers and models that Keras calls in a step."""

BEFORE_STEPS = frozenset(["__init__", "build", "compile"])
"""Methods that run before the first step."""

_PUNCTUATION = (
    cst.BaseParenthesizableWhitespace,
    cst.TrailingWhitespace,
    cst.EmptyLine,
    cst.Newline,
    cst.Comma,
    cst.Semicolon,
    cst.Colon,
    cst.Dot,
    cst.AssignEqual,
    cst.LeftParen,
    cst.RightParen,
    cst.LeftSquareBracket,
    cst.RightSquareBracket,
    cst.LeftCurlyBrace,
    cst.RightCurlyBrace,
)

_PLAIN = (
    cst.BaseNumber,
    cst.SimpleString,
    cst.Ellipsis,
    cst.Tuple,
    cst.List,
    cst.Element,
    cst.Dict,
    cst.DictElement,
    cst.Subscript,
    cst.SubscriptElement,
    cst.Index,
    cst.Slice,
    cst.BinaryOperation,
    cst.BaseBinaryOp,
    cst.UnaryOperation,
    cst.Minus,
    cst.Plus,
    cst.Arg,
    cst.BaseAugOp,
    cst.AssignTarget,
    cst.AsName,
    cst.WithItem,
    cst.IndentedBlock,
    cst.SimpleStatementLine,
    cst.Return,
    cst.Pass,
    cst.Expr,
    cst.Del,
)
"""Syntax without an effect of its own; its parts are checked."""


class Traceable:
    """Checks functions of one file; each of them once.

    ``batch_is_known``: the step is called with whole tensors, so that shapes are numbers when it is traced. Keras'
    fit traces with an unknown batch size.
    """

    def __init__(self, module: SyntaxTree, *, batch_is_known: bool) -> None:
        self.module, self.values = module, Values(module)
        self.batch_is_known = batch_is_known
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
        self._parts(function.body, function)

    def check_class(self, definition: cst.ClassDef) -> None:
        """Decline unless a graph can hold the methods of a layer or a model that Keras calls in a step."""
        methods = [part for part in definition.body.body if isinstance(part, cst.FunctionDef)]
        for method in methods:
            if method.name.value in CALLED_BY_KERAS:
                self.check(method)

    def _parts(self, node: cst.CSTNode, function: cst.FunctionDef) -> None:
        for part in node.children:
            self._node(part, function)

    def _node(self, node: cst.CSTNode, function: cst.FunctionDef) -> None:  # noqa: C901, PLR0912, PLR0915 - one case a kind
        match node:
            case _ if isinstance(node, _PUNCTUATION):
                return
            case cst.Name():
                self._name(node, function)
            case cst.Attribute():
                self._attribute(node, function)
            case cst.Call():
                self._call(node, function)
            case cst.Assign() | cst.AugAssign():
                self._assignment(node, function)
            case cst.Return():
                self._result(node, function)
                self._parts(node, function)
            case cst.With():
                self._with(node, function)
            case cst.For(iter=through) | cst.CompFor(iter=through):
                self._iterates(through)
                self._loop(node, function)
            case cst.If(test=test) | cst.IfExp(test=test):
                self._condition(test)
                self._branches(node, function)
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget() as other]) if (
                not isinstance(other.operator, cst.In | cst.NotIn)
            ):
                self._node(left, function)
                self._node(other.comparator, function)
            case cst.ListComp(elt=made, for_in=loop) | cst.GeneratorExp(elt=made, for_in=loop):
                self._node(made, function)
                self._node(loop, function)
            case cst.Else():
                self._node(node.body, function)
            case _ if isinstance(node, _PLAIN):
                self._parts(node, function)
            case _:
                raise Declined(f"{self._at(node)} has Python that a graph may not keep")

    def _at(self, node: cst.CSTNode) -> str:
        return f"line {self.module.line(node)}"

    def _loop(self, node: cst.For | cst.CompFor, function: cst.FunctionDef) -> None:
        self._node(node.iter, function)
        if isinstance(node, cst.For):
            self._node(node.body, function)
        if (isinstance(node, cst.For) and node.orelse) or (
            isinstance(node, cst.CompFor) and node.inner_for_in
        ):
            raise Declined(f"{self._at(node)} has a loop in a loop")
        for condition in node.ifs if isinstance(node, cst.CompFor) else ():
            self._condition(condition.test)

    def _branches(self, node: cst.If | cst.IfExp, function: cst.FunctionDef) -> None:
        for part in (node.body, node.orelse):
            if part is not None:
                self._node(part, function)

    def _local(self, name: cst.Name, function: cst.FunctionDef) -> bool:
        """Say whether the function binds a name itself."""
        first, last = self.module.span(function)
        bound = self.module.bound(name)
        return bool(bound) and all(first < self.module.span(node)[0] < last for node in bound)

    def _name(self, name: cst.Name, function: cst.FunctionDef) -> None:
        if name.value in ("True", "False", "None") or self._local(name, function):
            return None
        if self.values.from_tensorflow(name):
            return None  # as a part of a longer name
        if (own := self.values.function(name.value)) is not None:
            return self.check(own)
        if why := self.values.why_not_fixed(name):
            raise Declined(f"line {self.module.line(name)} uses a name of outside: {why}")
        return None

    def _attribute(self, node: cst.Attribute, function: cst.FunctionDef) -> None:
        if self.values.from_tensorflow(node):
            return
        name = node.attr.value
        if name in ("shape", "ndim") and not self.batch_is_known and not self._static(node):
            raise Declined(f"{self._at(node)} reads a shape, whose batch size a graph may not know")
        self._must_stay(node)
        self._node(node.value, function)

    def _static(self, shape: cst.Attribute) -> bool:
        """Say whether only dimensions after the first are read of a shape."""
        match self.module.parent(shape):
            case cst.Subscript(
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=at)))]
            ):
                return at != "0"
            case cst.Subscript(
                slice=[
                    cst.SubscriptElement(
                        slice=cst.Index(
                            value=cst.UnaryOperation(
                                operator=cst.Minus(), expression=cst.Integer(value="1")
                            )
                        )
                    )
                ]
            ):
                return True
            case _:
                return shape.attr.value == "ndim"

    def _must_stay(self, node: cst.Attribute) -> None:
        """Decline an attribute that the file sets outside of __init__ and build."""
        for target in self.module.all(cst.AssignTarget) + self.module.all(cst.AugAssign):
            written = target.target
            if not isinstance(written, cst.Attribute) or last_name(written) != node.attr.value:
                continue
            around = next(self.module.around(target, cst.FunctionDef), None)
            if around is None or around.name.value not in BEFORE_STEPS:
                raise Declined(f"{self._at(target)} sets .{node.attr.value}, which the step reads")

    def _call(self, call: cst.Call, function: cst.FunctionDef) -> None:
        self._called(call, function)
        for argument in call.args:
            if argument.star == "**":
                raise Declined(f"{self._at(call)} passes arguments with **")
            self._node(argument.value, function)

    def _called(self, call: cst.Call, function: cst.FunctionDef) -> None:  # noqa: C901, PLR0911 - one case a kind
        func, line = call.func, self._at(call)
        name = last_name(func)
        if origin := self.values.from_tensorflow(func):
            return _must_be_allowed(origin, line)
        match func:
            case cst.Name() if self._local(func, function):
                return self._given(func, function)
            case cst.Name() if (own := self.values.function(name)) is not None:
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

    def _object(self, name: cst.Name) -> None:
        """Decline the call of a name that stands for no layer, model, loss or metric."""
        if why := self.values.why_not_fixed(name):
            raise Declined(f"{self._at(name)} calls {name.value}(): {why}")

    def _given(self, name: cst.Name, function: cst.FunctionDef) -> None:
        """Check the call of a name that the function is given, or that goes through its layers."""
        sources = self.values.sources(name)
        for source in sources:
            through = source.value
            if source.each and source.place < 0 and isinstance(through, cst.Attribute):
                self._list_of_layers(through, function)
            elif isinstance(through, cst.Name) and not source.each and source.place < 0:
                self._object(through)
            else:
                sources = []
        if not sources:
            raise Declined(f"{self._at(name)} calls {name.value}(), which may be any Python")

    def _list_of_layers(self, node: cst.Attribute, function: cst.FunctionDef) -> None:
        """Decline an attribute of self that is no list of layers made in __init__."""
        made = self._made(node, function)
        for value in made:
            items = value.elements if isinstance(value, cst.List | cst.Tuple) else ()
            inner = (
                [value.elt] if isinstance(value, cst.ListComp) else [item.value for item in items]
            )
            if not inner or not all(self._is_layer(item) for item in inner):
                made = []
        if not made:
            raise Declined(
                f"{self._at(node)} uses self.{node.attr.value}, which is no list of layers"
            )

    def _made(self, node: cst.Attribute, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        """Return what the methods of the class assign to an attribute of self, outside of steps."""
        self._must_stay(node)
        definition = next(self.module.around(function, cst.ClassDef), None)
        own = isinstance(node.value, cst.Name) and node.value.value == "self"
        return [
            value
            for method in self._methods(definition)
            for value in self._assigned(method, node.attr.value)
            if own
        ]

    def _methods(self, definition: cst.ClassDef | None) -> list[cst.FunctionDef]:
        parts = definition.body.body if definition else ()
        return [part for part in parts if isinstance(part, cst.FunctionDef)]

    def _method(self, call: cst.Call, func: cst.Attribute, function: cst.FunctionDef) -> None:
        line, name = self._at(call), func.attr.value
        if name in ("numpy", "item", "tolist"):
            raise Declined(f"{line} calls .{name}(), which needs the values of a tensor")
        receiver = func.value
        if isinstance(receiver, cst.Call) and last_name(receiver.func) == "super":
            return None
        if isinstance(receiver, cst.Name) and receiver.value == "self":
            return self._own(func, function)
        if (own := self._method_of(receiver, name)) is not None:
            return self.check(own)
        if name not in METHODS or self._is_pythons(name):
            raise Declined(f"{line} calls .{name}(), {ONCE}")
        self._node(receiver, function)
        return None

    def _method_of(self, receiver: cst.BaseExpression, name: str) -> cst.FunctionDef | None:
        """Return the method of a layer or model whose class the file defines."""
        made = self.values.object(receiver) if isinstance(receiver, cst.Name) else None
        if not isinstance(made, cst.Call) or not isinstance(made.func, cst.Name):
            return None
        methods = self._methods(self.values.keras_class(made.func.value))
        return next((method for method in methods if method.name.value == name), None)

    def _is_pythons(self, name: str) -> bool:
        """Say whether a class of the file that is not of Keras has a method of this name."""
        classes = [
            next(self.module.around(f, cst.ClassDef), None)
            for f in self.module.all(cst.FunctionDef)
            if f.name.value == name
        ]
        return any(found and not self.values.keras_class(found.name.value) for found in classes)

    def _own(self, func: cst.Attribute, function: cst.FunctionDef) -> None:
        """Check a method of the class, or decline an attribute that is no layer of its __init__."""
        definition = next(self.module.around(function, cst.ClassDef), None)
        name = func.attr.value
        for method in self._methods(definition):
            if method.name.value == name:
                return self.check(method)
        if name in METHODS and definition and self.values.keras_class(definition.name.value):
            return None
        made = self._made(func, function)
        if len(made) != 1 or not self._is_layer(made[0]):
            raise Declined(
                f"{self._at(func)} calls self.{name}, which is no layer of Keras made in __init__"
            )
        return None

    def _assigned(self, method: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
        """Return what a method assigns to an attribute of its object."""
        return [
            assigned.value
            for assigned in self.module.all(cst.Assign)
            if any(
                self.module.written(target.target) == f"self.{name}" for target in assigned.targets
            )
            and next(self.module.around(assigned, cst.FunctionDef), None) is method
        ]

    def _is_layer(self, value: cst.BaseExpression) -> bool:
        match value:
            case cst.Call(func=func):
                own = isinstance(func, cst.Name) and self.values.keras_class(func.value)
                return bool(self.values.from_tensorflow(func) or own)
            case cst.Attribute():
                return bool(self.values.from_tensorflow(value))
            case cst.Name():
                return self._is_given(value)
            case _:
                return False

    def _is_given(self, name: cst.Name) -> bool:
        """Say whether a parameter of __init__ or compile() gets an object of Keras from the only call."""
        bound = self.module.bound(name)
        method = next(self.module.around(name, cst.FunctionDef), None)
        definition = next(self.module.around(name, cst.ClassDef), None)
        if (
            method is None
            or definition is None
            or not all(isinstance(node, cst.Param) for node in bound)
        ):
            return False
        if method.name.value == "compile":
            return True  # what compile() gets is checked where it is called
        calls = [
            call
            for call in self.module.all(cst.Call)
            if self.module.written(call.func) == definition.name.value
        ]
        value = given(method, calls[0], name.value, skip=1) if len(calls) == 1 else None
        if isinstance(value, cst.Name):
            return not self.values.why_not_fixed(value)
        return value is not None and self._is_layer(value)

    def _assignment(self, node: cst.Assign | cst.AugAssign, function: cst.FunctionDef) -> None:
        targets = (
            [part.target for part in node.targets]
            if isinstance(node, cst.Assign)
            else [node.target]
        )
        for target in targets:
            if not all(self._is_local_target(name, function) for name in _flat(target)):
                raise Declined(f"{self._at(node)} changes an object outside of the function")
        self._node(node.value, function)

    def _is_local_target(self, target: cst.BaseExpression, function: cst.FunctionDef) -> bool:
        return isinstance(target, cst.Name) and self._local(target, function)

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
            origin = self.values.from_tensorflow(call.func) if isinstance(call, cst.Call) else ""
            if origin.rpartition(".")[2] not in ("GradientTape", "name_scope"):
                raise Declined(f"{self._at(item)} has a `with` of something other than a tape")
            self._node(call, function)
        self._node(node.body, function)

    def _iterates(self, through: cst.BaseExpression) -> None:  # noqa: C901 - one case a kind
        """Decline a loop over what may be a tensor."""
        match through:
            case cst.Call(func=cst.Name(value="range"), args=args):
                if not all(self._is_number(argument.value) for argument in args):
                    raise Declined(f"{self._at(through)} loops as often as a value says")
            case cst.Call(
                func=cst.Name(value="zip" | "enumerate" | "reversed" | "list"), args=args
            ):
                for argument in args:
                    self._iterates(argument.value)
            case cst.Attribute() if last_name(through).endswith(LISTS):
                return
            case cst.Attribute(value=cst.Name(value="self")) if self._is_own_list(through):
                return
            case cst.List() | cst.Tuple() | cst.ListComp():
                return
            case cst.Name() if self._is_list(through):
                return
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="gradient" | "items" | "values"))):
                return
            case cst.BinaryOperation(left=left, right=right):
                self._iterates(left)
                self._iterates(right)
            case _:
                raise Declined(f"{self._at(through)} loops over what may be a tensor")

    def _is_number(self, value: cst.BaseExpression) -> bool:
        """Say whether an expression is a Python number that does not change."""
        own = isinstance(value, cst.Attribute) and self.module.written(value.value) == "self"
        fixed = isinstance(value, cst.Name) and not self.values.why_not_fixed(value)
        return isinstance(value, cst.Integer) or own or fixed

    def _is_own_list(self, node: cst.Attribute) -> bool:
        function = next(self.module.around(node, cst.FunctionDef), None)
        made = self._made(node, function) if function else []
        return bool(made) and all(isinstance(v, cst.List | cst.Tuple | cst.ListComp) for v in made)

    def _is_list(self, name: cst.Name) -> bool:
        """Say whether a name stands for a list of variables, gradients or constants."""
        sources = self.values.sources(name)
        return bool(sources) and all(
            not source.each and self._holds_list(source.value, source.place) for source in sources
        )

    def _holds_list(self, value: cst.BaseExpression, place: int) -> bool:
        match value:
            case cst.Call(func=func):
                name = last_name(func)
                return name == "gradient" or (name == "clip_by_global_norm" and place == 0)
            case cst.List() | cst.Tuple() | cst.ListComp():
                return place < 0
            case cst.Attribute():
                return last_name(value).endswith(LISTS)
            case cst.BinaryOperation(left=left, right=right):
                return self._holds_list(left, place) and self._holds_list(right, place)
            case _:
                return False

    def _condition(self, test: cst.BaseExpression) -> None:
        """Decline a condition that may be a tensor: left are training, `x is None` and constants."""
        match test:
            case cst.Name(value="training" | "True" | "False"):
                return
            case cst.Comparison(
                comparisons=[
                    cst.ComparisonTarget(
                        operator=cst.Is() | cst.IsNot(), comparator=cst.Name(value="None")
                    )
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


def _must_be_allowed(origin: str, line: str) -> None:
    """Decline the call of a part of TensorFlow or Keras that a step in a graph should not have."""
    name = origin.rpartition(".")[2]
    written = origin.removeprefix("tensorflow.")
    if any(f"{origin}.".startswith(f"{denied}.") for denied in DENIED):
        raise Declined(f"{line} calls {written}(), which has an effect outside of a graph")
    in_keras = origin.startswith(("keras.", "tf_keras.", "tensorflow.keras."))
    plain = any(f".{part}." in f".{origin}" for part in KERAS_CALLS)
    if in_keras and not plain:
        raise Declined(f"{line} calls {written}() in each step, which may create variables")
    if not in_keras and name[:1].isupper() and name not in MADE_IN_STEP:
        raise Declined(f"{line} creates a {name} in each step")


def _flat(value: cst.BaseExpression) -> Iterable[cst.BaseExpression]:
    """Yield the parts of a tuple, a list or a dictionary, else the expression."""
    match value:
        case (
            cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Dict(elements=elements)
        ):
            for element in elements:
                yield from _flat(element.value)
        case _:
            yield value
