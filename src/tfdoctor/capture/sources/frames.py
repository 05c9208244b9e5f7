"""The stack of a call that trains, in the source: its loops, and what runs again and again with it."""

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfdoctor.source_code.syntax import Function, Loop, tail
from tfdoctor.source_code.tree import Scope, SyntaxTree


class At:
    """A frame: the line in its scope, and the loops of the scope around that, the outermost first."""

    def __init__(self, source: SyntaxTree, line: int) -> None:
        self.source, self.line = source, line
        self.scope = source.scope_at(line)
        around = (loop for loop in source.loops_at(line) if source.scope_of(loop) is self.scope)
        self.loops = [loop for loop in around if _repeats(loop, line)]
        self.name = self.scope.name if isinstance(self.scope, Function) else "<module>"


class Region(NamedTuple):
    """What runs again and again: a loop, or a function that is called in one."""

    source: SyntaxTree
    root: ast.AST
    scope: Scope

    def nodes(self) -> Iterator[ast.AST]:
        """Yield all of it that runs in its scope."""
        return self.source.own(self.root)


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
        called = {file.callable(tail(call)): file for file, call in self.calls()}  # one level deep
        self.regions += [Region(file, one, one) for one, file in called.items() if one and one not in around]

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

    def calls(self) -> Iterator[tuple[SyntaxTree, ast.Call]]:
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
        called = (at.source.callable(tail(value)) for value in values)
        for function in (*called, *(inner.scope for inner in self.all[:number])):
            if isinstance(function, Function):
                yield from _unconditional(function.body)


def _repeats(loop: Loop, line: int) -> bool:
    """Say whether a loop repeats one of its lines, and does not make what is on it once, or at its end."""
    first: ast.stmt = loop if isinstance(loop, ast.While) else loop.body[0]
    return first.lineno <= line <= (loop.body[-1].end_lineno or 0)


def _unconditional(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run whenever the body does."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.With | ast.AsyncWith | ast.Try):
            yield from _unconditional(statement.body)
        if any(isinstance(node, ast.Continue | ast.Return) for node in ast.walk(statement)):
            return
