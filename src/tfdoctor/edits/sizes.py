"""Batches and layers of another size: a whole number that the file shows, or a constant used for nothing else.

Both change what is trained: a larger batch is made by trials alone, when it is asked for.
"""

from collections.abc import Callable, Sequence

from tfdoctor.edits.kit import *

# How many positional arguments stand before the size of a batch, by the method.
POSITIONS = {"batch": 0, "padded_batch": 0, "ragged_batch": 0, "fit": 2}

CONVOLUTIONS = ("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
# By Keras' layer, the argument that is its width; it is also the first one.
WIDTHS = {
    **dict.fromkeys((*CONVOLUTIONS, "SeparableConv1D", "SeparableConv2D"), "filters"),
    **dict.fromkeys(("Dense", "LSTM", "GRU", "SimpleRNN"), "units"),
}

# Returns the argument of a call that is a size; None of a call that has none.
SizeOf = Callable[[SyntaxTree, ast.Call], ast.expr | None]


def larger_batch(module: SyntaxTree, line: int, sizes: tuple[int, int], others: Sequence[str]) -> list[Splice]:
    """Return the splices after which the call on a line makes batches of the second size.

    ``others`` are the texts of the other files of the run, which may import a constant.

    Raises:
        Declined: the call does not show the first size as a number.
    """
    given = [value for call in module.on(ast.Call, line) if (value := _batch_size(module, call)) is not None]
    size = only(given, f"line {line} has {{}} with a batch size")
    return [_replaced(module, size, sizes, _batch_size, others)]


def width(module: SyntaxTree, line: int, widths: tuple[int, int]) -> list[Splice]:
    """Return the splices after which the layers of a line that have the first width have the second.

    Raises:
        Declined: no layer on the line shows that width as a number.
    """
    given = [value for call in module.on(ast.Call, line) if (value := _width(module, call)) is not None]
    given = [value for value in given if _is_number(module, value, widths[0])]
    if not given:
        raise Declined(f"line {line} has no layer of Keras whose width is written as {widths[0]}")
    return [_replaced(module, value, widths, _width, ()) for value in given]


def must_be_the_only_file(program: ProgramRecord, module: SyntaxTree, line: int, _: str) -> None:
    """Decline a number with a name, which another file of the run may import."""
    widths = (_width(module, call) for call in module.on(ast.Call, line))
    if len(program.sources) > 1 and any(isinstance(one, ast.Name) for one in widths):
        raise Declined("the run has other files, which may use the same number")


def _batch_size(_: SyntaxTree, call: ast.Call) -> ast.expr | None:
    by_name = named(call).get("batch_size")
    at = POSITIONS.get(tail(call)) if isinstance(call.func, ast.Attribute) else None
    if by_name is not None or at is None:
        return by_name
    plain = [value for value in call.args if not isinstance(value, ast.Starred)]
    return plain[at] if len(plain) > at else None


def _width(module: SyntaxTree, call: ast.Call) -> ast.expr | None:
    keyword = WIDTHS.get(tail(call))
    if keyword is None or not module.from_tensorflow(call.func):
        return None
    by_place = call.args and not isinstance(call.args[0], ast.Starred)
    return call.args[0] if by_place else named(call).get(keyword)


def _replaced(
    module: SyntaxTree, node: ast.expr, values: tuple[int, int], size_of: SizeOf, others: Sequence[str]
) -> Splice:
    """Return the splice after which an expression is the second of two values instead of the first.

    A constant is changed where the file uses it only for sizes of the same kind.
    """
    before, after = values
    literal = _constant(module, node, size_of, others) if isinstance(node, ast.Name) else node
    if not isinstance(literal, ast.Constant) or type(literal.value) is not int:
        raise Declined(f"`{module.written(node)}` is not a number that the file contains")
    if literal.value != before:
        raise Declined(f"the file has {module.written(literal)} where the run had {before}")
    return module.replaced(literal, str(after))


def _is_number(module: SyntaxTree, node: ast.expr, value: int) -> bool:
    """Say whether an expression is a number, or a name that the file gives it."""
    if isinstance(node, ast.Name):
        assigned = _assigned(module, node)
        return assigned is not None and _is_number(module, assigned[1], value)
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == value


def _constant(module: SyntaxTree, name: ast.Name, size_of: SizeOf, others: Sequence[str]) -> ast.expr:
    why = f"`{name.id}` is not a number that the file assigns once, in no block"
    target, value = known(_assigned(module, name), why)
    named_so = [node for node in module.all(ast.Name) if node.id == name.id and node is not target]
    given = [size_of(module, call) for call in module.all(ast.Call)]
    word = re.compile(rf"\b{re.escape(name.id)}\b")
    used = any(target in module.bound(node) and node not in given for node in named_so)
    if used or any(word.search(text) for text in others):
        raise Declined(f"`{name.id}` is used for something else, too")
    return value


def _assigned(module: SyntaxTree, name: ast.Name) -> tuple[ast.AST, ast.expr] | None:
    """Return the only name that gets a value in the file itself, and the value; None where it is not so."""
    bound = module.bound(name)
    assignment = module.parent(bound[0]) if len(bound) == 1 else None
    if not isinstance(assignment, ast.Assign) or len(assignment.targets) > 1:
        return None
    return (bound[0], assignment.value) if module.is_top_level(assignment) else None
