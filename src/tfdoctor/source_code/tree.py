"""A file of the user's by Python's ``ast``: where its nodes are, what binds its names, and what runs how often."""

import ast
import re
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from typing import Any, TypeVar

from tfdoctor.source_code.splice import Declined, Lines, Splice, known
from tfdoctor.source_code.syntax import Comprehension, Function, Loop, dotted, given, receiver, tail
from tfdoctor.terms.record import Record

Node = TypeVar("Node", bound=ast.AST)
Scope = ast.AST  # a module, a class, a function, a lambda, a comprehension

TENSORFLOW = frozenset(["keras", "tensorflow", "tf_keras"])
V2 = ("tensorflow.compat.v2", "tensorflow")  # Two names of the same objects

# Statements that hold blocks of other ones.
COMPOUND = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.If, ast.With,
    ast.AsyncWith, ast.Match, ast.Try, ast.TryStar,
)  # fmt: skip


class BoundValue(Record):
    """What binds a name: an expression, or each element of one; ``place`` counts in a tuple, -1 is all of it."""

    value: ast.expr
    place: int = -1
    each: bool = False

    @property
    def whole(self) -> bool:
        """Whether the name stands for the expression itself."""
        return self.place < 0 and not self.each

    @property
    def part(self) -> ast.expr | None:
        """The expression itself, or its element at the place; None where that is not written."""
        if self.place < 0:
            return self.value
        parts = self.value.elts if isinstance(self.value, ast.Tuple | ast.List) else []
        part = next(iter(parts[self.place :]), None)
        return None if isinstance(part, ast.Starred) else part


def decoded(data: bytes) -> tuple[str, str]:
    """Return the encoding of a file and its text, as Python reads it: by its first bytes or lines, or as UTF-8.

    Raises:
        SyntaxError: the declared encoding is unknown.
        LookupError: it is none of text.
        ValueError: the file is not text of that encoding.
    """
    encoding, _ = tokenize.detect_encoding(BytesIO(data).readline)
    return encoding, data.decode(encoding)


@contextmanager
def unheard() -> Iterator[None]:
    """Show no warning of the user's code; where filters change instead, Python shows others' warnings once more."""
    shown, warnings.showwarning = warnings.showwarning, lambda *_, **__: None
    try:
        yield
    finally:
        warnings.showwarning = shown


