"""What the names of a file stand for, where the file shows it beyond doubt: datasets, tensors, fixed objects."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst

from tfdoctor.edits.chains import MAKERS, TRANSFORMATIONS
from tfdoctor.edits.module import SyntaxTree, dotted, last_name

TENSORFLOW = frozenset(["keras", "tensorflow", "tf_keras"])

PASSED_ON = frozenset(["tqdm", "trange", "Progbar"])
"""Wrappers of a loop's iterable that pass on its elements."""

MODELS = frozenset(["Functional", "Model", "Sequential", "clone_model", "load_model"])
"""Classes and functions of Keras that make a model."""

MUTATORS = frozenset(
    ["append", "clear", "extend", "fill", "insert", "pop", "remove", "reverse", "setdefault", "shuffle", "sort",
     "update"]
)  # fmt: skip
"""Methods that change a list, a dictionary or an array in place."""

RATES = frozenset(["learning_rate", "lr"])
"""Attributes that Keras keeps in a variable, which a graph reads anew in each step."""

_LITERALS = (cst.BaseNumber, cst.SimpleString, cst.ConcatenatedString)


@dataclass(frozen=True, slots=True)
class BoundValue:
    """What binds a name: an expression, or each element of one; ``place`` counts in a tuple, -1 is all of it."""

    value: cst.BaseExpression
    place: int = -1
    each: bool = False


