"""The edit that slices all windows from one array, where the file makes a dataset of each window and joins them."""

from tfdoctor.edits.kit import *


def sliding_windows(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write ``from_tensor_slices(sliding_window_view(series, n))`` for its window() and flat_map()."""
    join = only(module.methods("flat_map", line=line), f"line {line} has {{}} of flat_map()")
    window = _before(module, join, "window")
    made = _before(module, window, "from_tensor_slices")
    size = next((module.written(value) for value in positional(window)), "")
    options = {name: module.written(value) for name, value in named(window).items()}
    slices = Values(module).from_tensorflow(made.func) == "tensorflow.data.Dataset.from_tensor_slices"
    if not slices or len(made.args) != 1 or made.args[0].star:
        raise Declined("the windows are not of a series in memory")
    view = module.name_of("numpy.lib.stride_tricks.sliding_window_view", made)
    view = known(view, "the file does not import numpy")
    if not size or options.get("drop_remainder") != "True" or not options.keys() <= {"shift", "drop_remainder"}:
        raise Declined("the last windows are shorter, or have a stride")
    if len(window.args) != 1 + len(options):
        raise Declined("the arguments of window() are given by place")
    match positional(join):  # flat_map(lambda w: w.batch(n))
        case [
            cst.Lambda(
                params=cst.Parameters(params=[cst.Param(name=cst.Name(value=taken))]),
                body=cst.Call(
                    func=cst.Attribute(value=cst.Name(value=used), attr=cst.Name(value="batch")),
                    args=[cst.Arg(value=joined), *rest],
                ),
            )
        ] if taken == used and all(arg.keyword for arg in rest) and module.written(joined) == size:
            pass
        case _:
            raise Declined("the windows are joined in another way than by batch() of their size")
    shift, series = options.get("shift", size), made.args[0].value
    whole = f"{view}({module.written(series)}, {size}){'' if shift == '1' else f'[::{shift}]'}"
    splices = [module.replaced(series, whole)]
    for call in (window, join):  # the whole line of d = d.window(...) goes, else its part of the chain
        of, line_of = receiver(call), module.nearest(call, cst.SimpleStatementLine)
        start, end = module.span(of)[1] if of else 0, module.span(call)[1]
        if "#" in module.text[start : module.lines.end(end)]:
            raise Declined("a comment stands beside a stage that goes")
        if line_of and rebound(line_of) and assigned(line_of) is call and isinstance(of, cst.Name):
            start, end = module.lines.start(module.span(line_of)[0]), module.lines.next(end)
        splices.append(Splice(start, end, 0, ""))
    return splices


def _before(module: SyntaxTree, call: cst.Call, method: str) -> cst.Call:
    """Return the call of a method directly before another, in its chain or in the statement above.

    Raises:
        Declined: another stage is there.
    """
    inner = receiver(call)
    line, above, _ = in_block(module, call)
    if isinstance(inner, cst.Name) and rebound(line) == inner.value:
        inner = assigned(above[-1]) if above and target(above[-1]) == inner.value else None
    if not isinstance(inner, cst.Call) or method_of(inner) != method:
        raise Declined(f"no {method}() stands directly before it")
    return inner


EDITS = {"sliding-windows": sliding_windows}
