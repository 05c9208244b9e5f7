"""Loops of a file: what they bind anew in each turn, and statements that move in front of them."""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, dotted, root_name
from tfdoctor.edits.names import is_label
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.values import Values

Loop = cst.For | cst.While


def loops_on(module: SyntaxTree, line: int) -> list[Loop]:
    """Return the loops that have a line."""
    return [*module.on(cst.For, line), *module.on(cst.While, line)]


def own_loop(module: SyntaxTree, statement: cst.CSTNode) -> Loop:
    """Return the loop whose body has a statement as one of its own.

    Raises:
        Declined: it is in no loop, or in a block within one.
    """
    block = module.parent(statement)
    loop = module.parent(block) if block is not None else None
    if not isinstance(loop, cst.For | cst.While) or loop.body is not block:
        raise Declined(f"line {module.line(statement)} is no statement of a loop's own body")
    if isinstance(loop, cst.For) and loop.asynchronous is not None:
        raise Declined("the loop is asynchronous")
    if len(loop.body.body) == 1:
        raise Declined("the loop has no other statement")
    return loop


def bound_in(module: SyntaxTree, loop: cst.CSTNode) -> frozenset[str]:
    """Return the names that a loop binds or whose objects it changes by an assignment."""
    targets: list[cst.CSTNode] = [
        *(node.target for node in module.inside(cst.AssignTarget, loop)),
        *(node.target for node in module.inside(cst.AugAssign, loop)),
        *(node.target for node in module.inside(cst.AnnAssign, loop)),
        *(node.target for node in module.inside(cst.NamedExpr, loop)),
        *(node.target for node in module.inside(cst.For, loop)),
        *(node.name for node in module.inside(cst.AsName, loop)),
        *(node.name for node in module.inside(cst.ImportAlias, loop)),
        *(node.name for node in module.inside(cst.FunctionDef, loop)),
        *(node.name for node in module.inside(cst.ClassDef, loop)),
    ]
    return frozenset(root_name(part) for target in targets for part in _parts(target)) - {""}


def _parts(target: cst.CSTNode) -> list[cst.CSTNode]:
    """Return the targets that a tuple or list of targets consists of."""
    match target:
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [part for element in elements for part in _parts(element.value)]
        case cst.StarredElement(value=value):
            return _parts(value)
        case _:
            return [target]


def must_be_the_same(module: SyntaxTree, values: Values, part: cst.CSTNode, changed: frozenset[str]) -> None:
    """Decline where an expression may have another value in each turn of a loop that changes these names."""
    names = [name for name in module.inside(cst.Name, part) if not is_label(module, name)]
    if found := next((name.value for name in names if name.value in changed), ""):
        raise Declined(f"`{found}` is another one in each turn of the loop")
    for call in module.inside(cst.Call, part):
        if not values.from_tensorflow(call.func):
            raise Declined(f"what {dotted(call.func) or 'a call'}() returns may differ in each turn")


def moved_up(
    module: SyntaxTree, statement: cst.CSTNode, loop: Loop, text: str = "", instead: str = ""
) -> list[Splice]:
    """Return the splices that put a statement in front of a loop, and another text in its place, or nothing.

    ``text`` is how it is written there; "" is as it is written now.
    """
    lines, (start, end) = module.lines, module.span(statement)
    if isinstance(statement, cst.FunctionDef) and statement.decorators:
        start = module.span(statement.decorators[0])[0]
    above = module.span(loop)[0]
    outer, inner = lines.indent(above), lines.indent(start)
    if any("\n" in string.value for string in module.inside(cst.SimpleString, statement)):
        raise Declined("a string of several lines would change with its indent")
    first, *rest = (text or module.text[start:end]).splitlines()
    moved = [outer + first]
    moved += [outer + line.removeprefix(inner) if line.strip() else line for line in rest]
    moved += ["", ""] if isinstance(statement, cst.FunctionDef) else []
    put = insert(lines.start(above), lines.newline.join([*moved, ""]))
    if instead:
        return [put, Splice(start, end, 0, instead)]
    return [put, Splice(lines.start(start), lines.next(end), 0, "")]
