"""The edit that predicts all examples before a loop, where the loop calls predict() on one after another."""

import re
from dataclasses import dataclass

import libcst as cst

from tfdoctor.edits.batch_rows import Rows
from tfdoctor.edits.calls_per_batch import must_be_of_keras
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.names import unused_name
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.rules.slow_prediction.arrays import is_array

# What makes a prediction depend on the one before, or predict() another function.
_STATE = re.compile(r"\bstateful\b|\.reset_states?\b|\bdef predict\b")

_NEW_AXIS = re.compile(r"(?:None|(?:np|numpy|tf)\.newaxis)(?:, ?(?:\.\.\.|:))*")

_LEAVES = (cst.Break, cst.Return, cst.Continue, cst.Raise)


@dataclass(frozen=True, slots=True)
class PredictCall:
    """A call of predict() on one example: ``example`` is how it is written, ``outer`` the call or its item [0]."""

    call: cst.Call
    model: str
    example: cst.BaseExpression
    outer: cst.BaseExpression
    first: bool  # only the first row of the result is used


def predict_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Call predict() once, on the array that the loop around a line goes through."""
    call = _call(module, line)
    must_be_of_keras(module, Rows(module).values, call.call)
    if found := _STATE.search(module.text):
        raise Declined(f"the file has `{found[0]}`: a prediction may depend on the one before")
    loop = _loop(module, call.call)
    return _in_list(module, call, loop) if isinstance(loop, cst.ListComp) else _in_loop(module, call, loop)


def _call(module: SyntaxTree, line: int) -> PredictCall:
    found = [
        call
        for call in module.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and last_name(call.func) == "predict" and module.covers(call, line)
    ]
    if len(found) != 1 or not isinstance(found[0].func, cst.Attribute):
        raise Declined(f"line {line} does not have exactly one call of predict()")
    call, model = found[0], found[0].func.value
    given = [argument for argument in call.args if argument.keyword is None]
    named = {argument.keyword.value for argument in call.args if argument.keyword}
    if len(given) != 1 or given[0].star or not named <= {"verbose", "batch_size"}:
        raise Declined("predict() has other arguments than the example")
    if not isinstance(model, cst.Name):
        raise Declined("the model is no plain name")
    outer = module.parent(call)
    if isinstance(outer, cst.Subscript) and module.written(outer) == f"{module.written(call)}[0]":
        return PredictCall(call, model.value, given[0].value, outer, first=True)
    return PredictCall(call, model.value, given[0].value, call, first=False)


def _loop(module: SyntaxTree, call: cst.Call) -> cst.For | cst.ListComp:
    """Return the innermost loop around the call, in the same function."""
    outer = module.parent(call)
    while outer is not None and not isinstance(outer, cst.FunctionDef | cst.Lambda | cst.While):
        if isinstance(outer, cst.For | cst.ListComp):
            return outer
        outer = module.parent(outer)
    raise Declined("the loop around predict() is not in the same function, or goes through no array")


def _row_of(module: SyntaxTree, example: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``x`` of ``x[None]``, ``np.expand_dims(x, 0)`` and ``np.array([x])``; None of anything else."""
    match example:
        case cst.Subscript(value=row) if _NEW_AXIS.fullmatch(_item(module, example)):
            return row
        case cst.Call(args=[cst.Arg(value=row), cst.Arg(value=cst.Integer(value="0"))]):
            return row if last_name(example.func) == "expand_dims" else None
        case cst.Call(args=[cst.Arg(value=cst.List(elements=[cst.Element(value=row)]))]):
            return row if last_name(example.func) in {"array", "asarray", "stack"} else None
        case _:
            return None


def _is_row(module: SyntaxTree, example: cst.BaseExpression, name: str) -> bool:
    row = _row_of(module, example)
    return isinstance(row, cst.Name) and row.value == name


def _item(module: SyntaxTree, node: cst.Subscript) -> str:
    return module.written(node)[len(module.written(node.value)) + 1 : -1]


def _in_list(module: SyntaxTree, call: PredictCall, made: cst.ListComp) -> list[Splice]:
    """Replace ``[model.predict(x[None])[0] for x in xs]`` by ``list(model.predict(xs))``."""
    part = made.for_in
    if part.ifs or part.inner_for_in or made.elt is not call.outer:
        raise Declined("the list is made of more than the predictions for one array")
    if not isinstance(part.iter, cst.Name) or not isinstance(part.target, cst.Name):
        raise Declined("the loop around predict() does not go through one array")
    if not _is_row(module, call.example, part.target.value):
        raise Declined("predict() does not get the example of the loop as it is")
    _must_be_array(module, part.iter)
    once = _written(module, call, part.iter.value)
    new = f"list({once})" if call.first else f"[row[None] for row in {once}]"
    return [Splice(*module.span(made), 0, new)]


