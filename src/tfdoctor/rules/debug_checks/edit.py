"""The edit that removes the line that turns an aid for debugging on for the whole run."""

from tfdoctor.edits.kit import *

# Functions that slow every step down and change no result.
AIDS = frozenset(["tensorflow.debugging.enable_check_numerics", "tensorflow.data.experimental.enable_debug_mode"])


def aid_off(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Remove the only call of such a function on a line, as a statement of the file outside of all blocks."""
    values, found = Values(module), list[cst.SimpleStatementLine]()
    for statement in module.on(cst.SimpleStatementLine, line):
        match statement.body:
            case [cst.Expr(value=cst.Call(func=func))] if values.from_tensorflow(func) in AIDS:
                found.append(statement)
    statement = only(found, "the line turns no check on, or does more than that")
    if module.parent(statement) is not module.tree:
        raise Declined("the line is in a block, which decides whether the checks are on")
    end = module.span(statement)[1]
    if module.text[end : module.lines.end(end)].strip():
        raise Declined("a comment stands beside the line")
    return [module.without(statement)]


EDITS = {"debugging-off": aid_off}
