"""The edit that pads each batch to its own longest sequence, where padded_batch() names one length for all."""

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.chains import only_call
from tfdoctor.edits.module import SyntaxTree, last_name, named
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

SHAPES = "padded_shapes"

# Layers and functions that name the length of a sequence, or need it.
FIXED = frozenset(["Flatten", "Input", "InputLayer", "Reshape", "TensorSpec", "ensure_shape", "set_shape"])


def own_length(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Leave ``padded_shapes`` out of the only padded_batch() on a line."""
    call = only_call(module, line, {"padded_batch"})
    if any(argument.star for argument in call.args) or SHAPES not in named(call):
        raise Declined("padded_batch() is not given padded_shapes by name")
    _must_take_any_length(module, call)
    given = [one for one in call.args if one.keyword is None or one.keyword.value != SHAPES]
    start, end = module.span(call.args[0])[0], module.span(call)[1] - 1
    if "#" in module.text[start:end]:
        raise Declined("a comment stands between the arguments of the call")
    written = ((one.keyword, module.written(one.value)) for one in given)  # without the commas behind them
    return [Splice(start, end, 0, ", ".join(f"{name.value}={value}" if name else value for name, value in written))]


def _must_take_any_length(module: SyntaxTree, padded: cst.Call) -> None:
    """Decline where the model may be made for the one length: it names it, or has an input of a fixed shape."""
    values, shapes = Values(module), named(padded)[SHAPES]
    lengths = {module.written(node) for kind in (cst.Name, cst.Integer) for node in module.inside(kind, shapes)}
    makers = [call for call in module.all(cst.Call) if values.from_tensorflow(call.func)]
    for call in makers:
        if last_name(call.func) in FIXED and "None" not in module.written(call):
            raise Declined(f"line {module.line(call)} may need sequences of one length")
    for place in (*makers, *module.all(cst.ClassDef)):
        names = [*module.inside(cst.Name, place), *module.inside(cst.Integer, place)]
        if found := next((one for one in names if module.written(one) in lengths - {"None"}), None):
            raise Declined(f"line {module.line(found)} uses the length of the padding, too")


EDITS: dict[str, Kind] = {"own-length": own_length}
