"""Which lines make the arguments of a call: read from the source, never run."""

import ast
from collections.abc import Iterable, Mapping, Sequence

from tfdoctor.capture.sources.frames import At
from tfdoctor.source_code.syntax import Function, arguments, root_name, spread, tail
from tfdoctor.source_code.tree import SyntaxTree, place

Span = tuple[int, int]  # The first and the last line of a statement

SIMPLE = ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Return


def makers(source: SyntaxTree, line: int) -> tuple[Span, ...] | None:
    """Return the lines of the outermost loop's statements that the arguments of the call at a line come from.

    None where no loop holds the call. Statements count that assign what the call, or another such
    statement, reads; that call a method of such an object, as `buffer.add(x)`, or assign to a part of it; or
    that may change one which outlives a round of the loop.
    """
    loop: ast.AST = [*source.loops_at(line), source.tree][0]
    simple = [node for node in ast.walk(loop) if isinstance(node, SIMPLE | ast.For)]
    own = (one for one in simple if isinstance(one, SIMPLE))
    call = next((statement for statement in own if source.covers(statement, line)), None)
    if loop is source.tree or call is None:
        return None
    trains = {root_name(node.func) for node in source.inside(ast.Call, call)}
    functions = {one.name: one for one in source.functions if one.name not in trains}
    kept = _kept(source, loop, call)
    chosen = _origins(call, simple, kept, kept - _names(loop, ast.Store), functions)
    return tuple((one.lineno, _head(one).end_lineno or one.lineno) for one in chosen)


def assigned(at: At, function: str, given: int, from_last: int) -> int | None:
    """Return the line that assigned the plain name that a call passes, as the loops around the call repeat it.

    That is within the innermost loop that assigns the name at all: above the call, or else below it. The argument
    is the one at a place from the last on, of so many; None where it is no name, or the call is not certain.
    """
    source, statement = at.source, at.source.statement(at.scope, at.line)
    every = [call for call in source.on(ast.Call, at.line) if statement and source.within(call, statement)]
    calls = [call for call in every if len(arguments(call)) == given and not spread(call)]
    calls = [call for call in calls if tail(call) == function] or calls
    value = arguments(calls[0])[-from_last] if len(calls) == 1 and 0 < from_last <= given else None
    if not isinstance(value, ast.Name):
        return None
    scope = source.scope_of_name(value.id, at.scope)
    stores = [one for one in source.stores(scope, value.id) if source.scope_of(one) is at.scope]
    block = isinstance(statement, ast.For | ast.With)  # else what the statement itself assigns comes after
    for loop in (*reversed(at.loops), source.tree):
        within = sorted((one for one in stores if source.within(one, loop)), key=place)
        before = (one for one in within if place(one) < place(value))
        above = [one for one in before if block or source.statement_of(one) is not statement]
        if above or (within and loop is not source.tree):
            return (above or within)[-1].lineno
    return None


def _origins(
    call: ast.stmt,
    simple: Iterable[ast.stmt],
    kept: set[str],
    outliving: set[str],
    functions: Mapping[str, Function],
) -> Sequence[ast.stmt]:
    """Return a statement with all that it depends on, also in functions of the file; of a loop its head counts."""
    chosen, wanted, grown = [call], _names(call, ast.Load), True
    while grown:
        wanted = wanted.union(*(_readings(functions[name]) for name in wanted if name in functions))
        more = []
        for one in (one for one in simple if one not in chosen):
            fills = set[str]() if isinstance(one, ast.For) else _fills(one)
            changed = (_changed(one) & outliving) | (fills & kept)
            more += [one] if (_names(_head(one), ast.Store) | changed) & wanted else []
        chosen += more
        wanted = wanted.union(*(_names(_head(one), ast.Load) for one in more))
        grown = bool(more)
    return chosen


def _head(statement: ast.stmt) -> ast.stmt:
    """Return a statement, of a loop without its body."""
    if not isinstance(statement, ast.For):
        return statement
    return ast.Assign([statement.target], statement.iter, end_lineno=statement.iter.end_lineno)


def _readings(function: Function) -> set[str]:
    """Return what a function reads besides its own names."""
    own = _names(function, ast.Store) | {arg.arg for arg in function.args.args}
    return _names(function, ast.Load) - own


def _kept(source: SyntaxTree, loop: ast.AST, call: ast.stmt) -> set[str]:
    """Return the names of objects that a loop reads, without modules and what the call is called on."""
    modules = {(alias.asname or alias.name).partition(".")[0] for alias in source.all(ast.alias)}
    calls = source.inside(ast.Call, call)
    parts = [part for node in calls for part in (*node.args, *node.keywords)]
    given = set[str]().union(*(_names(part, ast.Load) for part in parts))
    on = set[str]().union(*(_names(node.func, ast.Load) for node in calls)) - given
    return _names(loop, ast.Load) - modules - on


def _fills(statement: ast.stmt) -> set[str]:
    """Return the objects whose method a statement calls, or parts of which it assigns: `batch[row], n = x, 1`."""
    value = statement.value if isinstance(statement, ast.Expr | ast.Assign) else None
    called = [value.func] if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) else []
    parts = (node for node in ast.walk(statement) if isinstance(node, ast.Subscript))
    return set(map(root_name, (*called, *(part for part in parts if isinstance(part.ctx, ast.Store)))))


def _changed(statement: ast.stmt) -> set[str]:
    """Return the objects that a statement may change: by a method, as an argument, or by a part of them."""
    match statement:
        case ast.Expr(value=ast.Call(func=function, args=arguments)):
            return set(map(root_name, (*([function] if isinstance(function, ast.Attribute) else ()), *arguments)))
        case ast.Assign(targets=targets):
            return set(map(root_name, targets))
        case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
            return {root_name(target)}
        case _:
            return set()


def _names(tree: ast.AST, context: type[ast.expr_context]) -> set[str]:
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if isinstance(name.ctx, context)}
