"""A file of the user's: its scopes and loops, and what its names may be bound to."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Scope = ast.AST  # a module, a class, a function, a lambda
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)

# Methods that take something out of a container.
SHRINKS = frozenset(["clear", "pop", "popitem", "popleft", "remove", "discard"])


class UserSource:
    """A parsed file: the parent of each node, its functions, and where names and attributes are bound.

    Raises:
        SyntaxError: the text is no Python.
    """

    def __init__(self, text: bytes, path: str = "") -> None:
        self.path, self.tree = path, ast.parse(text)
        self.nodes: list[ast.AST] = [self.tree]
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in self.nodes:  # grows meanwhile
            children = list(ast.iter_child_nodes(node))
            self.parents.update(dict.fromkeys(children, node))
            self.nodes += children
        self.functions = defaultdict[str, list[Function]](list)
        self.stores = defaultdict[tuple[Scope, str], list[ast.Name]](list)
        self.attributes = defaultdict[str, list[ast.expr]](list)
        self.shrinks = defaultdict[tuple[str, str], list[ast.AST]](list)
        self.declared = {
            (self.scope_of(node), name): type(node)
            for node in self.nodes
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        for node in self.nodes:
            self._note(node)

    def _note(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions[node.name].append(node)
            case ast.Name(ctx=ast.Store() | ast.Del()):
                scope = self._binds_in(node)
                if scope is not None:
                    self.stores[scope, node.id].append(node)
                if isinstance(scope, ast.ClassDef):
                    self.attributes[node.id].append(node)
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                self.attributes[node.attr].append(node)
            case _:
                pass
        for container in _shrunk(node):
            if key := key_of(container):
                self.shrinks[key].append(node)

    def _binds_in(self, name: ast.Name) -> Scope | None:
        """Return the scope that a name is bound in; None for the variable of a comprehension."""
        scope = self.scope_of(name)
        within = takewhile(lambda one: one is not scope, self.outward(name))
        if any(isinstance(one, ast.comprehension) for one in within):
            return None
        declared = self.declared.get((scope, name.id))
        if declared is ast.Global:
            return self.tree
        if declared is ast.Nonlocal:
            return next((one for one in self.outward(self.parents[scope]) if isinstance(one, Function)), None)
        return scope

    # What is where

    def outward(self, node: ast.AST | None) -> Iterator[ast.AST]:
        """Yield a node and all that are around it, the innermost first."""
        while node is not None:
            yield node
            node = self.parents.get(node)

    def within(self, node: ast.AST, outer: ast.AST) -> bool:
        """Say whether a node is a part of another one, or that itself."""
        return any(one is outer for one in self.outward(node))

    def scope_of(self, node: ast.AST) -> Scope:
        """Return the scope that a node stands in; of a function that is the one around it."""
        around = self.outward(self.parents.get(node))
        return next((one for one in around if isinstance(one, SCOPES)), self.tree)

    def scope_at(self, line: int) -> Scope:
        """Return the innermost function whose body holds a line, or the module."""
        functions = [one for same in self.functions.values() for one in same]
        around = [one for one in functions if one.body[0].lineno <= line <= last_line(one)]
        return max(around, key=lambda one: one.lineno, default=self.tree)

    def scope_of_name(self, name: str, scope: Scope) -> Scope:
        """Return the scope that a name belongs to which is used in a scope."""
        if self.declared.get((scope, name)) is ast.Global:
            return self.tree
        for around in self.outward(scope):
            visible = around is scope or not isinstance(around, ast.ClassDef)
            if visible and ((around, name) in self.stores or name in _parameters(around)):
                return around
        return self.tree

    def own(self, root: ast.AST, scope: Scope) -> Iterator[ast.AST]:
        """Yield what is within a node and runs in this scope: no bodies of functions within."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            yield node
            inner = list(ast.iter_child_nodes(node))
            waiting += [child for child in reversed(inner) if not isinstance(child, SCOPES) or child is scope]

    def loops(self, scope: Scope, line: int) -> list[Loop]:
        """Return the loops of a scope that repeat a line, the outermost first; not what a `for` makes once."""
        loops = [node for node in self.nodes if isinstance(node, Loop) and self.scope_of(node) is scope]
        first = [loop if isinstance(loop, ast.While) else loop.body[0] for loop in loops]
        return [
            loop
            for loop, start in zip(loops, first, strict=True)
            if start.lineno <= line <= last_line(loop.body[-1])
        ]

    def statement(self, scope: Scope, line: int) -> ast.stmt | None:
        """Return the statement of a scope that a line is of, the smallest one."""
        own = (node for node in self.own(scope, scope) if isinstance(node, ast.stmt))
        found = [node for node in own if node.lineno <= line <= last_line(node)]
        return max(found, key=lambda node: node.lineno, default=None)

    def statement_of(self, node: ast.AST) -> ast.AST:
        """Return the statement that a node is a part of."""
        return next(one for one in self.outward(node) if isinstance(one, ast.stmt))

    # Functions

    def function(self, name: str) -> Function | None:
        """Return the only function or method of the file that has a name."""
        found = self.functions.get(name, [])
        return found[0] if len(found) == 1 else None

    def returned(self, function: Scope) -> list[ast.expr]:
        """Return what a function returns."""
        if not isinstance(function, Function):
            return []
        returns = (node for node in self.own(function, function) if isinstance(node, ast.Return))
        return [node.value for node in returns if node.value is not None]

    def given(self, name: str) -> list[ast.expr]:
        """Return what calls of a function of the file give; [] is unknown, as where it is decorated."""
        function = self.function(name)
        return self.returned(function) if function and not function.decorator_list else []

    # Values of names

    def reaching(self, name: ast.Name) -> Sequence[ast.Name]:
        """Return where a name that is read may be bound: only the last time before, where that is sure."""
        scope = self.scope_of(name)
        bound = self.stores.get((self.scope_of_name(name.id, scope), name.id), [])
        above = (one for one in bound if position(one) < position(name))
        before = [one for one in above if not self.within(name, self.statement_of(one))]
        last = max(before, key=position, default=None)
        if last is None or self.scope_of(last) is not scope:
            return bound
        statement = self.statement_of(last)
        surely = isinstance(statement, ast.Assign | ast.AnnAssign) and self._follows(name, statement)
        again = any(self._comes_round(one, last, name) for one in bound)
        return [last] if surely and not again else bound

    def _comes_round(self, other: ast.AST, last: ast.AST, name: ast.AST) -> bool:
        """Say whether another binding reaches a name by a loop that does not bind it before."""
        loops = (one for one in self.outward(other) if isinstance(one, Loop) and self.within(name, one))
        loop = next(loops, None)
        return loop is not None and not self.within(last, loop)

    def _follows(self, node: ast.AST, statement: ast.AST) -> bool:
        """Say whether a node is in a statement that follows another one in the same block."""
        around = self.parents[statement]
        while self.parents.get(node) not in {around, None}:
            node = self.parents[node]
        blocks = (getattr(around, name, ()) for name in ("body", "orelse", "finalbody"))
        return any(statement in block and node in block for block in blocks if isinstance(block, list))

    def value(self, target: ast.expr) -> ast.expr | None:
        """Return what a target of an assignment gets; None is unknown, 0 stands for any number."""
        match parent := self.parents[target]:
            case ast.Tuple() | ast.List():
                return self._part(parent, parent.elts.index(target))
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
                return parent.value
            case ast.For() if tail(parent.iter) == "range":
                return ast.Constant(0)
            case _:
                return None

    def _part(self, target: ast.Tuple | ast.List, at: int) -> ast.expr | None:
        """Return what the part of a target gets that has several."""
        parent = self.parents[target]
        if isinstance(parent, ast.For):
            return ast.Constant(0) if at == 0 and tail(parent.iter) == "enumerate" else None
        value: ast.expr | None = parent.value if isinstance(parent, ast.Assign) else None
        given = self.given(tail(value)) if isinstance(value, ast.Call) else []
        value = given[0] if len(given) == 1 else value
        if not isinstance(value, ast.Tuple | ast.List) or len(value.elts) != len(target.elts):
            return None
        starred = any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        return None if starred else value.elts[at]


