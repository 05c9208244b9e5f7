"""Layers and models of the file under a policy of 16 bits: what their call() may do, and which layer is the last.

Keras casts the inputs of each layer, and its weights, to 16 bits. TensorFlow's own operations take no operands of
two types, so a call() qualifies only where every operand comes from its input, a layer or a Python number.
"""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.values import Values

# Functions of TensorFlow and keras.ops whose result has the type of their first operand.
KEEP_TYPE = frozenset(
    ["abs", "add", "avg_pool2d", "concat", "concatenate", "elu", "exp", "expand_dims", "flatten", "gelu",
     "identity", "l2_normalize", "leaky_relu", "max", "max_pool2d", "mean", "ones_like", "pad", "reduce_max",
     "reduce_mean", "reduce_min", "reduce_sum", "relu", "relu6", "reshape", "shape", "sigmoid", "silu",
     "softmax", "softplus", "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "sum", "swish",
     "tanh", "tile", "transpose", "unstack", "zeros_like"]
)  # fmt: skip

FLAGS = frozenset(["mask", "self", "training"])  # Parameters of call() that are no tensors to compute with


class OwnLayers:
    """The classes of one file that derive from Keras' layers and models."""

    def __init__(self, module: SyntaxTree) -> None:
        self.module, self.values = module, Values(module)
        self.classes = [node for node in module.all(cst.ClassDef) if self.values.keras_class(node.name.value)]
        self.layers = {name for definition in self.classes for name in self._made(definition)}

    def must_keep_types(self) -> None:
        """Decline where a call() may mix two types, or something other than call() uses a layer."""
        for definition in self.classes:
            name, methods = definition.name.value, _methods(definition, "call")
            if len(methods) != 1:
                raise Declined(f"{name} has no call() of its own")
            if len([one for one in methods[0].params.params if one.name.value not in FLAGS]) != 1:
                raise Declined(f"call() of {name} takes several inputs, which may differ in type")
            layers, body = self._made(definition), methods[0].body
            wrong: list[cst.CSTNode] = [
                *(call for call in self.module.inside(cst.Call, body) if not self._keeps(call, layers)),
                *(one for one in self.module.inside(cst.Name, body) if not self._has_type(one, methods[0], layers)),
            ]
            if wrong:
                line = self.module.line(wrong[0])
                raise Declined(f"line {line} may compute with two types under the policy")
        for call in self.module.all(cst.Call):
            around = next(self.module.around(call, cst.FunctionDef), None)
            inside = around is not None and around.name.value == "call"
            if isinstance(call.func, cst.Attribute) and last_name(call.func) in self.layers and not inside:
                line = self.module.line(call)
                raise Declined(f"line {line} calls .{last_name(call.func)}(), whose result would have 16 bits")

    def output(self) -> cst.Call | None:
        """Return the call that makes the last layer of the only model that the file defines as a class.

        None where call() does not end with a layer.

        Raises:
            Declined: there are several.
        """
        models = [
            node for node in self.classes if self.values.from_tensorflow(node.bases[0].value).endswith(".Model")
        ]
        if len(models) != 1:
            raise Declined(f"the file defines {'several models' if models else 'no model'}")
        returns = [
            node.value for part in _methods(models[0], "call") for node in self.module.inside(cst.Return, part)
        ]
        match returns:
            case [cst.Call(func=cst.Attribute(value=cst.Name(value="self"), attr=layer))]:
                made = self._made(models[0]).get(layer.value)
                return made if isinstance(made, cst.Call) else None
            case _:
                return None

    def _made(self, definition: cst.ClassDef) -> dict[str, cst.BaseExpression]:
        """Return the layers that __init__ and build assign once to attributes of self."""
        made: dict[str, list[cst.BaseExpression]] = {}
        setup = _methods(definition, "__init__", "build")
        for node in self.module.all(cst.Assign):
            if next(self.module.around(node, cst.FunctionDef), None) in setup:
                for target in node.targets:
                    if self.module.written(target.target).startswith("self."):
                        made.setdefault(last_name(target.target), []).append(node.value)
        return {name: values[0] for name, values in made.items() if len(values) == 1 and self._is_layer(values[0])}

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
        local = all(self.module.within(node, method) for node in bound)
        known = local or bool(self.values.from_tensorflow(name))
        return known or isinstance(self.values.object(name), cst.BaseNumber)


def _methods(definition: cst.ClassDef, *names: str) -> list[cst.FunctionDef]:
    parts = (part for part in definition.body.body if isinstance(part, cst.FunctionDef))
    return [part for part in parts if part.name.value in names]
