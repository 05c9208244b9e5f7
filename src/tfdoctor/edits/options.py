"""Edits that take back what switches tf.data's own tuning off."""

import re

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, dotted, last_name
from tfdoctor.edits.splice import Declined, Splice

OFF = {
    "autotune.enabled": "False",
    "experimental_optimization.autotune": "False",
    "experimental_optimization.inject_prefetch": "False",
    "experimental_optimization.map_parallelization": "False",
    "experimental_optimization.parallel_batch": "False",
    "experimental_optimization.apply_default_optimizations": "False",
    "threading.private_threadpool_size": "1",
    "threading.max_intra_op_parallelism": "1",
}
"""Options of tf.data, and the value by which each switches tuning or threads off."""


_NAMED = re.compile(r"options\.([\w.]+) =")


def autotune_on(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Remove the line that sets the option of the rule's example, of the dataset that is made on a line."""
    named = _NAMED.search(example)
    if named is None:
        raise Declined("the rule does not say which option")
    lines = [
        each for each in module.all(cst.SimpleStatementLine) if _sets(module, each) == named[1]
    ]
    told = [each for each in lines if module.covers(each, line)] or _given(module, line, lines)
    if len(told) != 1:
        many = "several lines set" if told else "no line plainly sets"
        raise Declined(f"{many} {named[1]} of the options that the dataset is given")
    return [_removed(module, told[0])]


def _sets(module: SyntaxTree, statement: cst.SimpleStatementLine) -> str:
    """Return the option that a statement only switches off, or ""."""
    match statement.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]:
            name = ".".join(dotted(target).split(".")[-2:])
            return name if OFF.get(name) == module.written(value) else ""
        case _:
            return ""


def _given(
    module: SyntaxTree, line: int, lines: list[cst.SimpleStatementLine]
) -> list[cst.SimpleStatementLine]:
    """Return those of the lines that are about what ``with_options`` of a line is given."""
    calls = [each for each in module.all(cst.Call) if last_name(each.func) == "with_options"]
    here = [each for each in calls if _line(module, each) == line]
    here = here or [each for each in calls if module.covers(each, line)]
    match [argument.value for each in here for argument in each.args]:
        case [cst.Name(value=name)] if _once(module, name):
            return [each for each in lines if _about(module, each, name, here[0])]
        case [cst.Call(func=cst.Name(value=name))]:
            return [each for each in lines if _within(module, each) == name]
        case _:
            return []


def _once(module: SyntaxTree, name: str) -> bool:
    """Say whether a name stands for one object: it is given one at most one place of the file."""
    targets = [each.target for each in module.all(cst.AssignTarget)]
    return sum(module.written(target) == name for target in targets) <= 1


def _line(module: SyntaxTree, call: cst.Call) -> int:
    """Return the line of the method's name: what Python 3.11 tells of a call in a chain."""
    return module.line(call.func.attr if isinstance(call.func, cst.Attribute) else call)


def _about(
    module: SyntaxTree, statement: cst.SimpleStatementLine, name: str, call: cst.Call
) -> bool:
    """Say whether a statement sets an option of an object that has this name where a call is made."""
    written = module.written(statement).startswith(f"{name}.")
    return written and _within(module, statement) in ("", _within(module, call))


def _within(module: SyntaxTree, node: cst.CSTNode) -> str:
    """Return the name of the function that a node is in, or ""."""
    return next((each.name.value for each in module.around(node, cst.FunctionDef)), "")


def _removed(module: SyntaxTree, statement: cst.SimpleStatementLine) -> Splice:
    block = module.parent(statement)
    alone = isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    if alone:
        raise Declined("the line is the only one of its block")
    start, end = module.span(statement)
    return Splice(module.lines.start(start), module.lines.next(end), 0, "")