def _parameters(scope: Scope) -> set[str]:
    if not isinstance(scope, Function | ast.Lambda):
        return set()
    return {one.arg for one in ast.iter_child_nodes(scope.args) if isinstance(one, ast.arg)}


def _shrunk(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the containers that a node takes something out of, or all."""
    match node:
        case ast.Call(func=ast.Attribute(value=container, attr=name)) if name in SHRINKS:
            yield container
        case ast.Delete(targets=targets):
            yield from (one.value if isinstance(one, ast.Subscript) else one for one in targets)
        case ast.Assign(targets=targets):
            cut = (one for one in targets if isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Slice))
            yield from (one.value for one in cut)
        case _:
            pass


def root(container: ast.expr) -> ast.expr:
    """Return what a container is a part of: `history` of `history["loss"]`."""
    while isinstance(container, ast.Subscript):
        container = container.value
    return container


def key_of(container: ast.expr) -> tuple[str, str] | None:
    """Return what tells a container from others of the file: its name, or that of the attribute."""
    match root(container):
        case ast.Name(id=name):
            return "name", name
        case ast.Attribute(attr=name):
            return "attribute", name
        case _:
            return None


def tail(node: ast.expr) -> str:
    """Return the last name of what is called: "append"; "" where it has none."""
    match node.func if isinstance(node, ast.Call) else node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def head(node: ast.expr) -> str:
    """Return the first name of what is called or read: "tf" of `tf.math.reduce_mean(x)`."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def last_line(node: ast.stmt | ast.expr) -> int:
    """Return the last line of a node."""
    return node.end_lineno or node.lineno


def position(node: ast.expr) -> tuple[int, int]:
    """Return the line and the column where a node begins."""
    return node.lineno, node.col_offset
