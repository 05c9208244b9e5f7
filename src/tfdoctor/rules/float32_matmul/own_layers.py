"""Layers and models of the file under a policy of 16 bits: what their call() may do, and which layer is the last.

Keras casts the inputs of each layer, and its weights, to 16 bits. TensorFlow's own operations take no operands of
two types, so a call() qualifies only where every operand comes from its input, a layer or a Python number.
"""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.values import Values

KEEP_TYPE = frozenset(
    ["abs", "add", "avg_pool2d", "concat", "concatenate", "elu", "exp", "expand_dims", "flatten", "gelu",
     "identity", "l2_normalize", "leaky_relu", "max", "max_pool2d", "mean", "ones_like", "pad", "reduce_max",
     "reduce_mean", "reduce_min", "reduce_sum", "relu", "relu6", "reshape", "shape", "sigmoid", "silu",
     "softmax", "softplus", "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "sum", "swish",
     "tanh", "tile", "transpose", "unstack", "zeros_like"]
)  # fmt: skip
"""Functions of TensorFlow and keras.ops whose result has the type of their first operand."""

FLAGS = frozenset(["mask", "self", "training"])
"""Parameters of call() that are no tensors to compute with."""

SETUP = frozenset(["__init__", "build"])


class OwnLayers:
    """The classes of one file that derive from Keras' layers and models."""

    def __init__(self, module: SyntaxTree) -> None:
        self.module, self.values = module, Values(module)
        classes = [node for node in module.all(cst.ClassDef) if self.values.keras_class(node.name.value)]
        self.classes = classes
        self.layers = {name for definition in classes for name in self._made(definition)}

    def must_keep_types(self) -> None:
        """Decline where a call() may mix two types, or something other than call() uses a layer."""
        for definition in self.classes:
            methods = [part for part in _methods(definition) if part.name.value == "call"]
            if len(methods) != 1:
                raise Declined(f"{definition.name.value} has no call() of its own")
            self._call(methods[0], definition)
        for call in self.module.all(cst.Call):
            around = next(self.module.around(call, cst.FunctionDef), None)
            inside = around is not None and around.name.value == "call"
            if isinstance(call.func, cst.Attribute) and last_name(call.func) in self.layers and not inside:
                line = self.module.line(call)
                raise Declined(f"line {line} calls .{last_name(call.func)}(), whose result would have 16 bits")

    def output(self) -> cst.Call:
        """Return the call that makes the last layer of the only model that the file defines as a class.

        Raises:
            Declined: there are several, or call() does not end with a layer.
        """
        models = [
            node for node in self.classes if self.values.from_tensorflow(node.bases[0].value).endswith(".Model")
        ]
        if len(models) != 1:
            raise Declined(f"the file defines {'several models' if models else 'no model'}")
        methods = [part for part in _methods(models[0]) if part.name.value == "call"]
        returns = [
            node.value
            for node in self.module.all(cst.Return)
            if any(self.module.within(node, method) for method in methods)
        ]
        match returns:
            case [cst.Call(func=cst.Attribute(value=cst.Name(value="self"), attr=layer))]:
                made = self._made(models[0]).get(layer.value)
            case _:
                made = None
        if not isinstance(made, cst.Call):
            raise Declined("the file does not show which layer is the last one")
        return made

    def _made(self, definition: cst.ClassDef) -> dict[str, cst.BaseExpression]:
        """Return what __init__ and build assign to the attributes of self, without those assigned twice."""
        made: dict[str, cst.BaseExpression] = {}
        twice = set[str]()
        setup = [part for part in _methods(definition) if part.name.value in SETUP]
        for node in self.module.all(cst.Assign):
            if next(self.module.around(node, cst.FunctionDef), None) not in setup:
                continue
            for target in node.targets:
                if self.module.written(target.target).startswith("self."):
                    name = last_name(target.target)
                    twice |= {name} & made.keys()
                    made[name] = node.value
        once = {name: value for name, value in made.items() if name not in twice}
        return {name: value for name, value in once.items() if self._is_layer(value)}

    def _is_layer(self, value: cst.BaseExpression) -> bool:
        match value:
            case cst.ListComp(elt=made):
                return self._is_layer(made)
            case cst.List(elements=elements):
                return bool(elements) and all(self._is_layer(element.value) for element in elements)
            case cst.Call(func=func):
                origin = self.values.from_tensorflow(func)
                own = isinstance(func, cst.Name) and self.values.keras_class(func.value) is not None
                return own or ".layers." in origin or origin.endswith(".Sequential")
            case _:
                return False

    def _call(self, method: cst.FunctionDef, definition: cst.ClassDef) -> None:
        tensors = [p for p in method.params.params if p.name.value not in FLAGS]
        if len(tensors) != 1:
            raise Declined(f"call() of {definition.name.value} takes several inputs, which may differ in type")
        layers = self._made(definition)
        for call in self.module.all(cst.Call):
            if self.module.within(call, method.body) and not self._keeps(call, layers):
                raise Declined(f"line {self.module.line(call)} may compute with two types under the policy")
        for name in self.module.all(cst.Name):
            if self.module.within(name, method.body) and not self._has_type(name, method, layers):
                raise Declined(f"line {self.module.line(name)} may compute with two types under the policy")

    def _keeps(self, call: cst.Call, layers: dict[str, cst.BaseExpression]) -> bool:
        """Say whether a call is one of a layer, of super, or of a function that keeps the type."""
        func = call.func
        origin = self.values.from_tensorflow(func)
        if origin:
            is_argument = isinstance(self.module.parent(call), cst.Arg)
            return last_name(func) in KEEP_TYPE or (is_argument and origin.endswith(".range"))
        match func:
            case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
                return name in layers
            case cst.Name(value="zip" | "enumerate" | "reversed" | "range"):
                return True
            case cst.Name():
                sources = self.values.sources(func)
                return bool(sources) and all(
                    source.each and isinstance(source.value, cst.Attribute) and last_name(source.value) in layers
                    for source in sources
                )
            case _:
                return False

    def _has_type(self, name: cst.Name, method: cst.FunctionDef, layers: dict[str, cst.BaseExpression]) -> bool:
        """Say whether a name is local, a layer, a part of Keras' names or a Python number."""
        parent = self.module.parent(name)
        if isinstance(parent, cst.Attribute) and parent.attr is name:
            own = isinstance(parent.value, cst.Name) and parent.value.value == "self"
            call = self.module.parent(parent)
            used = isinstance(call, cst.Call | cst.Arg | cst.For | cst.CompFor | cst.Subscript)
            given = isinstance(call, cst.Arg | cst.Element)  # to a function, such as a shape: no operand
            return not own or (name.value in layers and used) or given
        if isinstance(parent, cst.Arg) and parent.keyword is name:
            return True
        bound = self.module.bound(name)
        if not bound or self.values.from_tensorflow(name):
            return True
        if all(self.module.within(node, method) for node in bound):
            return True
        made = self.values.object(name)
        return isinstance(made, cst.BaseNumber)


def _methods(definition: cst.ClassDef) -> list[cst.FunctionDef]:
    return [part for part in definition.body.body if isinstance(part, cst.FunctionDef)]
