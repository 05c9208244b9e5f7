"""The stack of a call that trains, in the source: its loops, and what runs again and again with them."""

from __future__ import annotations

import ast

from .syntax import tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .parsed import Scope
    from .source import UserSource
    from .syntax import Loop


class At:
    """A frame: the line in its scope, and the loops of the scope around that."""

    def __init__(self, source: UserSource, line: int) -> None:
        self.source, self.line = source, line
        self.scope = source.scope_at(line)
        self.loops = source.loops(self.scope, line)

    @property
    def outermost(self) -> Loop | None:
        """The largest loop around the line."""
        return self.loops[0] if self.loops else None


class Region:
    """What runs again and again: a loop, or a function that is called in one."""

    def __init__(self, source: UserSource, root: ast.AST, scope: Scope) -> None:
        self.source, self.root, self.scope = source, root, scope

    def __iter__(self) -> Iterator[ast.AST]:
        """Return all of it that runs in its scope."""
        return self.source.own(self.root, self.scope)


class Frames:
    """The frames of a call, the innermost first, and the regions around it."""

    def __init__(self, frames: Sequence[At]) -> None:
        self.all = frames
        around = [
            Region(at.source, at.outermost or at.scope, at.scope)
            for number, at in enumerate(frames)
            if any(outer.loops for outer in frames[number:])
        ]
        self.regions = [*around, *_called(around)]

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
        if at.outermost is not None:
            return not at.source.within(node, at.outermost)
        return not self.made_anew(at)

    def calls(self) -> Iterator[tuple[Region, ast.Call]]:
        """Yield the calls that run again and again."""
        for region in self.regions:
            for node in region:
                if isinstance(node, ast.Call):
                    yield region, node

    def each_turn(self) -> Iterator[ast.stmt]:
        """Yield what runs in each turn of the innermost loop around the call, where no condition is around it."""
        number = next((number for number, at in enumerate(self.all) if at.loops), None)
        if number is None:
            return
        at = self.all[number]
        statements = list(_unconditional(at.loops[-1].body))
        yield from statements
        values = (one.value for one in statements if isinstance(one, (ast.Expr, ast.Assign)))
        called = (at.source.function(tail(value)) for value in values)
        for function in (*called, *(inner.scope for inner in self.all[:number])):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from _unconditional(function.body)


def _called(regions: Sequence[Region]) -> list[Region]:
    """Return the functions of the file that regions call, one level deep."""
    known = {region.scope for region in regions}
    found: dict[Scope, Region] = {}
    for region in regions:
        for node in region:
            function = region.source.function(tail(node)) if isinstance(node, ast.Call) else None
            if function is not None and function not in known:
                found[function] = Region(region.source, function, function)
    return list(found.values())


def _unconditional(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run whenever the body does."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.With, ast.AsyncWith, ast.Try)):
            yield from _unconditional(statement.body)
        if any(isinstance(node, (ast.Continue, ast.Return)) for node in ast.walk(statement)):
            return
