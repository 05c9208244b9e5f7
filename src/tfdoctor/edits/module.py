"""The source model: a parsed file, the place of its nodes, what binds its names, and what runs how often."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import ImportAssignment, MetadataWrapper, ParentNodeProvider, PositionProvider, ScopeProvider

from tfdoctor.edits.splice import Declined, Lines, Splice, known
from tfdoctor.edits.syntax import dotted, given, last_name, part_of, receiver
from tfdoctor.terms.record import Record

Node = TypeVar("Node", bound=cst.CSTNode)
Loop = cst.For | cst.While

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


class SyntaxTree:
    """A parsed text, with offsets into it."""

    def __init__(self, text: str) -> None:
        try:
            tree = cst.parse_module(text)
        except (cst.ParserSyntaxError, RecursionError) as error:
            raise Declined("the syntax of the file cannot be parsed") from error
        self.text, self.lines = text, Lines.of(text)
        wrapper = MetadataWrapper(tree, unsafe_skip_copy=True)
        self.tree = wrapper.module
        self._positions = wrapper.resolve(PositionProvider)
        self._parents = wrapper.resolve(ParentNodeProvider)
        self._wrapper = wrapper

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the start and the end of a node, without parentheses around it."""
        at = self._positions[node]
        start = self.lines.offset(at.start.line, at.start.column)
        return start, self.lines.offset(at.end.line, at.end.column)

    def line(self, node: cst.CSTNode) -> int:
        """Return the line (from 1) on which a node begins."""
        return int(self._positions[node].start.line)

    def covers(self, node: cst.CSTNode, line: int) -> bool:
        """Say whether a line is one of those of a node."""
        at = self._positions[node]
        return bool(at.start.line <= line <= at.end.line)

    def within(self, node: cst.CSTNode, outer: cst.CSTNode) -> bool:
        """Say whether a node is written in another."""
        (start, end), (first, last) = self.span(node), self.span(outer)
        return first <= start and end <= last

    def written(self, node: cst.CSTNode) -> str:
        """Return how a node is written."""
        start, end = self.span(node)
        return self.text[start:end]

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """Return the node around a node."""
        return self._parents.get(node)

    def around(self, node: cst.CSTNode, kind: type[Node]) -> Iterator[Node]:
        """Return the nodes of a kind that contain a node, the innermost first."""
        return (outer for outer in self.outward(node) if isinstance(outer, kind))

    def outward(self, node: cst.CSTNode, *until: type[Any]) -> Iterator[cst.CSTNode]:
        """Yield the nodes around a node, the innermost first, as far as one of some kinds."""
        outer = self.parent(node)
        while outer is not None and not isinstance(outer, until):
            yield outer
            outer = self.parent(outer)

    def nearest(self, node: cst.CSTNode, kind: type[Node]) -> Node | None:
        """Return the innermost node of a kind that contains a node."""
        return next(self.around(node, kind), None)

    def home(self, node: cst.CSTNode) -> str:
        """Return the name of the function around a node; "" outside of all."""
        function = self.nearest(node, cst.FunctionDef)
        return function.name.value if function else ""

    def all(self, kind: type[Node]) -> list[Node]:
        """Return all nodes of a kind, in the order of the text."""
        return [node for node in self._nodes if isinstance(node, kind)]

    def inside(self, kind: type[Node], outer: cst.CSTNode) -> list[Node]:
        """Return the nodes of a kind that are written in another, in the order of the text."""
        return [node for node in self.all(kind) if self.within(node, outer)]

    def on(self, kind: type[Node], line: int) -> list[Node]:
        """Return the nodes of a kind that have a line, in the order of the text."""
        return [node for node in self.all(kind) if self.covers(node, line)]

    def calls(self, *names: str, line: int | None = None) -> list[cst.Call]:
        """Return the calls of functions and methods by their last names, in the file or on a line."""
        calls = self.all(cst.Call) if line is None else self.on(cst.Call, line)
        return [call for call in calls if last_name(call.func) in names]

    def methods(self, *names: str, line: int | None = None) -> list[cst.Call]:
        """Return the calls of methods by their names, in the file or on a line."""
        return [call for call in self.calls(*names, line=line) if receiver(call)]

    def without(self, statement: cst.CSTNode) -> Splice:
        """Return the splice that removes the lines of a statement."""
        start, end = self.span(statement)
        return Splice(self.lines.start(start), self.lines.next(end), 0, "")

    def replaced(self, node: cst.CSTNode, new: str) -> Splice:
        """Return the splice after which a node is written in another way."""
        start, end = self.span(node)
        return Splice(start, end, 0, new)

    @cached_property
    def _nodes(self) -> list[cst.CSTNode]:
        def place(node: cst.CSTNode) -> tuple[int, int, int, int]:  # white space at the end may have no offset
            at = self._positions[node]
            return at.start.line, at.start.column, at.end.line, at.end.column

        nodes, ahead = [], [self.tree]
        while ahead:
            node: Any = ahead.pop()
            nodes.append(node)
            ahead.extend(node.children)
        return sorted((node for node in nodes if node in self._positions), key=place)

    def is_top_level(self, node: cst.CSTNode) -> bool:
        """Say whether the line of a node is a statement of the file itself, in no block."""
        line = self.nearest(node, cst.SimpleStatementLine)
        return line is not None and self.parent(line) is self.tree

    # What binds the names

    def bound(self, name: cst.Name) -> list[cst.CSTNode]:
        """Return the nodes that bind a name in its scope: assigned names, parameters, definitions, imports."""
        scope = self._scopes.get(name)
        found = scope[name.value] if scope is not None else ()
        return [assignment.node for assignment in found if hasattr(assignment, "node")]

    def is_label(self, name: cst.Name) -> bool:
        """Say whether a name is that of an attribute or of an argument, and stands for no variable."""
        parent = self.parent(name)
        if isinstance(parent, cst.Attribute):
            return parent.attr is name
        return isinstance(parent, cst.Arg) and parent.keyword is name

    def sources(self, name: cst.Name) -> list[BoundValue]:
        """Return everything that a name may stand for; [] where one of its bindings cannot be followed."""
        found = [self.source(node) for node in self.bound(name)]
        return [source for source in found if source] if all(found) else []

    def always(self, name: cst.Name, holds: Callable[[cst.BaseExpression], bool]) -> bool:
        """Say whether a name stands for known expressions, and all of them are of a kind."""
        sources = self.sources(name)
        return bool(sources) and all(source.whole and holds(source.value) for source in sources)

    def passed_on(self, value: cst.BaseExpression) -> cst.BaseExpression | None:
        """Return the value of a name that is assigned once and is otherwise only passed on; None of other names."""
        if not isinstance(value, cst.Name) or value.value == "None":
            return value
        around = [self.parent(name) for name in self.all(cst.Name) if name.value == value.value]
        assigned = [self.parent(node) for node in around if isinstance(node, cst.AssignTarget)]
        plain = all(isinstance(node, cst.AssignTarget | cst.Arg | cst.Element) for node in around)
        only = assigned[0] if len(assigned) == 1 and plain else None
        return only.value if isinstance(only, cst.Assign) else None

    def source(self, node: cst.CSTNode) -> BoundValue | None:
        """Return what a binding gives a name: an assignment, a loop, or the only call of a function."""
        parent, place = self.parent(node), -1
        if isinstance(node, cst.Param) or isinstance(parent, cst.Param):
            return self._argument(node if isinstance(node, cst.Param) else parent)
        if isinstance(parent, cst.Element) and isinstance(outer := self.parent(parent), cst.Tuple | cst.List):
            place = list(outer.elements).index(parent)
            node, parent = outer, self.parent(outer)
        if isinstance(parent, cst.AssignTarget):
            assigned = self.parent(parent)
            return BoundValue(assigned.value, place) if isinstance(assigned, cst.Assign) else None
        if isinstance(parent, cst.For) and parent.target is node:
            return BoundValue(parent.iter, place, each=True)
        if isinstance(parent, cst.Element):  # for i, (x, y) in enumerate(dataset)
            around = self.parent(parent)
            loop = self.parent(around) if around else None
            if isinstance(loop, cst.For) and isinstance(around, cst.Tuple):
                return BoundValue(loop.iter, list(around.elements).index(parent), each=True)
        return None

    def _argument(self, parameter: cst.CSTNode | None) -> BoundValue | None:
        """Return what the only call of a function gives a parameter."""
        if not isinstance(parameter, cst.Param):
            return None
        function, calls = self.nearest(parameter, cst.FunctionDef), self.callers(parameter)
        if function is None or len(calls) != 1:
            return None
        value = given(function, calls[0], parameter.name.value)
        # A name in a loop is followed to what it stands for; any other expression is computed at each turn.
        unclear = self.repeated(calls[0]) and not isinstance(value, cst.Name)
        return None if value is None or unclear else BoundValue(value)

    # Functions, and what runs how often

    def function(self, name: str) -> cst.FunctionDef | None:
        """Return the only function of the file with a name that is no method."""
        found = [f for f in self.all(cst.FunctionDef) if f.name.value == name]
        plain = [f for f in found if not isinstance(self.parent(self.parent(f) or f), cst.ClassDef)]
        return plain[0] if len(plain) == len(found) == 1 else None

    def uses(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Return the calls of a function by its name; [] where the name is also used otherwise."""
        names = [
            name
            for name in self.all(cst.Name)
            if name.value == function.name.value
            and name is not function.name
            and not self.is_label(name)
            and any(node is function for node in self.bound(name))
        ]
        calls = [call for name in names if isinstance(call := self.parent(name), cst.Call) and call.func is name]
        return calls if len(calls) == len(names) else []

    def callers(self, node: cst.CSTNode) -> list[cst.Call]:
        """Return the calls of the function around a node; [] where the file has no one function of its name."""
        function = self.nearest(node, cst.FunctionDef)
        own = function is not None and self.function(function.name.value) is function
        return self.uses(function) if function is not None and own else []

    def returned(self, name: str, holds: Callable[[cst.BaseExpression], bool]) -> bool:
        """Say whether all results of a function of the file are of a kind."""
        function = self.function(name)
        returns = [node.value for node in self.all(cst.Return) if self.nearest(node, cst.FunctionDef) is function]
        return bool(returns) and all(value is not None and holds(value) for value in returns)

    def loops(self, line: int) -> list[Loop]:
        """Return the loops that have a line, the outermost first."""
        return [node for node in self._nodes if isinstance(node, cst.For | cst.While) and self.covers(node, line)]

    def own(self, root: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield a node and what runs with it, in the order of the text, and not in functions that it defines."""
        yield root
        for child in root.children:
            if not isinstance(child, cst.FunctionDef | cst.ClassDef | cst.Lambda):
                yield from self.own(child)

    def repeated(self, node: cst.CSTNode) -> bool:
        """Say whether a node is in a loop or a comprehension of its function."""
        around = self.outward(node, cst.FunctionDef)
        return any(isinstance(outer, cst.For | cst.While | cst.BaseComp) for outer in around)

    def runs_once(self, node: cst.CSTNode) -> bool:
        """Say whether a statement runs once: in no loop, and in a function that is called once."""
        if self.repeated(node):
            return False
        calls = self.callers(node)
        once = self.nearest(node, cst.FunctionDef) is None
        return once or (len(calls) == 1 and self.runs_once(calls[0]))

    # What imports mean

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The dotted names that each imported name may stand for: {"tf": {"tensorflow"}}."""
        origins: dict[str, set[str]] = {}
        for statement in self.all(cst.Import) + self.all(cst.ImportFrom):
            for name, origin in _imported(statement):
                origins.setdefault(name, set()).add(origin)
        return origins

    def name_of(self, origin: str, node: cst.CSTNode) -> str | None:
        """Return the name of ``origin``, a dotted name, at a node; None when it has no name there.

        ``tensorflow.data`` is ``tf.data`` after ``import tensorflow as tf``.
        """
        parts = origin.split(".")
        for size in range(len(parts), 0, -1):
            for name, origins in self.imports.items():
                known = origins == {".".join(parts[:size])} and self._sees(name, node)
                if known:
                    return ".".join([name, *parts[size:]])
        return None

    def imported(self, origin: str, node: cst.CSTNode, before: str = "the line") -> str:
        """Return the name of a part of TensorFlow at a node, which the message calls ``before``.

        Raises:
            Declined: it has no name there.
        """
        return known(self.name_of(origin, node), f"no clear import of tensorflow precedes {before}")

    def means(self, node: cst.BaseExpression, origin: str) -> bool:
        """Say whether an expression stands for a dotted name, by the imports of the file."""
        return self.written(node) == self.name_of(origin, node)

    def from_tensorflow(self, node: cst.CSTNode) -> str:
        """Return ``tensorflow.nn.relu`` of an expression by the imports of the file, "" of all others."""
        first, _, rest = dotted(node).partition(".")
        names = {f"{origin}.{rest}" if rest else origin for origin in self.imports.get(first, ())}
        name = next(iter(names)) if len(names) == 1 else ""
        return name if name.partition(".")[0] in TENSORFLOW else ""

    def _sees(self, name: str, node: cst.CSTNode) -> bool:
        """Say whether a name stands for an import, and nothing else, in the scope of a node."""
        scope = self._scopes.get(node)
        outer = node
        while scope is None and (above := self.parent(outer)) is not None:
            outer = above
            scope = self._scopes.get(outer)
        known = scope[name] if scope is not None else ()
        before = self.span(node)[0]
        return bool(known) and all(
            isinstance(assignment, ImportAssignment) and self.span(assignment.node)[0] < before
            for assignment in known
        )

    @cached_property
    def _scopes(self) -> Any:  # noqa: ANN401 - libcst's mapping of nodes to scopes
        return self._wrapper.resolve(ScopeProvider)


def imports_above(module: SyntaxTree, first: cst.CSTNode) -> tuple[int, cst.CSTNode]:
    """Return where the last import of the file above the first layer ends, and the statement that follows it.

    Raises:
        Declined: there is none.
    """
    imports = [
        statement
        for statement in module.tree.body
        if isinstance(statement, cst.SimpleStatementLine)
        and any(isinstance(part, cst.Import | cst.ImportFrom) for part in statement.body)
        and module.span(statement) < module.span(first)
    ]
    if not imports:
        raise Declined("no import precedes the first layer")
    body = list(module.tree.body)
    below = body[body.index(imports[-1]) + 1]  # an import may stand in a try
    return module.lines.end(module.span(imports[-1])[1]), below


def _imported(statement: cst.Import | cst.ImportFrom) -> Iterator[tuple[str, str]]:
    """Yield the names that an import binds, and the dotted names that they stand for."""
    if isinstance(statement.names, cst.ImportStar):
        return
    package = ""
    if isinstance(statement, cst.ImportFrom):
        if statement.relative or statement.module is None:
            return
        package = f"{dotted(statement.module)}."
    for alias in statement.names:
        origin = f"{package}{dotted(alias.name)}"
        if alias.asname is not None:
            yield dotted(alias.asname.name), origin
        elif package:
            yield origin.removeprefix(package), origin
        else:
            yield origin.partition(".")[0], origin.partition(".")[0]
