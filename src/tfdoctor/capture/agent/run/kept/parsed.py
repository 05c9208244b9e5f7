"""A parsed file of the user's: its scopes, its loops, and where its names and attributes are bound."""

from __future__ import annotations

import ast

from .syntax import FUNCTIONS, key_of, last_line, parameters, repeats_from, shrunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .syntax import Loop

    Function = ast.FunctionDef | ast.AsyncFunctionDef
    Scope = ast.AST  # a module, a class, a function, a lambda

SCOPES = (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Parsed:
    """A parsed file, with the parent of each node."""

    def __init__(self, tree: ast.Module, path: str = "") -> None:
        self.tree, self.path = tree, path
        self.nodes: list[ast.AST] = [tree]
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in self.nodes:  # grows meanwhile
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, (ast.expr_context, ast.operator)):  # of no one alone
                    self.parents[child] = node
                    self.nodes.append(child)
        self.functions: dict[str, list[Function]] = {}
        self.stores: dict[tuple[Scope, str], list[ast.Name]] = {}
        self.attributes: dict[str, list[ast.Attribute]] = {}
        self.shrinks: dict[tuple[str, str], list[ast.AST]] = {}
        self.globals, self.nonlocals = self._declared(ast.Global), self._declared(ast.Nonlocal)
        for node in self.nodes:
            self._note(node)

    def _declared(self, kind: type[ast.Global | ast.Nonlocal]) -> set[tuple[Scope, str]]:
        """Return the names that functions declare as those of the module, or of a function around them."""
        found = (node for node in self.nodes if isinstance(node, kind))
        return {(self.scope_of(node), name) for node in found for name in node.names}

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, FUNCTIONS):
            self.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            scope = self._binds_in(node)
            if scope is not None:
                self.stores.setdefault((scope, node.id), []).append(node)
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            self.attributes.setdefault(node.attr, []).append(node)
        for container in shrunk(node):
            key = key_of(container)
            if key is not None:
                self.shrinks.setdefault(key, []).append(node)

    def _binds_in(self, name: ast.Name) -> Scope | None:
        """Return the scope that a name is bound in; None for the variable of a comprehension."""
        node: ast.AST = name
        while not isinstance(node, SCOPES):
            if isinstance(node, ast.comprehension):
                return None
            node = self.parents[node]
        if (node, name.id) in self.globals:
            return self.tree
        if (node, name.id) in self.nonlocals:
            return next((outer for outer in self._around(node) if isinstance(outer, FUNCTIONS)), None)
        return node

    def _around(self, node: ast.AST) -> Iterator[Scope]:
        """Yield the scopes around a node, the innermost first."""
        while node is not self.tree:
            node = self.scope_of(node)
            yield node

    def scope_of(self, node: ast.AST) -> Scope:
        """Return the scope that a node stands in; of a function that is the one around it."""
        node = self.parents.get(node, self.tree)
        while not isinstance(node, SCOPES):
            node = self.parents[node]
        return node

    def scope_at(self, line: int) -> Scope:
        """Return the innermost function whose body holds a line, or the module."""
        around = [
            function
            for functions in self.functions.values()
            for function in functions
            if function.body[0].lineno <= line <= last_line(function)
        ]
        return max(around, key=lambda function: function.lineno, default=self.tree)

    def loops(self, scope: Scope, line: int) -> list[Loop]:
        """Return the loops of a scope that hold a line, the outermost first."""
        return [
            node
            for node in self.nodes
            if isinstance(node, LOOPS)
            and repeats_from(node) <= line <= last_line(node.body[-1])
            and self.scope_of(node) is scope
        ]

    def within(self, node: ast.AST, outer: ast.AST) -> bool:
        """Say whether a node is a part of another one, or that itself."""
        around: ast.AST | None = node
        while around is not None and around is not outer:
            around = self.parents.get(around)
        return around is outer

    def own(self, root: ast.AST, scope: Scope) -> Iterator[ast.AST]:
        """Yield what is within a node and runs in this scope: no bodies of functions within."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            yield node
            inner = [child for child in ast.iter_child_nodes(node) if child in self.parents]
            waiting += reversed([child for child in inner if not isinstance(child, SCOPES) or child is scope])

    def statement(self, scope: Scope, line: int) -> ast.stmt | None:
        """Return the statement of a scope that a line is of, the smallest one."""
        found = [
            node
            for node in self.own(scope, scope)
            if isinstance(node, ast.stmt) and node.lineno <= line <= last_line(node)
        ]
        return max(found, key=lambda node: node.lineno, default=None)

    def function(self, name: str) -> Function | None:
        """Return the only function or method of the file that has a name."""
        found = self.functions.get(name, [])
        return found[0] if len(found) == 1 else None

    def scope_of_name(self, name: str, scope: Scope) -> Scope:
        """Return the scope that a name belongs to which is used in a scope."""
        if (scope, name) in self.globals:
            return self.tree
        for around in (scope, *self._around(scope)):
            visible = around is scope or not isinstance(around, ast.ClassDef)
            if visible and ((around, name) in self.stores or name in parameters(around)):
                return around
        return self.tree
