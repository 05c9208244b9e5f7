"""Which lines of the user's loop make the arguments of a call: read from the source, never run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Sequence

    from .stack import Line

    Span = tuple[int, int]  # the first and the last line of a statement


def makers(call: Line) -> list[Span] | None:
    """Return the lines of the loop that make the arguments of the call on a line; None is unknown."""
    import ast

    path, line = call
    try:
        with open(path, encoding="utf-8") as file:
            return making(ast.parse(file.read()), line)
    except (OSError, SyntaxError, ValueError):
        return None


def making(tree: ast.AST, line: int) -> list[Span] | None:
    """Return the lines of a loop's statements that the arguments of the call at a line come from.

    None where no loop holds the call. Statements count that assign what the call, or another such
    statement, reads.
    """
    import ast

    loops = [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))]
    loop = max((loop for loop in loops if _holds(loop, line)), key=_begin, default=None)
    if loop is None:
        return None
    kinds = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
    simple = [node for node in ast.walk(loop) if isinstance(node, kinds)]
    call = next((statement for statement in simple if _holds(statement, line)), None)
    if call is None:
        return None
    chosen, wanted = _sources(call, simple)
    spans = [_span(statement) for statement in chosen]
    if isinstance(loop, ast.For) and _names(loop.target, ast.Store) & wanted:
        spans.append((loop.lineno, loop.iter.end_lineno or loop.lineno))
    return spans


def _sources(call: ast.stmt, simple: Iterable[ast.stmt]) -> tuple[Sequence[ast.stmt], set[str]]:
    """Return a statement with all that it depends on, and the names they read."""
    import ast

    chosen, wanted = [call], _names(call, ast.Load)
    grown = True
    while grown:
        more = [
            statement
            for statement in simple
            if statement not in chosen and _names(statement, ast.Store) & wanted
        ]
        chosen += more
        wanted = wanted.union(*(_names(statement, ast.Load) for statement in more))
        grown = bool(more)
    return chosen, wanted


def _begin(statement: ast.stmt) -> int:
    return statement.lineno


def _span(statement: ast.stmt) -> Span:
    return statement.lineno, statement.end_lineno or statement.lineno


def _holds(statement: ast.stmt, line: int) -> bool:
    first, last = _span(statement)
    return first <= line <= last


def _names(tree: ast.AST, context: type[ast.expr_context]) -> set[str]:
    import ast

    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}
