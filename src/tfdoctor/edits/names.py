"""What binds the names of a file: assignments, loops, and the only call of a function."""

import re
from collections.abc import Callable

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, dotted, named, positional
from tfdoctor.terms.record import Record

TENSORFLOW = frozenset(["keras", "tensorflow", "tf_keras"])


class BoundValue(Record):
    """What binds a name: an expression, or each element of one; ``place`` counts in a tuple, -1 is all of it."""

    value: cst.BaseExpression
    place: int = -1
    each: bool = False

    @property
    def whole(self) -> bool:
        """Whether the name stands for the expression itself."""
        return self.place < 0 and not self.each

    @property
    def part(self) -> cst.BaseExpression | None:
        """The expression itself, or its element at the place; None where that is not written."""
        return self.value if self.place < 0 else part_of(self.value, self.place)


class Names:
    """The names of one file."""

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
        plain = [f for f in found if not isinstance(self.module.parent(self.module.parent(f) or f), cst.ClassDef)]
        return plain[0] if len(plain) == len(found) == 1 else None

    def sources(self, name: cst.Name) -> list[BoundValue]:
        """Return everything that a name may stand for; [] where one of its bindings cannot be followed."""
        found = [self._source(node) for node in self.module.bound(name)]
        return [source for source in found if source] if all(found) else []

    def always(self, name: cst.Name, holds: Callable[[cst.BaseExpression], bool]) -> bool:
        """Say whether a name stands for known expressions, and all of them are of a kind."""
        sources = self.sources(name)
        return bool(sources) and all(source.whole and holds(source.value) for source in sources)

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
        function = self.module.nearest(parameter, cst.FunctionDef)
        calls = self.callers(parameter)
        if function is None or len(calls) != 1:
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
            and not is_label(self.module, name)
            and any(node is function for node in self.module.bound(name))
        ]
        calls = [self.module.parent(name) for name in uses]
        pairs = zip(uses, calls, strict=True)
        direct = [call for name, call in pairs if isinstance(call, cst.Call) and call.func is name]
        return direct if len(direct) == len(uses) else []

    def repeated(self, node: cst.CSTNode) -> bool:
        """Say whether a node is in a loop or a comprehension of its function."""
        around = self.module.outward(node, cst.FunctionDef)
        return any(isinstance(outer, cst.For | cst.While | cst.BaseComp) for outer in around)

    def runs_once(self, node: cst.CSTNode) -> bool:
        """Say whether a statement runs once: in no loop, and in a function that is called once."""
        if self.repeated(node):
            return False
        calls = self.callers(node)
        once = self.module.nearest(node, cst.FunctionDef) is None
        return once or (len(calls) == 1 and self.runs_once(calls[0]))

    def callers(self, node: cst.CSTNode) -> list[cst.Call]:
        """Return the calls of the function around a node; [] where the file has no one function of its name."""
        function = self.module.nearest(node, cst.FunctionDef)
        own = function is not None and self.function(function.name.value) is function
        return self.calls(function) if function is not None and own else []

    def _returned(self, name: str, holds: Callable[[cst.BaseExpression], bool]) -> bool:
        """Say whether all results of a function of the file are of a kind."""
        function = self.function(name)
        returns = [
            node.value
            for node in self.module.all(cst.Return)
            if self.module.nearest(node, cst.FunctionDef) is function
        ]
        return bool(returns) and all(value is not None and holds(value) for value in returns)


def given(function: cst.FunctionDef, call: cst.Call, name: str, skip: int = 0) -> cst.BaseExpression | None:
    """Return the expression that a call gives a parameter, else its default; None where that is unclear.

    ``skip`` is 1 for a method, whose first parameter the call does not give.
    """
    if any(argument.star for argument in call.args):
        return None
    by_place = positional(call)
    names = [parameter.name.value for parameter in function.params.params[skip:]]
    if name in names and names.index(name) < len(by_place):
        return by_place[names.index(name)]
    every = (*function.params.params, *function.params.kwonly_params)
    defaults = {parameter.name.value: parameter.default for parameter in every}
    return named(call).get(name, defaults.get(name))


def part_of(value: cst.BaseExpression, place: int) -> cst.BaseExpression | None:
    """Return an element of a written tuple or list."""
    if isinstance(value, cst.Tuple | cst.List) and place < len(value.elements):
        element = value.elements[place]
        return element.value if isinstance(element, cst.Element) else None
    return None


def is_label(module: SyntaxTree, name: cst.Name) -> bool:
    """Say whether a name is that of an attribute or of an argument, and stands for no variable."""
    parent = module.parent(name)
    if isinstance(parent, cst.Attribute):
        return parent.attr is name
    return isinstance(parent, cst.Arg) and parent.keyword is name


def unused_name(module: SyntaxTree, name: str) -> str:
    """Return a name that the file does not have yet: the given one, with as many underscores as it takes."""
    while re.search(rf"\b{name}\b", module.text):
        name += "_"
    return name
