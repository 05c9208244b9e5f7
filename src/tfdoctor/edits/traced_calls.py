"""Calls in a function in a graph: of TensorFlow, of layers, and of functions and methods of the file."""

import libcst as cst

from tfdoctor.edits.graph_calls import BUILTINS, METHODS, NEED_VALUES, ONCE, must_be_allowed
from tfdoctor.edits.module import last_name
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.traced_loops import TracedLoops


class TracedCalls(TracedLoops):
    """Calls that have no effect outside of the graph."""

    def _call(self, call: cst.Call, function: cst.FunctionDef) -> None:
        self._called(call, function)
        for argument in call.args:
            if argument.star == "**":
                raise Declined(f"{self._at(call)} passes arguments with **")
            self._node(argument.value, function)

    def _called(self, call: cst.Call, function: cst.FunctionDef) -> None:  # noqa: PLR0911 - one case a kind
        func, line = call.func, self._at(call)
        name = last_name(func)
        if origin := self.values.from_tensorflow(func):
            return must_be_allowed(origin, line)
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

    def _given(self, name: cst.Name, function: cst.FunctionDef) -> None:
        """Check the call of a name that the function is given, or that goes through its layers."""
        sources = self.values.sources(name)
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

    def _own(self, func: cst.Attribute, function: cst.FunctionDef) -> None:
        """Check a method of the class, or decline an attribute that is no layer of its __init__."""
        definition = self.module.nearest(function, cst.ClassDef)
        name = func.attr.value
        for method in self._methods(definition):
            if method.name.value == name:
                return self.check(method)
        if name in METHODS and definition and self.values.keras_class(definition.name.value):
            return None
        made = self._made(func, function)
        if len(made) != 1 or not self._is_layer(made[0]):
            raise Declined(f"{self._at(func)} calls self.{name}, which is no layer of Keras made in __init__")
        return None
