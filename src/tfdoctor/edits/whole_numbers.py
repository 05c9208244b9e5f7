"""A whole number replaced in a file: a literal, or a constant that is used for nothing else."""

import re
from collections.abc import Callable, Sequence

import libcst as cst

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.names import is_label
from tfdoctor.edits.splice import Declined, Splice, known
from tfdoctor.recording.program import ProgramRecord

# Returns the argument of a call that is to be changed; None of a call that has none.
NumberOf = Callable[[cst.Call], cst.BaseExpression | None]


def replaced(
    module: SyntaxTree,
    node: cst.BaseExpression,
    values: tuple[int, int],
    number_of: NumberOf,
    others: Sequence[str],
) -> list[Splice]:
    """Return the splices after which an expression is the second of two values instead of the first.

    A constant is changed where the file uses it only for what ``number_of`` returns. ``others`` are the texts
    of the other files of the run, which may import the constant.

    Raises:
        Declined: it is neither, or has another value than the run had.
    """
    before, after = values
    literal = _constant(module, node, number_of, others) if isinstance(node, cst.Name) else node
    if not isinstance(literal, cst.Integer):
        raise Declined(f"`{module.written(node)}` is not a number that the file contains")
    if literal.evaluated_value != before:
        raise Declined(f"the file has {module.written(literal)} where the run had {before}")
    return [module.replaced(literal, str(after))]


def is_value(module: SyntaxTree, node: cst.BaseExpression, value: int) -> bool:
    """Say whether an expression is a number, or a name that the file gives it."""
    if isinstance(node, cst.Name):
        assigned = _assigned(module, node)
        return assigned is not None and is_value(module, assigned[1], value)
    return isinstance(node, cst.Integer) and node.evaluated_value == value


def _constant(module: SyntaxTree, name: cst.Name, number_of: NumberOf, others: Sequence[str]) -> cst.BaseExpression:
    """Return what the file assigns to a constant."""
    why = f"`{name.value}` is not a number that the file assigns once, in no block"
    target, value = known(_assigned(module, name), why)
    uses = [
        node
        for node in module.all(cst.Name)
        if node.value == name.value
        and not is_label(module, node)
        and target in module.bound(node)
        and node is not target
    ]
    given = [number_of(call) for call in module.all(cst.Call)]
    word = re.compile(rf"\b{re.escape(name.value)}\b")
    if not all(node in given for node in uses) or any(word.search(text) for text in others):
        raise Declined(f"`{name.value}` is used for something else, too")
    return value


def _assigned(module: SyntaxTree, name: cst.Name) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
    """Return the only name that gets a value in the file itself, and the value; None where it is not so."""
    bound = module.bound(name)
    target = module.parent(bound[0]) if len(bound) == 1 else None
    assignment = module.parent(target) if isinstance(target, cst.AssignTarget) else None
    line = module.parent(assignment) if assignment is not None else None
    top = line is not None and module.parent(line) is module.tree
    if not (top and isinstance(assignment, cst.Assign) and len(assignment.targets) == 1):
        return None
    return bound[0], assignment.value


def must_be_the_only_file(program: ProgramRecord, _: SyntaxTree, __: str) -> None:
    """Decline a number that another file of the run may import."""
    if len(program.sources) > 1:
        raise Declined("the run has other files, which may use the same number")
