"""Which lines of the user's loop make the arguments of a call: read from the source, never run."""

from __future__ import annotations

import operator

from ..process.kept import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Mapping, Sequence

    from ..process.stack import Line

    Span = tuple[int, int]  # the first and the last line of a statement


def makers(call: Line) -> list[Span] | None:
    """Return the lines of the loop that make the arguments of the call on a line; None is unknown."""
    import ast

    path, line = call
    try:
        with io.open(path, encoding="utf-8") as file:
            return making(ast.parse(file.read()), line)
    except (OSError, SyntaxError, ValueError):
        return None


def making(tree: ast.AST, line: int) -> list[Span] | None:
    """Return the lines of a loop's statements that the arguments of the call at a line come from.

    None where no loop holds the call. Statements count that assign what the call, or another such
    statement, reads; or that may change an object which outlives a round of the loop, as `buffer.add(x)`.
    """
    import ast

    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))]
    around = (loop for loop in loops if _holds(loop, line))
    loop = max(around, key=operator.attrgetter("lineno"), default=None)
    if loop is None:
        return None
    kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
    simple = [node for node in ast.walk(loop) if isinstance(node, kinds)]
    call = next((statement for statement in simple if _holds(statement, line)), None)
    if call is None:
        return None
    outliving = _outliving(tree, loop, call)
    chosen, wanted = _sources(call, simple, outliving, _readings(tree, call))
    spans = [_span(statement) for statement in chosen]
    if isinstance(loop, ast.For) and _names(loop.target, ast.Store) & wanted:
        spans.append((loop.lineno, loop.iter.end_lineno or loop.lineno))
    return spans


def _sources(
    call: ast.stmt, simple: Iterable[ast.stmt], outliving: set[str], readings: Mapping[str, set[str]]
) -> tuple[Sequence[ast.stmt], set[str]]:
    """Return a statement with all that it depends on, and the names they read, also in functions of the file."""
    import ast

    chosen, wanted = [call], _names(call, ast.Load)
    grown = True
    while grown:
        wanted = wanted.union(*(readings.get(name, ()) for name in wanted))
        more = [
            statement
            for statement in simple
            if statement not in chosen and (_names(statement, ast.Store) | _changed(statement) & outliving) & wanted
        ]
        chosen += more
        wanted = wanted.union(*(_names(statement, ast.Load) for statement in more))
        grown = bool(more)
    return chosen, wanted


def _readings(tree: ast.AST, call: ast.stmt) -> dict[str, set[str]]:
    """Return what the functions of a file read besides their own names, without those that a statement calls."""
    import ast

    trains = {name for node in ast.walk(call) if isinstance(node, ast.Call) for name in _root(node.func)}
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name not in trains]
    return {
        one.name: _names(one, ast.Load) - _names(one, ast.Store) - {arg.arg for arg in one.args.args}
        for one in functions
    }


def _outliving(tree: ast.AST, loop: ast.AST, call: ast.stmt) -> set[str]:
    """Return the names of objects that a loop only reads, without modules and what the call is called on."""
    import ast

    modules = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    calls = [node for node in ast.walk(call) if isinstance(node, ast.Call)]
    given = {name for node in calls for part in (*node.args, *node.keywords) for name in _names(part, ast.Load)}
    on = {name for node in calls for name in _names(node.func, ast.Load)} - given
    return _names(loop, ast.Load) - _names(loop, ast.Store) - modules - on


def _changed(statement: ast.stmt) -> set[str]:
    """Return the objects that a statement may change: by a method, as an argument, or by a part of them."""
    import ast

    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        parts = [call.func] if isinstance(call.func, ast.Attribute) else []
        return {name for part in (*parts, *call.args) for name in _root(part)}
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return {name for target in targets for name in _root(target)}


def _root(part: ast.AST | None) -> set[str]:
    """Return the name that `name`, `name.part` and `name[part]` begin with."""
    import ast

    while isinstance(part, (ast.Attribute, ast.Subscript)):
        part = part.value
    return {part.id} if isinstance(part, ast.Name) else set()


def _span(statement: ast.stmt) -> Span:
    return statement.lineno, statement.end_lineno or statement.lineno


def _holds(statement: ast.stmt, line: int) -> bool:
    first, last = _span(statement)
    return first <= line <= last


def _names(tree: ast.AST, context: type[ast.expr_context]) -> set[str]:
    import ast

    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}
