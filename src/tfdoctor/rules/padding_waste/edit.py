"""The edit that pads each batch to its own longest sequence, where padded_batch() names one length for all."""

from tfdoctor.edits.kit import *

SHAPES = "padded_shapes"

# Layers and functions that name the length of a sequence, or need it.
FIXED = frozenset(["Flatten", "Input", "InputLayer", "Reshape", "TensorSpec", "ensure_shape", "set_shape"])


def own_length(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Leave ``padded_shapes`` out of the only padded_batch() on a line.

    Declines where the model may be made for the one length: it names it, or has an input of a fixed shape.
    """
    call = only_call(module, line, {"padded_batch"})
    shapes = named(call).get(SHAPES)
    if any(argument.star for argument in call.args) or shapes is None:
        raise Declined("padded_batch() is not given padded_shapes by name")
    lengths = {module.written(node) for kind in (cst.Name, cst.Integer) for node in module.inside(kind, shapes)}
    values = Values(module)
    makers = [made for made in module.all(cst.Call) if values.from_tensorflow(made.func)]
    for made in makers:
        if last_name(made.func) in FIXED and "None" not in module.written(made):
            raise Declined(f"line {module.line(made)} may need sequences of one length")
    for place in (*makers, *module.all(cst.ClassDef)):
        numbers = [*module.inside(cst.Name, place), *module.inside(cst.Integer, place)]
        if found := next((one for one in numbers if module.written(one) in lengths - {"None"}), None):
            raise Declined(f"line {module.line(found)} uses the length of the padding, too")
    given = [one for one in call.args if one.keyword is None or one.keyword.value != SHAPES]
    start, end = module.span(call.args[0])[0], module.span(call)[1] - 1
    if "#" in module.text[start:end]:
        raise Declined("a comment stands between the arguments of the call")
    written = ((one.keyword, module.written(one.value)) for one in given)  # without the commas behind them
    return [Splice(start, end, 0, ", ".join(f"{name.value}={value}" if name else value for name, value in written))]


EDITS = {"own-length": own_length}
