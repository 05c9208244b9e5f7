"""Edits that take back what switches tf.data's own tuning off."""

import libcst as cst

from tfdoctor.edits.module import Module, dotted
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


def autotune_on(module: Module, line: int, _: str) -> list[Splice]:
    """Remove the line of an option that switches tuning off: the one told, else all of the file."""
    lines = [each for each in module.all(cst.SimpleStatementLine) if _switches_off(module, each)]
    told = [each for each in lines if module.covers(each, line)]
    if not lines:
        raise Declined("the file has no line that only sets such an option")
    return [_removed(module, each) for each in told or lines]


def _switches_off(module: Module, statement: cst.SimpleStatementLine) -> bool:
    match statement.body:
        case [cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]:
            name = ".".join(dotted(target).split(".")[-2:])
            return OFF.get(name) == module.written(value)
        case _:
            return False


def _removed(module: Module, statement: cst.SimpleStatementLine) -> Splice:
    block = module.parent(statement)
    alone = isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    if alone:
        raise Declined("the line is the only one of its block")
    start, end = module.span(statement)
    return Splice(module.lines.start(start), module.lines.next(end), 0, "")
