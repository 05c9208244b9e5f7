"""Which names in the frames of a call that trains hold its results, Keras' History of it, or the model."""

from __future__ import annotations

import ast

from .syntax import FUNCTIONS, last_line, tail
from .values import HISTORY, MODEL, RESULT, Plain, first, kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .frames import At
    from .source import UserSource

PASSES = 2  # How often assignments are gone through: a name may get what a later line of the loop made
# Functions that get the result of the call that trains, on the same line.
WRAPS = frozenset(
    (*("append", "add", "bool", "enumerate", "extend", "float", "insert"), *("int", "print", "round", "str", "zip"))
)


class KnownNames:
    """What is known of names, by where they are bound, and of the calls to the one that trains."""

    def __init__(self, frames: Sequence[At], *, fits: bool, direct: bool) -> None:
        self.frames, self.fits, self.direct = frames, fits, direct
        self.known: dict[ast.AST, str] = {}  # names where they are bound, and calls
        for number, at in enumerate(frames):
            self._learn(number, at)
            for _ in range(PASSES):
                self._pass_on(at)

    def kind(self, value: ast.expr, source: UserSource) -> str | None:
        """Return what an expression holds; None where that is nothing, or not certain."""
        if Plain(source)(value):
            return None
        return kind(value, lambda node: self._known(node, source))

    def _known(self, node: ast.expr, source: UserSource) -> str | None:
        """Return what a call gives, or a name holds: the same, wherever that may be bound."""
        if not isinstance(node, ast.Name):
            return self.known.get(node)
        kinds = {self.known.get(bound) for bound in source.reaching(node)}
        return kinds.pop() if len(kinds) == 1 else None

    def _learn(self, number: int, at: At) -> None:
        """Learn what the call of a frame gives, and the names that get it."""
        statement = at.source.statement(at.scope, at.line)
        call = _call(statement, at.line, self._called(number)) if statement else None
        if statement is None or call is None:
            return
        given = self._given(number, call)
        if len(given) == 1 and given[0] is not None:
            self.known[call] = given[0]
        for target, value in assigned(statement):
            if value is call:
                self.known.update(_shared(target, given))
        if number == 0:
            self.known.update(self._beside(at, call))

    def _called(self, number: int) -> str:
        """Return the name of what a frame calls; "" is unknown."""
        if number == 0:
            return "fit" if self.fits else ""
        scope = self.frames[number - 1].scope
        return scope.name if isinstance(scope, FUNCTIONS) else "<module>"

    def _given(self, number: int, call: ast.Call) -> list[str | None]:
        """Return the kind of what a frame's call gives; of several things that of each."""
        if number == 0 and self.fits:
            return [HISTORY]
        if number == 0:
            tensors = self.direct and not tail(call).endswith(("_on_batch", "run"))
            return [RESULT if tensors else None]
        inner = self.frames[number - 1]
        values = inner.source.returned(inner.scope)
        parts = values[0].elts if len(values) == 1 and isinstance(values[0], ast.Tuple) else values
        kinds = [self.kind(part, inner.source) for part in parts]
        return kinds if parts is not values else [first(kinds)]

    def _beside(self, at: At, call: ast.Call) -> Iterator[tuple[ast.AST, str]]:
        """Yield what the frame of the call itself shows: the model that is fitted, or tensors under a tape."""
        on = call.func.value if isinstance(call.func, ast.Attribute) else None
        if self.fits and isinstance(on, ast.Name):
            yield from ((bound, MODEL) for bound in at.source.reaching(on))
        if self.direct and not self.fits and tail(call) == "gradient":
            yield from _on_tapes(at)

    def _pass_on(self, at: At) -> None:
        """Learn the names that get what others hold."""
        for node in at.source.own(at.scope, at.scope):
            for target, value in assigned(node):
                if isinstance(target, ast.Name) and target not in self.known:
                    found = self.kind(value, at.source)
                    self.known.update({target: found} if found else {})


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of an assignment with its value; parts with parts where both have as many."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        pairs = [(node.target, node.value)]
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts)  # noqa: B905  # Python 3.9 has no strict
        else:
            yield target, value


def _call(statement: ast.stmt, line: int, name: str) -> ast.Call | None:
    """Return the outermost call of that name that a line of a statement makes; "" is any that may train."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and node.lineno <= line <= last_line(node):
            on_call = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
            if tail(node) == name if name else not on_call and tail(node) not in WRAPS:
                return node
    return None


def _shared(target: ast.expr, given: Sequence[str | None]) -> Iterator[tuple[ast.AST, str]]:
    """Yield the names of a target with the kind of what each gets."""
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    kinds = list(given) * len(parts) if len(given) == 1 else list(given)
    if len(kinds) != len(parts):
        return
    for part, known in zip(parts, kinds):  # noqa: B905
        name = part.value if isinstance(part, ast.Starred) else part
        if isinstance(name, ast.Name) and known:
            yield name, known


def _on_tapes(at: At) -> Iterator[tuple[ast.AST, str]]:
    """Yield the names that get something under a gradient tape which is no plain number."""
    plain = Plain(at.source)
    for node in at.source.own(at.scope, at.scope):
        if not isinstance(node, ast.With):
            continue
        if not any(tail(item.context_expr) == "GradientTape" for item in node.items):
            continue
        for inner in at.source.own(node, at.scope):
            for target, value in assigned(inner):
                if not plain(value):
                    yield from _shared(target, [RESULT])
