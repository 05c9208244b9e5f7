"""Edits after which a callback works at every 100th batch or tenth epoch, where training needs nothing of it."""

from collections.abc import Mapping

import libcst as cst

from tfdoctor.edits.intervals import LOGS, READS, STEPS
from tfdoctor.edits.module import SyntaxTree, is_docstring, last_name, root_name
from tfdoctor.edits.splice import Declined, Splice, insert, known
from tfdoctor.edits.values import Values

EPOCHS = 10  # Epochs from one call to the next that does its work

BY_EPOCH = frozenset(["on_epoch_begin", "on_epoch_end"])

METHODS = frozenset(["on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end"])

# Methods that read a model, or write down what was read, besides those that only log.
LOOKS = frozenset(
    ["add_histogram", "add_scalar", "append", "as_default", "astype", "copy", "dump", "dumps", "evaluate", "get",
     "get_weights", "imwrite", "keys", "plot", "predict", "predict_on_batch", "record", "reshape", "save",
     "save_weights", "savefig", "test_on_batch", "writerow"]
)  # fmt: skip

# Modules whose functions leave variables alone, but for those of WRITES.
MODULES = frozenset(["csv", "json", "logging", "math", "numpy", "os", "tensorflow", "time"])

WRITES = ("assign", "scatter", "seed", "set_", "shuffle", "update")

ODD = (cst.AugAssign, cst.Await, cst.Yield, cst.Del, cst.Raise, cst.Global, cst.Nonlocal, cst.NamedExpr)


def every_hundred_batches(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Return at once from the method of a callback around a line, but at every 100th batch."""
    return _guarded(module, line, dict.fromkeys(METHODS, STEPS))


def rarer_callback(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Return at once from the method of a callback around a line, but at every 100th batch or tenth epoch."""
    return _guarded(module, line, dict.fromkeys(METHODS, STEPS) | dict.fromkeys(BY_EPOCH, EPOCHS))


def _guarded(module: SyntaxTree, line: int, methods: Mapping[str, int]) -> list[Splice]:
    around = (function for function in module.on(cst.FunctionDef, line) if function.name.value in methods)
    method = known(next(around, None), "the line is in no method that a callback has for each batch")
    parameters = method.params.params
    if len(parameters) < 2 or not isinstance(method.body, cst.IndentedBlock):  # noqa: PLR2004 - self, number
        raise Declined("the method does not get the number of the batch")
    number, *given = (parameter.name.value for parameter in parameters[1:])
    _must_look_only(module, method, frozenset(given))
    if any(name in module.bound(name) for name in _named(module, method, number)):
        raise Declined(f"`{number}` is not only the number of the batch")
    first = next(part for part in method.body.body if not is_docstring(part))
    lines, at = module.lines, module.span(first)[0]
    indent = lines.indent(at)
    unit = "\t" if indent.startswith("\t") else "    "
    condition = f"{indent}if {number} % {methods[method.name.value]}:"
    text = f"{condition}{lines.newline}{indent}{unit}return{lines.newline}"
    return [insert(lines.start(at), text)]


def _named(module: SyntaxTree, method: cst.FunctionDef, name: str) -> list[cst.Name]:
    return [node for node in module.inside(cst.Name, method.body) if node.value == name]


def _must_look_only(module: SyntaxTree, method: cst.FunctionDef, given: frozenset[str]) -> None:
    """Decline where the method counts, or may change the model, its optimizer, what it is given or the training."""
    for kind in ODD:
        if odd := module.inside(kind, method.body):
            raise Declined(f"line {module.line(odd[0])} may count the batches, or change the training")
    for target in module.inside(cst.AssignTarget, method.body):
        other = isinstance(target.target, cst.Subscript) and root_name(target.target) in given
        if other or not _own(target.target):
            raise Declined(f"line {module.line(target)} may change the model or the training")
    for call in module.inside(cst.Call, method.body):
        if not _looks(module, call):
            raise Declined(f"line {module.line(call)} may change the model or the training")


def _own(target: cst.BaseExpression) -> bool:
    """Say whether a target is a name, or an attribute or an item of the callback alone."""
    match target:
        case cst.Name():
            return True
        case cst.Tuple(elements=elements):
            return all(_own(element.value) for element in elements)
        case cst.Attribute(value=cst.Name(value="self")):
            return True
        case cst.Subscript(value=whole):
            return _own(whole)
        case _:
            return False


def _looks(module: SyntaxTree, call: cst.Call) -> bool:
    name, values = last_name(call.func), Values(module)
    if name.startswith(WRITES) and name != "set_postfix":
        return False
    if name in LOOKS | LOGS | READS:
        return True
    root = root_name(call.func)
    origins = {origin.partition(".")[0] for origin in module.imports.get(root, ())}
    if origins and origins <= MODULES:
        return ".optimizers." not in values.from_tensorflow(call.func)
    return False