def _in_loop(module: SyntaxTree, call: PredictCall, loop: cst.For) -> list[Splice]:
    """Predict before the loop, and take each example's prediction from the result."""
    _must_run_each_time(module, call, loop)
    through, rows, at = _counted(module, call, loop) or _through(module, call, loop)
    _must_be_array(module, through)
    _must_stay(module, call, loop, through.value)
    name = unused_name(module, "predictions")
    start, lines = module.span(loop)[0], module.lines
    before = f"{name} = {_written(module, call, rows)}{lines.newline}{lines.indent(start)}"
    splices = [insert(start, before)]
    if at:
        new = f"{name}[{at}]" if call.first else f"{name}[{at} : {at} + 1]"
        return [*splices, Splice(*module.span(call.outer), 0, new)]
    row = unused_name(module, "prediction")
    # The loop goes through the predictions as well.
    target, through_span = module.written(loop.target), module.span(loop.iter)
    if isinstance(loop.iter, cst.Call):  # zip(xs, ys)
        target, zipped = target.rstrip(", "), insert(through_span[1] - 1, f", {name}")
    else:
        zipped = Splice(*through_span, 0, f"zip({module.written(loop.iter)}, {name})")
    splices += [Splice(*module.span(loop.target), 0, f"{target}, {row}"), zipped]
    return [*splices, Splice(*module.span(call.outer), 0, row if call.first else f"{row}[None]")]


# An array, what of it a loop goes through, as written, and the name of the place in it; "" where there is none.
Through = tuple[cst.Name, str, str]


def _through(module: SyntaxTree, call: PredictCall, loop: cst.For) -> Through:
    """Return the array whose rows a loop goes through."""
    match loop.target, loop.iter:
        case cst.Name(value=x), cst.Name() as through if _is_row(module, call.example, x):
            return through, through.value, ""
        case (
            cst.Tuple(elements=[cst.Element(value=cst.Name(value=at)), cst.Element(value=cst.Name(value=x))]),
            cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=cst.Name() as through)]),
        ) if _is_row(module, call.example, x):
            return through, through.value, at
        case cst.Tuple(elements=[cst.Element(value=cst.Name(value=x)), *_]), cst.Call(
            func=cst.Name(value="zip"), args=[cst.Arg(value=cst.Name() as through, star=""), *_]
        ) if _is_row(module, call.example, x):
            return through, through.value, ""
        case _:
            raise Declined("predict() does not get the example of the loop as it is")


def _counted(module: SyntaxTree, call: PredictCall, loop: cst.For) -> Through | None:
    """Return the array of which a loop counts the places: range(len(xs)), or range(n).

    The example is ``xs[i : i + 1]``, ``xs[[i]]`` or ``xs[i][None]``.
    """
    match loop.target, loop.iter:
        case cst.Name(value=at), cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=until)]):
            parts = ((call.example, {f"{at}:{at}+1", f"[{at}]"}), (_row_of(module, call.example), {at}))
        case _:
            return None
    for part, items in parts:
        if not isinstance(part, cst.Subscript) or not isinstance(part.value, cst.Name):
            continue
        if re.sub(r"\s", "", _item(module, part)) in items:
            array, written = part.value, module.written(until)
            if written == f"len({array.value})":
                return array, array.value, at
            plain = isinstance(until, cst.Name | cst.Integer)
            return (array, f"{array.value}[:{written}]", at) if plain else None
    return None


def _must_run_each_time(module: SyntaxTree, call: PredictCall, loop: cst.For) -> None:
    statement = next(module.around(call.call, cst.SimpleStatementLine), None)
    if statement is None or module.parent(statement) is not loop.body:
        raise Declined("the loop does not call predict() at each turn")
    if loop.asynchronous or any(module.within(node, loop) for kind in _LEAVES for node in module.all(kind)):
        raise Declined("the loop may end, or skip examples, before it has predicted all of them")


def _must_stay(module: SyntaxTree, call: PredictCall, loop: cst.For, through: str) -> None:
    """Decline where the loop may change the model, the array or the example before it predicts."""
    names = [node for node in module.all(cst.Name) if module.within(node, loop.body)]
    others = [node for node in names if not module.within(node, call.outer)]
    if any(node.value in {call.model, through} for node in others):
        raise Declined(f"the loop uses `{call.model}` or `{through}` otherwise, and may change it")
    used = {node.value for node in names if module.within(node, call.example)}
    row = used & {node.value for node in module.all(cst.Name) if module.within(node, loop.target)}
    begin = module.span(next(module.around(call.call, cst.SimpleStatementLine)))[0]
    if any(node.value in row and module.span(node)[0] < begin for node in others):
        raise Declined("the loop may change the example before it is predicted")


def _must_be_array(module: SyntaxTree, through: cst.Name) -> None:
    if not is_array(Rows(module).values, through):
        raise Declined(f"the file does not show that `{through.value}` is an array")


def _written(module: SyntaxTree, call: PredictCall, through: str) -> str:
    """Return the call of all examples; a batch size that was chosen for one is left out."""
    given = [one for one in call.call.args if one.keyword and one.keyword.value == "verbose"]
    verbose = "".join(f", verbose={module.written(one.value)}" for one in given)
    return f"{call.model}.predict({through}{verbose})"


EDITS = {"predict-once": predict_once}
