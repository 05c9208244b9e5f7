"""The stack of a call that trains, in the source: what runs again and again with it, and what its names hold."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tfdoctor.capture.sources.source import Function, Scope, UserSource, last_line, tail
from tfdoctor.capture.sources.values import first_kind, is_plain, kind
from tfdoctor.terms.kinds import KeptValue

PASSES = 2  # How often assignments are gone through: a name may get what a later line of the loop made
# Functions that get the result of the call that trains, on the same line.
WRAPS = frozenset(
    ["append", "add", "bool", "enumerate", "extend", "float", "insert", "int", "print", "round", "str", "zip"]
)


class At:
    """A frame: the line in its scope, and the loops of the scope around that, the outermost first."""

    def __init__(self, source: UserSource, line: int) -> None:
        self.source, self.line = source, line
        self.scope = source.scope_at(line)
        self.loops = source.loops(self.scope, line)
        self.name = self.scope.name if isinstance(self.scope, Function) else "<module>"

    def nodes(self) -> Iterator[ast.AST]:
        """Yield all that runs in its scope."""
        return self.source.own(self.scope, self.scope)


class Region(NamedTuple):
    """What runs again and again: a loop, or a function that is called in one."""

    source: UserSource
    root: ast.AST
    scope: Scope

    def nodes(self) -> Iterator[ast.AST]:
        """Yield all of it that runs in its scope."""
        return self.source.own(self.root, self.scope)

    def called(self) -> Iterator[Function]:
        """Yield the functions of the file that it calls."""
        for node in self.nodes():
            function = self.source.function(tail(node)) if isinstance(node, ast.Call) else None
            if function is not None:
                yield function


class Frames:
    """The frames of a call, the innermost first, and the regions around it."""

    def __init__(self, frames: Sequence[At]) -> None:
        self.all = frames
        self.regions = [
            Region(at.source, at.loops[0] if at.loops else at.scope, at.scope)
            for number, at in enumerate(frames)
            if any(outer.loops for outer in frames[number:])
        ]
        around = {region.scope for region in self.regions}
        called = {function: one.source for one in self.regions for function in one.called()}  # one level deep
        self.regions += [Region(source, one, one) for one, source in called.items() if one not in around]

    def of(self, scope: Scope) -> At | None:
        """Return the frame of a scope; None where it has none."""
        return next((at for at in self.all if at.scope is scope), None)

    def made_anew(self, at: At) -> bool:
        """Say whether a loop calls the function of a frame again and again."""
        return any(outer.loops for outer in self.all[self.all.index(at) + 1 :])

    def once(self, node: ast.AST, scope: Scope) -> bool:
        """Say whether a node of a scope runs outside of the loops, as far as a frame shows that."""
        at = self.of(scope)
        if at is None:
            return False
        return not at.source.within(node, at.loops[0]) if at.loops else not self.made_anew(at)

    def calls(self) -> Iterator[tuple[UserSource, ast.Call]]:
        """Yield the calls that run again and again, with their files."""
        for region in self.regions:
            yield from ((region.source, node) for node in region.nodes() if isinstance(node, ast.Call))

    def each_turn(self) -> Iterator[ast.stmt]:
        """Yield what runs in each turn of the innermost loop around the call, where no condition is around it."""
        number = next((number for number, at in enumerate(self.all) if at.loops), None)
        if number is None:
            return
        at = self.all[number]
        statements = list(_unconditional(at.loops[-1].body))
        yield from statements
        values = (one.value for one in statements if isinstance(one, ast.Expr | ast.Assign))
        called = (at.source.function(tail(value)) for value in values)
        for function in (*called, *(inner.scope for inner in self.all[:number])):
            if isinstance(function, Function):
                yield from _unconditional(function.body)


def _unconditional(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run whenever the body does."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.With | ast.AsyncWith | ast.Try):
            yield from _unconditional(statement.body)
        if any(isinstance(node, ast.Continue | ast.Return) for node in ast.walk(statement)):
            return


class KnownNames:
    """What is known of names, by where they are bound, and of the calls to the one that trains."""

    def __init__(self, frames: Sequence[At], *, fits: bool, direct: bool) -> None:
        self.frames, self.fits, self.direct = frames, fits, direct
        self.known: dict[ast.AST, KeptValue] = {}  # names where they are bound, and calls
        for number, at in enumerate(frames):
            self._learn(number, at)
            for _ in range(PASSES):
                self._pass_on(at)

    def kind(self, value: ast.expr, source: UserSource) -> KeptValue | None:
        """Return what an expression holds; None where that is nothing, or not certain."""

        def known(node: ast.expr) -> KeptValue | None:
            if not isinstance(node, ast.Name):
                return self.known.get(node)
            kinds = {self.known.get(bound) for bound in source.reaching(node)}  # the same, wherever it may be bound
            return kinds.pop() if len(kinds) == 1 else None

        return None if is_plain(source, value) else kind(value, known)

    def _learn(self, number: int, at: At) -> None:
        """Learn what the call of a frame gives, and the names that get it."""
        statement = at.source.statement(at.scope, at.line)
        called = self.frames[number - 1].name if number else "fit" if self.fits else ""
        call = _call(statement, at.line, called) if statement else None
        if statement is None or call is None:
            return
        given = self._given(number, call)
        if len(given) == 1 and given[0] is not None:
            self.known[call] = given[0]
        self._get((target for target, value in _assigned(statement) if value is call), given)
        on = call.func.value if isinstance(call.func, ast.Attribute) else None
        if number == 0 and self.fits and isinstance(on, ast.Name):
            self.known.update(dict.fromkeys(at.source.reaching(on), KeptValue.MODEL))
        if number == 0 and self.direct and not self.fits and tail(call) == "gradient":
            self._learn_of_tapes(at)

    def _given(self, number: int, call: ast.Call) -> list[KeptValue | None]:
        """Return the kind of what a frame's call gives; of several things that of each."""
        if number == 0 and self.fits:
            return [KeptValue.HISTORY]
        if number == 0:
            tensors = self.direct and not tail(call).endswith(("_on_batch", "run"))
            return [KeptValue.RESULT if tensors else None]
        inner = self.frames[number - 1]
        match inner.source.returned(inner.scope):
            case [ast.Tuple(elts=parts)]:
                return [self.kind(part, inner.source) for part in parts]
            case values:
                return [first_kind(self.kind(value, inner.source) for value in values)]

    def _learn_of_tapes(self, at: At) -> None:
        """Learn the names that get tensors under a tape."""
        for node in at.nodes():
            items = node.items if isinstance(node, ast.With) else ()
            if any(tail(item.context_expr) == "GradientTape" for item in items):
                pairs = (pair for inner in at.source.own(node, at.scope) for pair in _assigned(inner))
                self._get((target for target, value in pairs if not is_plain(at.source, value)), [KeptValue.RESULT])

    def _pass_on(self, at: At) -> None:
        """Learn the names that get what others hold."""
        for target, value in (pair for node in at.nodes() for pair in _assigned(node)):
            if isinstance(target, ast.Name) and target not in self.known and (found := self.kind(value, at.source)):
                self.known[target] = found

    def _get(self, targets: Iterable[ast.expr], given: Sequence[KeptValue | None]) -> None:
        """Learn the names of targets; a single kind is that of each."""
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            kinds = list(given) * len(parts) if len(given) == 1 else given
            if len(kinds) != len(parts):
                continue
            for part, known in zip(parts, kinds, strict=True):
                name = part.value if isinstance(part, ast.Starred) else part
                if isinstance(name, ast.Name) and known:
                    self.known[name] = known


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield each target of an assignment with its value; parts with parts where both have as many."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        pairs = [(node.target, node.value)]
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
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
