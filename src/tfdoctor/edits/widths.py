"""Another width of a layer: it changes the model, so only a trial makes this edit, when it is asked for."""

from collections.abc import Sequence
from functools import partial

import libcst as cst

from tfdoctor.edits import whole_numbers
from tfdoctor.edits.module import SyntaxTree, last_name, named
from tfdoctor.edits.names import Names
from tfdoctor.edits.splice import Declined, Splice

CONVOLUTIONS = ("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
# By Keras' layer, the argument that is its width; it is also the first one.
KEYWORDS = {
    **dict.fromkeys((*CONVOLUTIONS, "SeparableConv1D", "SeparableConv2D"), "filters"),
    **dict.fromkeys(("Dense", "LSTM", "GRU", "SimpleRNN"), "units"),
}


def width(module: SyntaxTree, line: int, widths: tuple[int, int], others: Sequence[str]) -> list[Splice]:
    """Return the splices after which the layers of a line that have the first width have the second.

    ``others`` are the texts of the other files of the run.

    Raises:
        Declined: no layer on the line shows that width as a number.
    """
    given = [
        value
        for call in module.on(cst.Call, line)
        if (value := _width(module, call)) is not None and whole_numbers.is_value(module, value, widths[0])
    ]
    if not given:
        raise Declined(f"line {line} has no layer whose width is the number {widths[0]}")
    width_of = partial(_width, module)
    return [splice for value in given for splice in whole_numbers.replaced(module, value, widths, width_of, others)]


def _width(module: SyntaxTree, call: cst.Call) -> cst.BaseExpression | None:
    """Return the width that a call gives a layer of Keras; None of any other call."""
    keyword = KEYWORDS.get(last_name(call.func))
    if keyword is None or not Names(module).from_tensorflow(call.func):
        return None
    first = next(iter(call.args), None)
    if first is not None and first.keyword is None and not first.star:
        return first.value
    return named(call).get(keyword)
