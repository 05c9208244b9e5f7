"""What the names of a file of the user's are bound to."""

from __future__ import annotations

import ast

from .parsed import LOOPS, Parsed
from .syntax import FUNCTIONS, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .parsed import Scope


class UserSource(Parsed):
    """A parsed file that knows what a name may be bound to where it is read, and what functions return."""

    def returned(self, function: Scope) -> list[ast.expr]:
        """Return what a function returns."""
        if not isinstance(function, FUNCTIONS):
            return []
        found = (node for node in self.own(function, function) if isinstance(node, ast.Return))
        return [node.value for node in found if node.value is not None]

    def given(self, name: str) -> list[ast.expr]:
        """Return what calls of a function of the file give; [] is unknown, as where it is decorated."""
        function = self.function(name)
        return self.returned(function) if function and not function.decorator_list else []

    def reaching(self, name: ast.Name) -> Sequence[ast.Name]:
        """Return where a name that is read may be bound: only the last time before, where that is sure."""
        scope = self.scope_of(name)
        bound = self.stores.get((self.scope_of_name(name.id, scope), name.id), [])
        place = name.lineno, name.col_offset
        before = [one for one in bound if (one.lineno, one.col_offset) < place]
        before = [one for one in before if not self.within(name, self._statement_of(one))]
        last = max(before, key=lambda one: (one.lineno, one.col_offset), default=None)
        if last is None or self.scope_of(last) is not scope:
            return bound
        statement = self._statement_of(last)
        surely = isinstance(statement, (ast.Assign, ast.AnnAssign)) and self._follows(name, statement)
        again = any(self._comes_round(one, last, name) for one in bound)
        return [last] if surely and not again else bound

    def _comes_round(self, other: ast.AST, last: ast.AST, name: ast.AST) -> bool:
        """Say whether another binding reaches a name by a loop that does not bind it before."""
        around: ast.AST | None = other
        while around is not None:
            if isinstance(around, LOOPS) and self.within(name, around):
                return not self.within(last, around)
            around = self.parents.get(around)
        return False

    def _statement_of(self, node: ast.AST) -> ast.AST:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def _follows(self, node: ast.AST, statement: ast.AST) -> bool:
        """Say whether a node is in a statement that follows another one in the same block."""
        around = self.parents[statement]
        while self.parents.get(node) not in {around, None}:
            node = self.parents[node]
        blocks = (getattr(around, name, ()) for name in ("body", "orelse", "finalbody"))
        return any(statement in block and node in block for block in blocks if isinstance(block, list))

    def value(self, target: ast.expr) -> ast.expr | None:
        """Return what a target of an assignment gets; None is unknown."""
        node: ast.AST = target
        parent = self.parents[node]
        if isinstance(parent, (ast.Tuple, ast.List)):
            return self._part(parent, parent.elts.index(target))
        if isinstance(parent, ast.Assign):
            return parent.value
        if isinstance(parent, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
            return parent.value
        if isinstance(parent, ast.For) and tail(parent.iter) == "range":
            return ast.Constant(0)
        return None

    def _part(self, target: ast.Tuple | ast.List, at: int) -> ast.expr | None:
        """Return what the part of a target gets that has several."""
        parent = self.parents[target]
        if isinstance(parent, ast.For):
            return ast.Constant(0) if at == 0 and tail(parent.iter) == "enumerate" else None
        value: ast.expr | None = parent.value if isinstance(parent, ast.Assign) else None
        given = self.given(tail(value)) if isinstance(value, ast.Call) else []
        value = given[0] if len(given) == 1 else value
        if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(target.elts):
            return None
        starred = any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        return None if starred else value.elts[at]
