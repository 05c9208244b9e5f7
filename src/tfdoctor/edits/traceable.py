"""Whether a graph can hold a function as it is: a list of what is allowed, and everything else declines.

A graph runs Python once, when it is traced. So a function qualifies where its Python has no effect outside of
it, reads nothing that changes, and never needs the value of a tensor
(https://www.tensorflow.org/guide/function#limitations).
"""

from collections.abc import Iterable

import libcst as cst

from tfdoctor.edits.graph_calls import CALLED_BY_KERAS
from tfdoctor.edits.plain_syntax import PLAIN, PUNCTUATION
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.traced_calls import TracedCalls


class Traceable(TracedCalls):
    """Checks functions of one file; each of them once.

    ``batch_is_known``: the step is called with whole tensors, so that shapes are numbers when it is traced. Keras'
    fit traces with an unknown batch size.
    """

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
        methods = [part for part in definition.body.body if isinstance(part, cst.FunctionDef)]
        for method in methods:
            if method.name.value in CALLED_BY_KERAS:
                self.check(method)

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

    def _loop(self, node: cst.For | cst.CompFor, function: cst.FunctionDef) -> None:
        self._iterates(node.iter)
        self._node(node.iter, function)
        if isinstance(node, cst.For):
            self._node(node.body, function)
        if node.orelse if isinstance(node, cst.For) else node.inner_for_in:
            raise Declined(f"{self._at(node)} has a loop in a loop")
        for condition in node.ifs if isinstance(node, cst.CompFor) else ():
            self._condition(condition.test)

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
        dimension: cst.BaseExpression | None = None
        match self.module.parent(shape):
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=written))]):
                dimension = written
            case _:
                pass
        match dimension:
            case cst.Integer(value=at):
                return at != "0"
            case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="1")):
                return True
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
            origin = self.values.from_tensorflow(call.func) if isinstance(call, cst.Call) else ""
            if origin.rpartition(".")[2] not in ("GradientTape", "name_scope"):
                raise Declined(f"{self._at(item)} has a `with` of something other than a tape")
            self._node(call, function)
        self._node(node.body, function)


def _flat(value: cst.BaseExpression) -> Iterable[cst.BaseExpression]:
    """Yield the parts of a tuple, a list or a dictionary, else the expression."""
    match value:
        case cst.Tuple(elements=elements) | cst.List(elements=elements) | cst.Dict(elements=elements):
            for element in elements:
                yield from _flat(element.value)
        case _:
            yield value