class SyntaxTree:
    """A parsed text: offsets into it, the nodes around each node, and what binds its names.

    Parts of f-strings have the place of the whole string: Python 3.11 gives them others than they are written at.

    Raises:
        Declined: the text is no Python.
    """

    def __init__(self, text: str, path: str = "") -> None:
        self.text, self.path, self.lines = text, path, Lines.of(text)
        try:
            with unheard():
                self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise Declined("the syntax of the file cannot be parsed") from error
        self.nodes: list[Any] = [self.tree]
        self._parents: dict[ast.AST, Any] = {}
        self._scopes: dict[ast.AST, Scope] = {self.tree: self.tree}
        self._strings: dict[ast.AST, ast.AST] = {}  # the f-string of each part of one
        for node in self.nodes:  # grows meanwhile
            children = list(ast.iter_child_nodes(node))
            string = self._strings.get(node, node if isinstance(node, ast.JoinedStr) else None)
            for child in children:
                self._parents[child] = node
                self._scopes[child] = self._scope_in(node, child)
                if string is not None:
                    self._strings[child] = string
                    ast.copy_location(child, string)
            self.nodes += children
        self._outer = {
            (self._scopes[node], name): self._declared(node)
            for node in self.nodes
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        self._bindings = defaultdict[tuple[Scope, str], list[ast.AST]](list)
        for node in self.nodes:
            if name := _binds(node):
                scope = self._binds_in(node)
                self._bindings[self._outer.get((scope, name), scope), name].append(node)

    def _scope_in(self, node: ast.AST, child: ast.AST) -> Scope:
        """Return the scope that a part of a node runs in."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():  # not decorators, defaults and bases
                inside = isinstance(child, ast.stmt)
            case ast.Lambda(body=body):
                inside = child is body
            case ast.comprehension(iter=through) if child is through:
                around = self._parents[node]
                first = around.generators[0] is node  # it is computed outside
                return self._scopes[around] if first else around
            case _:
                inside = isinstance(node, Comprehension)
        return node if inside else self._scopes[node]

    def _declared(self, node: ast.Global | ast.Nonlocal) -> Scope:
        """Return the scope of the names that are declared as global, or as those of the function around."""
        around = self._visible(self._scopes[self._scopes[node]]) if isinstance(node, ast.Nonlocal) else ()
        return next((scope for scope in around if isinstance(scope, Function)), self.tree)

    def _binds_in(self, node: ast.AST) -> Scope:
        """Return the scope that a node binds its name in."""
        parent: ast.AST = self._parents[node]
        function: ast.AST = self._parents.get(parent, parent)
        if isinstance(node, ast.arg):
            return function
        return self.scope_of(node) if isinstance(parent, ast.NamedExpr) else self._scopes[node]

    def _visible(self, scope: Scope) -> Iterator[Scope]:
        """Yield a scope and those around it whose names it sees."""
        yield scope
        while scope is not self.tree:
            scope = self._scopes[scope]
            if not isinstance(scope, ast.ClassDef):
                yield scope

    # What is where

    def span(self, node: Any) -> tuple[int, int]:  # noqa: ANN401 - of any class that has a place
        """Return the start and the end of a node, without parentheses around it.

        Raises:
            Declined: it is a part of an f-string.
        """
        if node in self._strings:
            raise Declined(f"the code is a part of the f-string on line {node.lineno}")
        start = self.lines.offset(node.lineno, node.col_offset)
        return start, self.lines.offset(node.end_lineno, node.end_col_offset)

    def written(self, node: ast.AST) -> str:
        """Return how a node is written."""
        if node in self._strings:
            return ast.unparse(node)
        start, end = self.span(node)
        return self.text[start:end]

    def name_at(self, node: ast.Attribute) -> int:
        """Return where the name of an attribute begins, behind the dot."""
        end = self.span(node)[1]
        return end - len(re.split(r"\W", self.written(node))[-1])

    def covers(self, node: Any, line: int) -> bool:  # noqa: ANN401
        """Say whether a line is one of those of a node."""
        return bool(node.lineno <= line <= node.end_lineno)

    def parent(self, node: ast.AST | None) -> Any:  # noqa: ANN401
        """Return the node around a node; None around the file."""
        return self._parents.get(node) if node else None

    def outward(self, node: ast.AST, *until: type[Any]) -> Iterator[ast.AST]:
        """Yield the nodes around a node, the innermost first, as far as one of some kinds."""
        outer = self.parent(node)
        while outer is not None and not isinstance(outer, until):
            yield outer
            outer = self.parent(outer)

    def within(self, node: ast.AST, outer: ast.AST) -> bool:
        """Say whether a node is a part of another one, or that itself."""
        return node is outer or any(one is outer for one in self.outward(node))

    def nearest(self, node: ast.AST, kind: type[Node]) -> Node | None:
        """Return the innermost node of a kind that contains a node."""
        return next((outer for outer in self.outward(node) if isinstance(outer, kind)), None)

    def function_around(self, node: ast.AST) -> Function | None:
        """Return the innermost function that contains a node."""
        return next((outer for outer in self.outward(node) if isinstance(outer, Function)), None)

    def home(self, node: ast.AST) -> str:
        """Return the name of the function around a node; "" outside of all."""
        function = self.function_around(node)
        return function.name if function else ""

    def statement_of(self, node: ast.AST) -> ast.stmt:
        """Return the statement that a node is a part of."""
        return next(one for one in (node, *self.outward(node)) if isinstance(one, ast.stmt))

    def simple(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement that a node is a part of; None where that one has a block, as a loop."""
        statement = self.statement_of(node)
        return None if isinstance(statement, COMPOUND) else statement

    def alone(self, statement: ast.stmt) -> bool:
        """Say whether a statement has its lines for itself."""
        start, end = self.span(statement)
        before, after = self.text[self.lines.start(start) : start], self.text[end : self.lines.end(end)].strip()
        return not before.strip() and (not after or after.startswith("#"))

    def block(self, node: ast.AST) -> list[ast.stmt]:
        """Return the block of statements that a node is in."""
        statement = self.statement_of(node)
        fields = (getattr(self.parent(statement), name, None) for name in ("body", "orelse", "finalbody"))
        return next(block for block in fields if isinstance(block, list) and statement in block)

    def is_top_level(self, node: ast.AST) -> bool:
        """Say whether a node is in a statement of the file itself that has no block."""
        statement = self.simple(node)
        return statement is not None and self.parent(statement) is self.tree

    @cached_property
    def _ordered(self) -> list[Any]:
        return sorted((node for node in self.nodes if hasattr(node, "lineno")), key=place)

    def all(self, kind: type[Node]) -> list[Node]:
        """Return all nodes of a kind, in the order of the text."""
        return [node for node in self._ordered if isinstance(node, kind)]

    def inside(self, kind: type[Node], *outer: ast.AST) -> list[Node]:
        """Return the nodes of a kind that are written in others, or are these, in the order of the text."""
        nodes = (node for one in outer for node in ast.walk(one))
        return sorted((node for node in nodes if isinstance(node, kind)), key=place)

    def on(self, kind: type[Node], line: int) -> list[Node]:
        """Return the nodes of a kind that have a line, in the order of the text."""
        return [node for node in self.all(kind) if self.covers(node, line)]

    def calls(self, *names: str, line: int | None = None) -> list[ast.Call]:
        """Return the calls of functions and methods by their last names, in the file or on a line."""
        calls = self.all(ast.Call) if line is None else self.on(ast.Call, line)
        return [call for call in calls if tail(call) in names]

    def methods(self, *names: str) -> list[ast.Call]:
        """Return the calls of methods by their names."""
        return [call for call in self.calls(*names) if receiver(call)]

    @property
    def targets(self) -> list[ast.expr]:
        """What the assignments of the file assign to."""
        return [target for assignment in self.all(ast.Assign) for target in assignment.targets]

    def mentions(self, *names: str) -> list[ast.AST]:
        """Return the nodes that have a name: also attributes, arguments, parameters, definitions and imports."""
        fields = ("id", "attr", "arg", "name", "asname")
        return [node for node in self._ordered if any(getattr(node, one, None) in names for one in fields)]

    def replaced(self, node: ast.AST, new: str) -> Splice:
        """Return the splice after which a node is written in another way."""
        start, end = self.span(node)
        return Splice(start, end, 0, new)

    # Scopes

    def scope_of(self, node: ast.AST) -> Scope:
        """Return the scope that a node runs in, which is not that of a comprehension."""
        scope = self._scopes[node]
        while isinstance(scope, Comprehension):
            scope = self._scopes[scope]
        return scope

    def scope_at(self, line: int) -> Scope:
        """Return the innermost function whose body holds a line, or the module."""
        around = [one for one in self.functions if one.body[0].lineno <= line and self.covers(one, line)]
        return around[-1] if around else self.tree

    def scope_of_name(self, name: str, scope: Scope) -> Scope:
        """Return the scope that a name belongs to which is used in a scope."""
        if outer := self._outer.get((scope, name)):
            return outer
        return next((one for one in self._visible(scope) if (one, name) in self._bindings), self.tree)

    def own(self, root: ast.AST) -> Iterator[ast.AST]:
        """Yield a node and what runs with it, in the order of the text: not what functions in it do."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            yield node
            parts = reversed(list(ast.iter_child_nodes(node)))
            waiting += [part for part in parts if not isinstance(part, Function | ast.ClassDef | ast.Lambda)]

    def loops_at(self, line: int) -> list[Loop]:
        """Return the loops that have a line, the outermost first."""
        return [node for node in self._ordered if isinstance(node, Loop) and self.covers(node, line)]

    def statement(self, scope: Scope, line: int) -> ast.stmt | None:
        """Return the statement of a scope that a line is of, the smallest one."""
        own = (node for node in self.own(scope) if isinstance(node, ast.stmt))
        found = [node for node in own if self.covers(node, line)]
        return max(found, key=lambda node: node.lineno, default=None)

    # What the names hold

    def bound(self, name: ast.Name) -> Sequence[ast.AST]:
        """Return the nodes that bind a name in its scope: assigned names, parameters, definitions, imports."""
        return self._bindings.get((self.scope_of_name(name.id, self._scopes[name]), name.id), [])

    def stores(self, scope: Scope, name: str) -> list[ast.Name]:
        """Return where a name of a scope is assigned."""
        return [node for node in self._bindings.get((scope, name), ()) if isinstance(node, ast.Name)]

    def reaching(self, name: ast.Name) -> Sequence[ast.Name]:
        """Return where a name that is read may be assigned: only the last time before, where that is sure."""
        bound = [node for node in self.bound(name) if isinstance(node, ast.Name)]
        above = (one for one in bound if place(one) < place(name))
        before = [one for one in above if not self.within(name, self.statement_of(one))]
        last = max(before, key=place, default=None)
        if last is None or self.scope_of(last) is not self.scope_of(name):
            return bound
        follows = any(one in self.block(last) for one in self.outward(name))
        surely = follows and isinstance(self.statement_of(last), ast.Assign | ast.AnnAssign)
        loops = (one for other in bound for one in self.outward(other) if isinstance(one, Loop))
        # Another binding reaches it by a loop around both that does not bind it before.
        again = any(self.within(name, loop) and not self.within(last, loop) for loop in loops)
        return [last] if surely and not again else bound

    def source(self, node: Any) -> BoundValue | None:  # noqa: ANN401
        """Return what a binding gives a name: an assignment, a loop, or the only call of a function."""
        if isinstance(node, ast.arg):
            return self._argument(node)
        parent, at = self.parent(node), -1
        if isinstance(parent, ast.Tuple | ast.List):
            at, node, parent = parent.elts.index(node), parent, self.parent(parent)
        match parent:
            case ast.Assign(value=value):
                return BoundValue(value, at)
            case ast.For(iter=through) | ast.AsyncFor(iter=through):
                return BoundValue(through, at, each=True)
            case ast.Tuple(elts=parts) if isinstance(loop := self.parent(parent), ast.For | ast.AsyncFor):
                return BoundValue(loop.iter, parts.index(node), each=True)  # for i, (x, y) in enumerate(dataset)
            case _:
                return None

    def _argument(self, parameter: ast.arg) -> BoundValue | None:
        """Return what the only call of a function gives a parameter."""
        function, calls = self._parents[self._parents[parameter]], self.callers(parameter)
        if not isinstance(function, Function) or len(calls) != 1:
            return None
        value = given(function, calls[0], parameter.arg)
        # A name in a loop is followed to what it stands for; other expressions are computed at each turn.
        unclear = self.repeated(calls[0]) and not isinstance(value, ast.Name | ast.Constant)
        return None if value is None or unclear else BoundValue(value)

    def sources(self, name: ast.Name) -> list[BoundValue]:
        """Return everything that a name may stand for; [] where one of its bindings cannot be followed."""
        found = [self.source(node) for node in self.bound(name)]
        return [source for source in found if source] if all(found) else []

    def always(self, name: ast.Name, holds: Callable[[ast.expr], bool]) -> bool:
        """Say whether a name stands for known expressions, and all of them are of a kind."""
        sources = self.sources(name)
        return bool(sources) and all(source.whole and holds(source.value) for source in sources)

    def value(self, target: ast.expr) -> ast.expr | None:
        """Return what a target of an assignment gets; None is unknown, 0 stands for any number."""
        parent, bound = self.parent(target), self.source(target)
        if isinstance(parent, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
            return parent.value
        if bound is None or bound.each:
            counts = bound and (tail(bound.value), bound.place) in (("range", -1), ("enumerate", 0))
            return ast.Constant(0) if counts else None
        if bound.place < 0:
            return bound.value
        returned = self.given(tail(bound.value)) if isinstance(bound.value, ast.Call) else []
        value = returned[0] if len(returned) == 1 else bound.value
        if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(parent.elts):
            return None
        starred = any(isinstance(part, ast.Starred) for part in (*parent.elts, *value.elts))
        return None if starred else value.elts[bound.place]

    def passed_on(self, value: ast.expr | None) -> ast.expr | None:
        """Return the value of a name that is assigned once and is otherwise only passed on; None of other names."""
        if not isinstance(value, ast.Name):
            return value
        named_so = self.mentions(value.id)
        assigned = [parent for node in named_so if isinstance(parent := self.parent(node), ast.Assign)]
        passes = all(self._passes(node, self.parent(node)) for node in named_so)
        return assigned[0].value if len(assigned) == 1 and passes else None

    def _passes(self, node: ast.AST, parent: ast.AST) -> bool:
        match node, parent:
            case ast.keyword(), _:
                return True
            case ast.Name(), ast.keyword() | ast.Tuple() | ast.List() | ast.Set():
                return True
            case ast.Name(), ast.Assign(targets=parts) | ast.Call(args=parts):
                return node in parts
            case ast.Name(), ast.Starred():
                return isinstance(self.parent(parent), ast.Call)
            case _:
                return False

    # Functions, and what runs how often

    @cached_property
    def functions(self) -> list[Function]:
        """The functions and methods of the file, in the order of the text."""
        return [node for node in self._ordered if isinstance(node, Function)]

    def callable(self, name: str) -> Function | None:
        """Return the only function or method of the file that has a name."""
        found = [function for function in self.functions if function.name == name]
        return found[0] if len(found) == 1 else None

    def function(self, name: str) -> Function | None:
        """Return the only function of the file with a name, where no method has it."""
        function = self.callable(name)
        return None if isinstance(self.parent(function), ast.ClassDef) else function

    def uses(self, function: Function) -> list[ast.Call]:
        """Return the calls of a function by its name; [] where the name is also used otherwise."""
        named_so = [name for name in self.all(ast.Name) if name.id == function.name]
        names = [name for name in named_so if function in self.bound(name)]
        calls = [call for name in names if isinstance(call := self.parent(name), ast.Call) and call.func is name]
        return calls if len(calls) == len(names) else []

    def callers(self, node: ast.AST) -> list[ast.Call]:
        """Return the calls of the function around a node; [] where the file has no one function of its name."""
        function = self.function_around(node)
        return self.uses(function) if function and self.function(function.name) is function else []

    def returned(self, function: Scope | None) -> list[ast.expr | None]:
        """Return what a function returns, None for each that returns nothing."""
        nodes = self.own(function) if isinstance(function, Function) else ()
        return [node.value for node in nodes if isinstance(node, ast.Return)]

    def returns(self, name: str, holds: Callable[[ast.expr], bool]) -> bool:
        """Say whether all results of a function of the file are of a kind."""
        values = self.returned(self.function(name))
        return bool(values) and all(value is not None and holds(value) for value in values)

    def given(self, name: str) -> list[ast.expr]:
        """Return what calls of a function of the file give; [] is unknown, as where it is decorated."""
        function = self.callable(name)
        values = self.returned(function) if function and not function.decorator_list else []
        return [value for value in values if value]

    def repeated(self, node: ast.AST) -> bool:
        """Say whether a node is in a loop or a comprehension of its function."""
        around = self.outward(node, ast.FunctionDef, ast.AsyncFunctionDef)
        return any(isinstance(outer, Loop | Comprehension) for outer in around)

    def runs_once(self, node: ast.AST) -> bool:
        """Say whether a statement runs once: in no loop, and in a function that is called once."""
        if self.repeated(node):
            return False
        calls = self.callers(node)
        return self.function_around(node) is None or (len(calls) == 1 and self.runs_once(calls[0]))

    # What imports mean

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The dotted names that each imported name may stand for: {"tf": {"tensorflow"}}."""
        origins = defaultdict[str, set[str]](set)
        statements: list[ast.Import | ast.ImportFrom] = [*self.all(ast.Import), *self.all(ast.ImportFrom)]
        for statement, alias in ((one, alias) for one in statements for alias in one.names):
            first, short = alias.name.partition(".")[0], alias.asname
            if isinstance(statement, ast.Import):
                origins[short or first].add(alias.name if short else first)
            elif not statement.level and alias.name != "*":
                origins[short or alias.name].add(f"{statement.module}.{alias.name}")
        return {name: {one.replace(*V2) for one in found} for name, found in origins.items()}

    def name_of(self, origin: str, node: ast.AST) -> str | None:
        """Return the name of ``origin``, a dotted name, at a node; None when it has no name there.

        ``tensorflow.data`` is ``tf.data`` after ``import tensorflow as tf``.
        """
        parts = origin.split(".")
        for size in range(len(parts), 0, -1):
            for name, origins in self.imports.items():
                if origins != {".".join(parts[:size])}:
                    continue
                bound = self._bindings.get((self.scope_of_name(name, self._scopes[node]), name), [])
                if bound and all(isinstance(one, ast.alias) and place(one) < place(node) for one in bound):
                    return ".".join([name, *parts[size:]])  # it stands for imports above, and nothing else
        return None

    def imported(self, origin: str, node: ast.AST, before: str = "the line") -> str:
        """Return the name of a part of TensorFlow at a node, which the message calls ``before``.

        Raises:
            Declined: it has no name there.
        """
        return known(self.name_of(origin, node), f"no clear import of tensorflow precedes {before}")

    def means(self, node: ast.AST, origin: str) -> bool:
        """Say whether an expression stands for a dotted name, by the imports of the file."""
        return self.written(node) == self.name_of(origin, node)

    def origins(self, node: ast.AST) -> list[list[str]]:
        """Return the dotted names that an expression may stand for by the imports of the file, in parts."""
        first, _, rest = dotted(node).partition(".")
        return [f"{origin}.{rest}".removesuffix(".").split(".") for origin in self.imports.get(first, ())]

    def from_tensorflow(self, node: ast.AST) -> str:
        """Return ``tensorflow.nn.relu`` of an expression by the imports of the file, "" of all others."""
        names = self.origins(node)
        return ".".join(names[0]).replace(*V2) if len(names) == 1 and names[0][0] in TENSORFLOW else ""


def place(node: Any) -> tuple[int, int, int, int]:  # noqa: ANN401 - of any class that has a place
    """Return the lines and columns where a node begins and ends, to compare them."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _binds(node: ast.AST) -> str:
    """Return the name that a node binds; "" of other nodes."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ClassDef(name=name):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.alias(asname=str(name)):
            return name
        case ast.alias(name=name):
            return name.partition(".")[0]
        case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return name or ""
        case ast.MatchMapping(rest=name):
            return name or ""
        case _:
            return ""


def imports_above(module: SyntaxTree, first: ast.stmt) -> tuple[int, ast.stmt]:
    """Return where the last import of the file above the first layer ends, and the statement that follows it.

    Raises:
        Declined: there is none.
    """
    body = module.tree.body
    imports = [one for one in body if isinstance(one, ast.Import | ast.ImportFrom) and place(one) < place(first)]
    if not imports:
        raise Declined("no import precedes the first layer")
    below = body[body.index(imports[-1]) + 1]  # an import may stand in a try
    return module.lines.end(module.span(imports[-1])[1]), below
