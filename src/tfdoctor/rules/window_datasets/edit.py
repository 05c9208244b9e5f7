"""The edit that slices all windows from one array, where the file makes a dataset of each window and joins them."""

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.chains import methods_of
from tfdoctor.edits.module import SyntaxTree, named, positional
from tfdoctor.edits.rebound import assigned, rebound, target
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

SLICES = "tensorflow.data.Dataset.from_tensor_slices"


def sliding_windows(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write ``from_tensor_slices(sliding_window_view(series, n))`` for its window() and flat_map()."""
    joins = [call for call in module.on(cst.Call, line) if methods_of(call)[:1] == ["flat_map"]]
    if len(joins) != 1:
        raise Declined(f"line {line} has {'several calls' if joins else 'no call'} of flat_map()")
    window = _before(module, joins[0], "window")
    made = _before(module, window, "from_tensor_slices")
    size = next((module.written(value) for value in positional(window)), "")
    options = {name: module.written(value) for name, value in named(window).items()}
    view = module.name_of("numpy.lib.stride_tricks.sliding_window_view", made)
    if Values(module).from_tensorflow(made.func) != SLICES or len(made.args) != 1 or made.args[0].star:
        raise Declined("the windows are not of a series in memory")
    if view is None:
        raise Declined("the file does not import numpy")
    if not size or options.get("drop_remainder") != "True" or not options.keys() <= {"shift", "drop_remainder"}:
        raise Declined("the last windows are shorter, or have a stride")
    if len(window.args) != 1 + len(options):
        raise Declined("the arguments of window() are given by place")
    if _joined(module, joins[0]) != size:
        raise Declined("the windows are joined in another way than by batch() of their size")
    shift, series = options.get("shift", size), made.args[0].value
    whole = f"{view}({module.written(series)}, {size}){'' if shift == '1' else f'[::{shift}]'}"
    return [module.replaced(series, whole), *(_removed(module, call) for call in (window, joins[0]))]


def _before(module: SyntaxTree, call: cst.Call, method: str) -> cst.Call:
    """Return the call of a method directly before another, in its chain or in the statement above.

    Raises:
        Declined: another stage is there.
    """
    inner = call.func.value if isinstance(call.func, cst.Attribute) else None
    if isinstance(inner, cst.Name):
        line = next(module.around(call, cst.SimpleStatementLine), None)
        block = module.parent(line) if line else None
        if line is not None and rebound(line) == inner.value and isinstance(block, cst.Module | cst.IndentedBlock):
            body = list(block.body)
            above = body[body.index(line) - 1] if line is not body[0] else None
            found = assigned(above)
            inner = found if target(above) == inner.value else None
    if not isinstance(inner, cst.Call) or methods_of(inner)[:1] != [method]:
        raise Declined(f"no {method}() stands directly before it")
    return inner


def _joined(module: SyntaxTree, join: cst.Call) -> str:
    """Return ``n`` of ``flat_map(lambda w: w.batch(n))``; "" of all others."""
    match positional(join):
        case [
            cst.Lambda(
                params=cst.Parameters(params=[cst.Param(name=cst.Name(value=window))]),
                body=cst.Call(
                    func=cst.Attribute(value=cst.Name(value=used), attr=cst.Name(value="batch")),
                    args=[cst.Arg(value=size), *rest],
                ),
            )
        ] if window == used and all(arg.keyword for arg in rest):
            return module.written(size)
        case _:
            return ""


def _removed(module: SyntaxTree, call: cst.Call) -> Splice:
    """Remove the call of a method: the whole line of ``d = d.window(...)``, else its part of the chain."""
    if not isinstance(call.func, cst.Attribute):
        raise Declined("the stage is not a method call")
    line = next(module.around(call, cst.SimpleStatementLine), None)
    start, end = module.span(call.func.value)[1], module.span(call)[1]
    if "#" in module.text[start : module.lines.end(end)]:
        raise Declined("a comment stands beside a stage that goes")
    if line is not None and rebound(line) and assigned(line) is call and isinstance(call.func.value, cst.Name):
        return Splice(module.lines.start(module.span(line)[0]), module.lines.next(end), 0, "")
    return Splice(start, end, 0, "")


EDITS: dict[str, Kind] = {"sliding-windows": sliding_windows}
