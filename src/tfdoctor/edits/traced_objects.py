"""Objects that a function in a graph reads: layers, models, and attributes that do not change between steps."""

from abc import ABC, abstractmethod

import libcst as cst

from tfdoctor.edits.graph_calls import BEFORE_STEPS
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.values import Values, given


class TracedObjects(ABC):
    """The objects that the functions of one file use; ``check`` and ``_node`` are those of the whole check."""

    def __init__(self, module: SyntaxTree, *, batch_is_known: bool) -> None:
        self.module, self.values = module, Values(module)
        self.batch_is_known = batch_is_known
        self.checked: set[cst.CSTNode] = set()

    @abstractmethod
    def check(self, function: cst.FunctionDef) -> None:
        """Decline unless a graph can hold a function and all functions of the file that it calls."""

    @abstractmethod
    def _node(self, node: cst.CSTNode, function: cst.FunctionDef) -> None:
        """Decline unless a graph can hold a part of a function."""

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
            written = target.target
            if not isinstance(written, cst.Attribute) or last_name(written) != node.attr.value:
                continue
            if self.module.home(target) not in BEFORE_STEPS:
                raise Declined(f"{self._at(target)} sets .{node.attr.value}, which the step reads")

    def _methods(self, definition: cst.ClassDef | None) -> list[cst.FunctionDef]:
        parts = definition.body.body if definition else ()
        return [part for part in parts if isinstance(part, cst.FunctionDef)]

    def _made(self, node: cst.Attribute, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        """Return what the methods of the class assign to an attribute of self, outside of steps."""
        self._must_stay(node)
        methods = self._methods(self.module.nearest(function, cst.ClassDef))
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
        method = self.module.nearest(name, cst.FunctionDef)
        definition = self.module.nearest(name, cst.ClassDef)
        if method is None or definition is None or not all(isinstance(node, cst.Param) for node in bound):
            return False
        if method.name.value == "compile":
            return True  # what compile() gets is checked where it is called
        calls = [
            call for call in self.module.all(cst.Call) if self.module.written(call.func) == definition.name.value
        ]
        value = given(method, calls[0], name.value, skip=1) if len(calls) == 1 else None
        if isinstance(value, cst.Name):
            return not self.values.why_not_fixed(value)
        return value is not None and self._is_layer(value)

    def _list_of_layers(self, node: cst.Attribute, function: cst.FunctionDef) -> None:
        """Decline an attribute of self that is no list of layers made in __init__."""
        made = self._made(node, function)
        for value in made:
            items = value.elements if isinstance(value, cst.List | cst.Tuple) else ()
            inner = [value.elt] if isinstance(value, cst.ListComp) else [item.value for item in items]
            if not inner or not all(self._is_layer(item) for item in inner):
                made = []
        if not made:
            raise Declined(f"{self._at(node)} uses self.{node.attr.value}, which is no list of layers")

    def _object(self, name: cst.Name) -> None:
        """Decline the call of a name that stands for no layer, model, loss or metric."""
        if why := self.values.why_not_fixed(name):
            raise Declined(f"{self._at(name)} calls {name.value}(): {why}")

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
            self.module.nearest(f, cst.ClassDef) for f in self.module.all(cst.FunctionDef) if f.name.value == name
        ]
        return any(found and not self.values.keras_class(found.name.value) for found in classes)
