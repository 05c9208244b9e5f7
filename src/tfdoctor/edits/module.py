"""A parsed file: the place and the parents of its nodes, and the names of its imports."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import ImportAssignment, MetadataWrapper, ParentNodeProvider, PositionProvider, ScopeProvider

from tfdoctor.edits.splice import Declined, Lines, Splice, known

Node = TypeVar("Node", bound=cst.CSTNode)


class SyntaxTree:
    """The syntax of a text, with offsets into it."""

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

    def bound(self, name: cst.Name) -> list[cst.CSTNode]:
        """Return the nodes that bind a name in its scope: assigned names, parameters, definitions, imports."""
        scope = self._scopes.get(name)
        found = scope[name.value] if scope is not None else ()
        return [assignment.node for assignment in found if hasattr(assignment, "node")]

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


def dotted(node: cst.CSTNode) -> str:
    """Return ``a.b.c`` of such an expression, and "" of any other."""
    match node:
        case cst.Name(value=name):
            return name
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            before = dotted(value)
            return f"{before}.{name}" if before else ""
        case _:
            return ""


def named(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """Return the arguments that a call gives by name."""
    return {argument.keyword.value: argument.value for argument in call.args if argument.keyword}


def positional(call: cst.Call) -> list[cst.BaseExpression]:
    """Return the arguments that a call gives by their place."""
    return [argument.value for argument in call.args if argument.keyword is None]


def receiver(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """Return ``x`` of the call ``x.method()``; None of anything else."""
    return node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else None


def method_of(node: cst.CSTNode | None) -> str:
    """Return ``method`` of the call ``x.method()``; "" of anything else."""
    return last_name(node.func) if isinstance(node, cst.Call) and receiver(node) else ""


def root_name(node: cst.CSTNode) -> str:
    """Return the name that an expression of attributes and items starts with, "" of any other."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def last_name(node: cst.CSTNode) -> str:
    """Return ``c`` of ``anything.c`` and of ``c``, and "" of any other expression."""
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
        case _:
            return ""


def is_docstring(part: cst.CSTNode) -> bool:
    """Say whether a statement of a body is a docstring."""
    match part:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return True
        case _:
            return False
