"""Edits that remove the lines that switch off tf.data's own tuning."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, dotted, last_name
from tfdoctor.edits.splice import Declined, Splice

# Options of tf.data, and the value by which each switches tuning or threads off.
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


_NAMED = re.compile(r"options\.([\w.]+) =")


def autotune_on(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Remove the line that sets the option of the rule's example for the dataset made on a line."""
    named = _NAMED.search(example)
    if named is None:
        raise Declined("the finding does not name the option")
    statements = [one for one in module.all(cst.SimpleStatementLine) if _sets(module, one) == named[1]]
    here = [statement for statement in statements if module.covers(statement, line)]
    chosen = here or _given(module, line, statements)
    if len(chosen) != 1:
        many = "several lines set" if chosen else "the file has no line that sets"
        raise Declined(f"{many} {named[1]} for this dataset")
    block = module.parent(chosen[0])
    if isinstance(block, cst.IndentedBlock) and len(block.body) == 1:
        raise Declined("the line is the only statement in its block")
    start, end = module.span(chosen[0])
    return [Splice(module.lines.start(start), module.lines.next(end), 0, "")]


def _sets(module: SyntaxTree, statement: cst.SimpleStatementLine) -> str:
    """Return the option that a statement only switches off, or ""."""
    match statement.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]:
            name = ".".join(dotted(target).split(".")[-2:])
            return name if OFF.get(name) == module.written(value) else ""
        case _:
            return ""


def _given(
    module: SyntaxTree, line: int, statements: list[cst.SimpleStatementLine]
) -> list[cst.SimpleStatementLine]:
    """Return the statements about the options that ``with_options`` on a line gets."""
    calls = [call for call in module.all(cst.Call) if last_name(call.func) == "with_options"]
    # Python 3.11 reports the line of the method's name for a call in a chain
    methods = [call.func.attr if isinstance(call.func, cst.Attribute) else call for call in calls]
    at = [call for call, name in zip(calls, methods, strict=True) if module.line(name) == line]
    here = at or [call for call in calls if module.covers(call, line)]
    within = {
        part: next((one.name.value for one in module.around(part, cst.FunctionDef)), "") for part in statements
    }
    names = [module.written(assigned.target) for assigned in module.all(cst.AssignTarget)]
    match [argument.value for call in here for argument in call.args]:
        case [cst.Name(value=name)] if names.count(name) <= 1:  # it stands for one object
            home = next((one.name.value for one in module.around(here[0], cst.FunctionDef)), "")
            about = [part for part in statements if module.written(part).startswith(f"{name}.")]
            return [part for part in about if within[part] in ("", home)]
        case [cst.Call(func=cst.Name(value=name))]:
            return [part for part in statements if within[part] == name]
        case _:
            return []


EDITS: dict[str, Kind] = {"autotune-on": autotune_on}
