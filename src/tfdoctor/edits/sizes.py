"""Batches and layers of another size: a whole number that the file shows, or a constant used for nothing else.

Both change what is trained: a larger batch is made by trials alone, when it is asked for.
"""

import re
from collections.abc import Callable, Sequence

import libcst as cst

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Splice, known, only
from tfdoctor.edits.syntax import last_name, named, positional
from tfdoctor.recording.program import ProgramRecord

# How many positional arguments stand before the size of a batch, by the method.
POSITIONS = {"batch": 0, "padded_batch": 0, "ragged_batch": 0, "fit": 2}

CONVOLUTIONS = ("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
# By Keras' layer, the argument that is its width; it is also the first one.
WIDTHS = {
    **dict.fromkeys((*CONVOLUTIONS, "SeparableConv1D", "SeparableConv2D"), "filters"),
    **dict.fromkeys(("Dense", "LSTM", "GRU", "SimpleRNN"), "units"),
}

# Returns the argument of a call that is a size; None of a call that has none.
SizeOf = Callable[[SyntaxTree, cst.Call], cst.BaseExpression | None]


def larger_batch(module: SyntaxTree, line: int, sizes: tuple[int, int], others: Sequence[str]) -> list[Splice]:
    """Return the splices after which the call on a line makes batches of the second size.

    ``others`` are the texts of the other files of the run, which may import a constant.

    Raises:
        Declined: the call does not show the first size as a number.
    """
    given = [value for call in module.on(cst.Call, line) if (value := _batch_size(module, call)) is not None]
    size = only(given, f"line {line} has {{}} with a batch size")
    return [_replaced(module, size, sizes, _batch_size, others)]


def width(module: SyntaxTree, line: int, widths: tuple[int, int], others: Sequence[str]) -> list[Splice]:
    """Return the splices after which the layers of a line that have the first width have the second.

    ``others`` are the texts of the other files of the run, which may import a constant.

    Raises:
        Declined: no layer on the line shows that width as a number.
    """
    given = [value for call in module.on(cst.Call, line) if (value := _width(module, call)) is not None]
    given = [value for value in given if _is_number(module, value, widths[0])]
    if not given:
        raise Declined(f"line {line} has no layer whose width is the number {widths[0]}")
    return [_replaced(module, value, widths, _width, others) for value in given]


def must_be_the_only_file(program: ProgramRecord, _: SyntaxTree, __: str) -> None:
    """Decline a number that another file of the run may import."""
    if len(program.sources) > 1:
        raise Declined("the run has other files, which may use the same number")


def _batch_size(_: SyntaxTree, call: cst.Call) -> cst.BaseExpression | None:
    by_name = named(call).get("batch_size")
    at = POSITIONS.get(last_name(call.func)) if isinstance(call.func, cst.Attribute) else None
    if by_name is not None or at is None:
        return by_name
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    return plain[at] if len(plain) > at else None


def _width(module: SyntaxTree, call: cst.Call) -> cst.BaseExpression | None:
    keyword = WIDTHS.get(last_name(call.func))
    if keyword is None or not module.from_tensorflow(call.func):
        return None
    first = next(iter(call.args), None)
    by_place = first is not None and first.keyword is None and not first.star
    return positional(call)[0] if by_place else named(call).get(keyword)


def _replaced(
    module: SyntaxTree, node: cst.BaseExpression, values: tuple[int, int], size_of: SizeOf, others: Sequence[str]
) -> Splice:
    """Return the splice after which an expression is the second of two values instead of the first.

    A constant is changed where the file uses it only for sizes of the same kind.
    """
    before, after = values
    literal = _constant(module, node, size_of, others) if isinstance(node, cst.Name) else node
    if not isinstance(literal, cst.Integer):
        raise Declined(f"`{module.written(node)}` is not a number that the file contains")
    if literal.evaluated_value != before:
        raise Declined(f"the file has {module.written(literal)} where the run had {before}")
    return module.replaced(literal, str(after))


def _is_number(module: SyntaxTree, node: cst.BaseExpression, value: int) -> bool:
    """Say whether an expression is a number, or a name that the file gives it."""
    if isinstance(node, cst.Name):
        assigned = _assigned(module, node)
        return assigned is not None and _is_number(module, assigned[1], value)
    return isinstance(node, cst.Integer) and node.evaluated_value == value


def _constant(module: SyntaxTree, name: cst.Name, size_of: SizeOf, others: Sequence[str]) -> cst.BaseExpression:
    """Return what the file assigns to a constant."""
    why = f"`{name.value}` is not a number that the file assigns once, in no block"
    target, value = known(_assigned(module, name), why)
    named_so = [node for node in module.all(cst.Name) if node.value == name.value and node is not target]
    uses = [node for node in named_so if not module.is_label(node) and target in module.bound(node)]
    given = [size_of(module, call) for call in module.all(cst.Call)]
    word = re.compile(rf"\b{re.escape(name.value)}\b")
    if not all(node in given for node in uses) or any(word.search(text) for text in others):
        raise Declined(f"`{name.value}` is used for something else, too")
    return value


def _assigned(module: SyntaxTree, name: cst.Name) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
    """Return the only name that gets a value in the file itself, and the value; None where it is not so."""
    bound = module.bound(name)
    target = module.parent(bound[0]) if len(bound) == 1 else None
    assignment = module.parent(target) if isinstance(target, cst.AssignTarget) else None
    top = assignment is not None and module.is_top_level(assignment)
    if not (top and isinstance(assignment, cst.Assign) and len(assignment.targets) == 1):
        return None
    return bound[0], assignment.value
