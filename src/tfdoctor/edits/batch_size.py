"""A larger batch: it changes the training, so only a trial makes this edit, when it is asked for."""

from collections.abc import Sequence

import libcst as cst

from tfdoctor.edits import whole_numbers
from tfdoctor.edits.module import SyntaxTree, last_name, named
from tfdoctor.edits.splice import Splice, only

# How many positional arguments stand before the size, by the method.
POSITIONS = {"batch": 0, "padded_batch": 0, "ragged_batch": 0, "fit": 2}

KEYWORD = "batch_size"


def larger_batch(module: SyntaxTree, line: int, sizes: tuple[int, int], others: Sequence[str]) -> list[Splice]:
    """Return the splices after which the call on a line makes batches of the second size.

    ``others`` are the texts of the other files of the run.

    Raises:
        Declined: the call does not show the first size as a number.
    """
    given = [value for call in module.on(cst.Call, line) if (value := _size(call)) is not None]
    size = only(given, f"line {line} has {{}} with a batch size")
    return whole_numbers.replaced(module, size, sizes, _size, others)


def _size(call: cst.Call) -> cst.BaseExpression | None:
    """Return the size of batches that a call is given; None of a call that makes none."""
    by_name = named(call).get(KEYWORD)
    at = POSITIONS.get(last_name(call.func)) if isinstance(call.func, cst.Attribute) else None
    if by_name is not None or at is None:
        return by_name
    plain = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    return plain[at] if len(plain) > at else None