class Values:
    """Answers for one file."""

    def __init__(self, module: SyntaxTree) -> None:
        self.module = module

    def from_tensorflow(self, node: cst.CSTNode) -> str:
        """Return ``tensorflow.nn.relu`` of an expression by the imports of the file, "" of all others."""
        first, _, rest = dotted(node).partition(".")
        origins = self.module.imports.get(first, set())
        names = {f"{origin}.{rest}" if rest else origin for origin in origins}
        known = len(names) == 1 and next(iter(names)).partition(".")[0] in TENSORFLOW
        return next(iter(names)) if known else ""

    def function(self, name: str) -> cst.FunctionDef | None:
        """Return the only function of the file with a name that is no method."""
        found = [f for f in self.module.all(cst.FunctionDef) if f.name.value == name]
        plain = [
            f
            for f in found
            if not isinstance(self.module.parent(self.module.parent(f) or f), cst.ClassDef)
        ]
        return plain[0] if len(plain) == len(found) == 1 else None

    def sources(self, name: cst.Name) -> list[BoundValue]:
        """Return everything that a name may stand for; [] where one of its bindings cannot be followed."""
        found = [self._source(node) for node in self.module.bound(name)]
        return [source for source in found if source] if all(found) else []

    def _source(self, node: cst.CSTNode) -> BoundValue | None:
        """Return what a binding gives a name: an assignment, a loop, or the only call of a function."""
        parent, place = self.module.parent(node), -1
        if isinstance(node, cst.Param) or isinstance(parent, cst.Param):
            return self._argument(node if isinstance(node, cst.Param) else parent)
        if isinstance(parent, cst.Element) and isinstance(
            outer := self.module.parent(parent), cst.Tuple | cst.List
        ):
            place = list(outer.elements).index(parent)
            node, parent = outer, self.module.parent(outer)
        if isinstance(parent, cst.AssignTarget):
            assigned = self.module.parent(parent)
            return BoundValue(assigned.value, place) if isinstance(assigned, cst.Assign) else None
        if isinstance(parent, cst.For) and parent.target is node:
            return BoundValue(parent.iter, place, each=True)
        if isinstance(parent, cst.Element):  # for i, (x, y) in enumerate(dataset)
            around = self.module.parent(parent)
            loop = self.module.parent(around) if around else None
            if isinstance(loop, cst.For) and isinstance(around, cst.Tuple):
                return BoundValue(loop.iter, list(around.elements).index(parent), each=True)
        return None

    def _argument(self, parameter: cst.CSTNode | None) -> BoundValue | None:
        """Return what the only call of a function gives a parameter."""
        if not isinstance(parameter, cst.Param):
            return None
        function = next(self.module.around(parameter, cst.FunctionDef), None)
        if function is None or self.function(function.name.value) is not function:
            return None
        calls = self.calls(function)
        if len(calls) != 1:
            return None
        value = given(function, calls[0], parameter.name.value)
        # A name in a loop is followed to what it stands for; any other expression is computed at each turn.
        unclear = self.repeated(calls[0]) and not isinstance(value, cst.Name)
        return None if value is None or unclear else BoundValue(value)

    def calls(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Return the calls of a function by its name; [] where the name is also used otherwise."""
        uses = [
            name
            for name in self.module.all(cst.Name)
            if name.value == function.name.value
            and name is not function.name
            and not _is_label(self.module, name)
            and any(node is function for node in self.module.bound(name))
        ]
        calls = [self.module.parent(name) for name in uses]
        pairs = zip(uses, calls, strict=True)
        direct = [call for name, call in pairs if isinstance(call, cst.Call) and call.func is name]
        return direct if len(direct) == len(uses) else []

    def repeated(self, node: cst.CSTNode) -> bool:
        """Say whether a node is in a loop or a comprehension of its function."""
        outer = self.module.parent(node)
        while outer is not None and not isinstance(outer, cst.FunctionDef):
            if isinstance(outer, cst.For | cst.While | cst.BaseComp):
                return True
            outer = self.module.parent(outer)
        return False

    def runs_once(self, node: cst.CSTNode) -> bool:
        """Say whether a statement runs once: in no loop, and in a function that is called once."""
        if self.repeated(node):
            return False
        function = next(self.module.around(node, cst.FunctionDef), None)
        if function is None:
            return True
        calls = self.calls(function) if self.function(function.name.value) is function else []
        return len(calls) == 1 and self.runs_once(calls[0])

    def is_dataset(self, value: cst.BaseExpression, seen: frozenset[int] = frozenset()) -> bool:
        """Say whether an expression is a tf.data dataset, whose elements are tensors."""
        seen |= {id(value)}
        match value:
            case cst.Name():
                return self._all(value, seen, self._holds_dataset)
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if (
                method in TRANSFORMATIONS | {"prefetch"}
            ):
                return self.is_dataset(receiver, seen)
            case cst.Call(func=cst.Name(value=name)) if self.function(name):
                return self._returned(name, lambda part: self.is_dataset(part, seen))
            case cst.Call(func=func):
                return self._makes_dataset(func)
            case _:
                return False

    def _makes_dataset(self, func: cst.BaseExpression) -> bool:
        origin = self.from_tensorflow(func)
        parts = origin.split(".")
        in_data = "data" in parts and (parts[-1] in MAKERS or parts[-1].endswith("Dataset"))
        return in_data or parts[-1].endswith("dataset_from_directory")

    def _holds_dataset(self, source: BoundValue, seen: frozenset[int]) -> bool:
        if source.each:
            return False
        value = source.value
        if source.place < 0:
            return self.is_dataset(value, seen)
        part = _part(value, source.place)
        if part is not None:
            return self.is_dataset(part, seen)
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Name):
            return self._returned(
                value.func.value,
                lambda made: self._holds_dataset(BoundValue(made, source.place), seen),
            )
        return False

    def _returned(self, name: str, holds: Callable[[cst.BaseExpression], bool]) -> bool:
        """Say whether all results of a function of the file are of a kind."""
        function = self.function(name)
        returns = [
            node.value
            for node in self.module.all(cst.Return)
            if next(self.module.around(node, cst.FunctionDef), None) is function
        ]
        return bool(returns) and all(value is not None and holds(value) for value in returns)

    def is_tensor(self, value: cst.BaseExpression, seen: frozenset[int] = frozenset()) -> bool:
        """Say whether an expression is a tensor, or a structure of tensors."""
        seen |= {id(value)}
        match value:
            case cst.Name():
                return self._all(value, seen, self._holds_tensor)
            case cst.Subscript(value=whole):
                return self.is_tensor(whole, seen)
            case cst.Tuple(elements=elements):
                return all(self.is_tensor(element.value, seen) for element in elements)
            case cst.Call(func=cst.Name(value="next"), args=[cst.Arg(value=iterator), *_]):
                return self._is_iterator(iterator, seen)
            case cst.Call(func=func):
                origin = self.from_tensorflow(func)
                made = origin.rpartition(".")[2][:1].islower() and ".data." not in origin
                return origin.startswith("tensorflow.") and ".keras." not in origin and made
            case _:
                return False

    def _is_iterator(self, value: cst.BaseExpression, seen: frozenset[int]) -> bool:
        """Say whether an expression is the iterator of a dataset."""
        match value:
            case cst.Name():
                return self._all(
                    value,
                    seen,
                    lambda source, known: (
                        source.place < 0
                        and not source.each
                        and self._is_iterator(source.value, known)
                    ),
                )
            case cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=dataset)]):
                return self.is_dataset(dataset, seen)
            case _:
                return False

    def _holds_tensor(self, source: BoundValue, seen: frozenset[int]) -> bool:
        if not source.each:
            part = _part(source.value, source.place) if source.place >= 0 else None
            return self.is_tensor(part or source.value, seen)
        match source.value:
            case cst.Call(func=func, args=[cst.Arg(value=inner), *_]) if (
                last_name(func) == "enumerate"
            ):
                return source.place == 1 and self._yields_tensors(inner, seen)
            case through:
                return self._yields_tensors(through, seen)

    def _yields_tensors(self, value: cst.BaseExpression, seen: frozenset[int]) -> bool:
        match value:
            case cst.Call(func=func, args=[cst.Arg(value=inner), *_]) if (
                last_name(func) in PASSED_ON
            ):
                return self.is_dataset(inner, seen)
            case _:
                return self.is_dataset(value, seen)

    def _all(
        self,
        name: cst.Name,
        seen: frozenset[int],
        holds: Callable[[BoundValue, frozenset[int]], bool],
    ) -> bool:
        """Say whether a name has a source, and all of them are of a kind; ``d = d.map(f)`` says nothing new."""
        found = self.sources(name)
        rest = [source for source in found if id(source.value) not in seen]
        known = seen | {id(source.value) for source in found}
        direct = [source for source in rest if not self._starts_with(source.value, name.value)]
        return bool(found) and all(holds(source, known) for source in (direct or rest))

    def _starts_with(self, value: cst.BaseExpression, name: str) -> bool:
        """Say whether a chain of a dataset's methods starts with a name."""
        node = value
        while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if last_name(node.func) not in TRANSFORMATIONS | {"prefetch"}:
                return False
            node = node.func.value
        return isinstance(node, cst.Name) and node.value == name

    def why_not_fixed(self, name: cst.Name) -> str:
        """Return why a name may not stand for the same unchanged object in every step; "" if it does.

        Fixed are numbers and texts, objects of TensorFlow and Keras, those of the file's Keras classes, and
        tuples and lists of these.
        """
        settled = self._settled(name)
        if settled is None or settled[1].each:
            return f"`{name.value}` is not assigned exactly once"
        node, source = settled
        if not isinstance(node, cst.Param) and not self.runs_once(node):
            return f"`{name.value}` is not assigned exactly once"
        if self._changed(name.value, node):
            return f"`{name.value}` is changed elsewhere in the file"
        part = _part(source.value, source.place) if source.place >= 0 else source.value
        if part is None or not self._is_fixed(part):
            return f"`{name.value}` is neither a constant nor made by TensorFlow or Keras"
        return ""

    def _settled(self, name: cst.Name) -> tuple[cst.CSTNode, BoundValue] | None:
        """Return the only binding of a name, or the last of those that all run before the name is read.

        Those are statements of the file itself, in no block, above the name.
        """
        bound = sorted(self.module.bound(name), key=self.module.span)
        before = all(
            self._is_top_level(node) and self.module.span(node) < self.module.span(name)
            for node in bound
        )
        if not bound or (len(bound) > 1 and not before):
            return None
        source = self._source(bound[-1])
        return (bound[-1], source) if source else None

    def _is_top_level(self, node: cst.CSTNode) -> bool:
        """Say whether a statement that binds a name is in no block."""
        line = next(self.module.around(node, cst.SimpleStatementLine), None)
        return line is not None and self.module.parent(line) is self.module.tree

    def object(self, name: cst.Name) -> cst.BaseExpression | None:
        """Return what made the only fixed object that a name stands for, also through parameters."""
        settled = self._settled(name)
        source = settled[1] if settled and not settled[1].each else None
        value = source.value if source else None
        if source and source.place >= 0:
            value = _part(source.value, source.place)
        if isinstance(value, cst.Name):
            return self.object(value)
        parameter = any(isinstance(node, cst.Param) for node in self.module.bound(name))
        return value if parameter or not self.why_not_fixed(name) else None

    def _is_fixed(self, value: cst.BaseExpression) -> bool:  # noqa: C901, PLR0911 - one case a kind
        match value:
            case cst.BaseNumber() | cst.SimpleString() | cst.ConcatenatedString():
                return True
            case cst.Name(value=name):
                return name in ("True", "False", "None") or not self.why_not_fixed(value)
            case cst.UnaryOperation(expression=inner):
                return self._is_fixed(inner)
            case cst.BinaryOperation(left=left, right=right):
                return self._is_fixed(left) and self._is_fixed(right)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return all(self._is_fixed(element.value) for element in elements)
            case cst.ListComp(elt=made):
                return self._is_fixed(made)
            case cst.Attribute():
                return bool(self.from_tensorflow(value)) or last_name(value).endswith("variables")
            case cst.Call(func=func):
                return self._makes_object(value, func)
            case _:
                return False

    def _makes_object(self, call: cst.Call, func: cst.BaseExpression) -> bool:
        """Say whether a call makes an object of Keras, or calls a layer of one."""
        if isinstance(func, cst.Call):  # Dense(8)(x)
            return self._makes_object(func, func.func)
        if self.from_tensorflow(func):
            return not self.is_dataset(call)
        if isinstance(func, cst.Name) and self.function(func.value):
            return self._returned(func.value, self._is_made)
        return (
            self.keras_class(last_name(func)) is not None if isinstance(func, cst.Name) else False
        )

    def makes_model(self, call: cst.Call) -> bool:
        """Say whether a call makes a model of Keras: by its classes, the file's, or a function of the file."""
        origin = self.from_tensorflow(call.func)
        if origin:
            name = origin.rpartition(".")[2]
            return ".applications." in origin or name in MODELS
        if not isinstance(call.func, cst.Name):
            return False
        if self.function(call.func.value):
            return self._returned(call.func.value, self._is_model)
        made = self.keras_class(call.func.value)
        return made is not None and self._base(made) in MODELS

    def _is_model(self, value: cst.BaseExpression) -> bool:
        """Say whether an expression of a function is a model that the function makes."""
        if isinstance(value, cst.Name):
            sources = self.sources(value)
            return bool(sources) and all(
                not source.each and source.place < 0 and self._is_model(source.value)
                for source in sources
            )
        return isinstance(value, cst.Call) and self.makes_model(value)

    def _base(self, definition: cst.ClassDef) -> str:
        """Return the name of Keras' class from which a class of the file derives."""
        base = definition.bases[0].value
        own = self.keras_class(base.value) if isinstance(base, cst.Name) else None
        return self._base(own) if own else self.from_tensorflow(base).rpartition(".")[2]

    def _is_made(self, value: cst.BaseExpression) -> bool:
        """Say whether a function returns an object of Keras, which it makes at each call."""
        match value:
            case cst.Name():
                sources = self.sources(value)
                return bool(sources) and all(
                    not source.each and source.place < 0 and self._is_made(source.value)
                    for source in sources
                )
            case cst.Call(func=func):
                return bool(self.from_tensorflow(func)) or (
                    isinstance(func, cst.Name) and self.keras_class(func.value) is not None
                )
            case _:
                return False

    def _changed(self, name: str, made: cst.CSTNode) -> bool:
        """Say whether the file changes the object of a name in place.

        What the file itself does above the line that makes the object is done to an earlier one.
        """
        return any(
            changed == name
            and not (self._is_top_level(node) and self.module.span(node) < self.module.span(made))
            for changed, node in self._changes()
        )

    def _changes(self) -> Iterator[tuple[str, cst.CSTNode]]:
        """Yield the names of the objects that the file changes in place, and where."""
        for augmented in self.module.all(cst.AugAssign):
            yield _root(augmented.target), augmented
        for target in self.module.all(cst.AssignTarget):
            whole = target.target
            rate = isinstance(whole, cst.Attribute) and last_name(whole) in RATES
            if isinstance(whole, cst.Subscript | cst.Attribute) and not rate:
                yield _root(whole), target
        for call in self.module.all(cst.Call):
            if isinstance(call.func, cst.Attribute) and last_name(call.func) in MUTATORS:
                yield _root(call.func.value), call
                yield from ((_root(argument.value), call) for argument in call.args)

    def keras_class(self, name: str) -> cst.ClassDef | None:
        """Return the only class of the file with a name, if it is a layer or a model of Keras."""
        found = [node for node in self.module.all(cst.ClassDef) if node.name.value == name]
        if len(found) != 1 or len(found[0].bases) != 1:
            return None
        base = found[0].bases[0].value
        kind = self.from_tensorflow(base).rpartition(".")[2]
        own = isinstance(base, cst.Name) and base.value != name and self.keras_class(base.value)
        return found[0] if kind in ("Layer", "Model", "Sequential") or own else None


def given(
    function: cst.FunctionDef, call: cst.Call, name: str, skip: int = 0
) -> cst.BaseExpression | None:
    """Return the expression that a call gives a parameter, else its default; None where that is unclear.

    ``skip`` is 1 for a method, whose first parameter the call does not give.
    """
    if any(argument.star for argument in call.args):
        return None
    named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword}
    positional = [argument.value for argument in call.args if argument.keyword is None]
    names = [parameter.name.value for parameter in function.params.params[skip:]]
    if name in names and names.index(name) < len(positional):
        return positional[names.index(name)]
    every = (*function.params.params, *function.params.kwonly_params)
    defaults = {parameter.name.value: parameter.default for parameter in every}
    return named.get(name, defaults.get(name))


def _part(value: cst.BaseExpression, place: int) -> cst.BaseExpression | None:
    """Return an element of a written tuple or list."""
    if isinstance(value, cst.Tuple | cst.List) and place < len(value.elements):
        element = value.elements[place]
        return element.value if isinstance(element, cst.Element) else None
    return None


def _root(node: cst.BaseExpression) -> str:
    """Return the name that an expression of attributes and items starts with."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def _is_label(module: SyntaxTree, name: cst.Name) -> bool:
    """Say whether a name is that of an attribute or of an argument, and stands for no variable."""
    parent = module.parent(name)
    if isinstance(parent, cst.Attribute):
        return parent.attr is name
    return isinstance(parent, cst.Arg) and parent.keyword is name
