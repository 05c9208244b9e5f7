"""What the names of a file stand for, where the file shows it beyond doubt: datasets, tensors, fixed objects."""

from collections.abc import Iterator

import libcst as cst

from tfdoctor.edits.module import last_name, root_name
from tfdoctor.edits.names import BoundValue, given
from tfdoctor.edits.tensors import Tensors

__all__ = ["BoundValue", "Values", "given"]

# Classes and functions of Keras that make a model.
MODELS = frozenset(["Functional", "Model", "Sequential", "clone_model", "load_model"])

# Methods that change a list, a dictionary or an array in place.
MUTATORS = frozenset(
    ["append", "clear", "extend", "fill", "insert", "pop", "remove", "reverse", "setdefault", "shuffle", "sort",
     "update"]
)  # fmt: skip

# Attributes that Keras keeps in a variable, which a graph reads anew in each step.
RATES = frozenset(["learning_rate", "lr"])


class Values(Tensors):
    """Answers for one file."""

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
        if source.part is None or not self._is_fixed(source.part):
            return f"`{name.value}` is neither a constant nor made by TensorFlow or Keras"
        return ""

    def _settled(self, name: cst.Name) -> tuple[cst.CSTNode, BoundValue] | None:
        """Return the only binding of a name, or the last of those that all run before the name is read.

        Those are statements of the file itself, in no block, above the name. ``x = x / 2`` reads an earlier ``x``.
        """
        own = self.module.nearest(name, cst.SimpleStatementLine)
        bound = [
            node
            for node in sorted(self.module.bound(name), key=self.module.span)
            if own is None or own is not self.module.nearest(node, type(own))
        ]
        before = all(self._is_top_level(node) and self.module.span(node) < self.module.span(name) for node in bound)
        if not bound or (len(bound) > 1 and not before):
            return None
        source = self._source(bound[-1])
        return (bound[-1], source) if source else None

    def _is_top_level(self, node: cst.CSTNode) -> bool:
        """Say whether a statement that binds a name is in no block."""
        line = self.module.nearest(node, cst.SimpleStatementLine)
        return line is not None and self.module.parent(line) is self.module.tree

    def object(self, name: cst.Name) -> cst.BaseExpression | None:
        """Return what made the only fixed object that a name stands for, also through parameters."""
        settled = self._settled(name)
        source = settled[1] if settled and not settled[1].each else None
        value = source.part if source else None
        if isinstance(value, cst.Name):
            return self.object(value)
        parameter = any(isinstance(node, cst.Param) for node in self.module.bound(name))
        return value if parameter or not self.why_not_fixed(name) else None

    def _is_fixed(self, value: cst.BaseExpression) -> bool:  # noqa: PLR0911 - one case a kind
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
        return isinstance(func, cst.Name) and self.keras_class(func.value) is not None

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
            return self.always(value, self._is_model)
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
                return self.always(value, self._is_made)
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
            changed == name and not (self._is_top_level(node) and self.module.span(node) < self.module.span(made))
            for changed, node in self._changes()
        )

    def _changes(self) -> Iterator[tuple[str, cst.CSTNode]]:
        """Yield the names of the objects that the file changes in place, and where."""
        for augmented in self.module.all(cst.AugAssign):
            yield root_name(augmented.target), augmented
        for target in self.module.all(cst.AssignTarget):
            whole = target.target
            rate = isinstance(whole, cst.Attribute) and last_name(whole) in RATES
            if isinstance(whole, cst.Subscript | cst.Attribute) and not rate:
                yield root_name(whole), target
        for call in self.module.all(cst.Call):
            if isinstance(call.func, cst.Attribute) and last_name(call.func) in MUTATORS:
                yield root_name(call.func.value), call
                yield from ((root_name(argument.value), call) for argument in call.args)

    def keras_class(self, name: str) -> cst.ClassDef | None:
        """Return the only class of the file with a name, if it is a layer or a model of Keras."""
        found = [node for node in self.module.all(cst.ClassDef) if node.name.value == name]
        if len(found) != 1 or len(found[0].bases) != 1:
            return None
        base = found[0].bases[0].value
        kind = self.from_tensorflow(base).rpartition(".")[2]
        own = isinstance(base, cst.Name) and base.value != name and self.keras_class(base.value)
        return found[0] if kind in ("Layer", "Model", "Sequential") or own else None
