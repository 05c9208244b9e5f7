"""The edit that removes the line that turns an aid for debugging on for the whole run."""

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

# Functions that slow every step down and change no result.
AIDS = frozenset(["tensorflow.debugging.enable_check_numerics", "tensorflow.data.experimental.enable_debug_mode"])


def aid_off(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Remove the only call of such a function on a line, as a statement of the file outside of all blocks."""
    values, found = Values(module), list[cst.SimpleStatementLine]()
    for statement in module.all(cst.SimpleStatementLine):
        match statement.body:
            case [cst.Expr(value=cst.Call(func=func))] if module.covers(statement, line):
                if values.from_tensorflow(func) in AIDS:
                    found.append(statement)
    if len(found) != 1:
        raise Declined("the line turns no check on, or does more than that")
    if module.parent(found[0]) is not module.tree:
        raise Declined("the line is in a block, which decides whether the checks are on")
    start, end = module.span(found[0])
    if module.text[end : module.lines.end(end)].strip():
        raise Declined("a comment stands beside the line")
    return [Splice(module.lines.start(start), module.lines.next(end), 0, "")]


EDITS: dict[str, Kind] = {"debugging-off": aid_off}
