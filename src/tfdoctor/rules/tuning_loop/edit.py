"""The edit that forgets the earlier models at the head of the loop that builds them."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.loop_bodies import Loop
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.values import Values

CLEAR = tuple(f"{package}.backend.clear_session" for package in ("keras", "tensorflow.keras", "tf_keras"))

# Methods that keep what they are given.
KEEPERS = frozenset(["add", "append", "appendleft", "extend", "insert", "put", "setdefault"])

# State that clear_session would reset, or graphs that it would remove; or it is called already.
_STATE = re.compile(
    r"clear_session|set_global_policy|set_dtype_policy|set_policy|mixed_precision|set_distribution|Strategy\("
    r"|disable_eager_execution|disable_v2_behavior|compat\.v1|placeholder\(|\bSession\("
)


def clear_session(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Call ``clear_session()`` first in the loop that builds the model whose fit() is on a line."""
    if found := _STATE.search(module.text):
        raise Declined(f"the file has `{found[0]}`, which clear_session() concerns")
    values = Values(module)
    model, made = _made(module, values, line)
    loop = _loop(module, values, made)
    for use in module.all(cst.Name):  # where the model is kept its memory stays, whatever Keras forgets
        if use.value == model.value and _keeps(module, use):
            raise Declined(f"line {module.line(use)} keeps the model, or gives it on")
    for call in module.all(cst.Call):  # their names would be given again
        inside = module.within(call, loop) or any(module.around(call, cst.FunctionDef))
        if not inside and (".layers." in values.from_tensorflow(call.func) or values.makes_model(call)):
            raise Declined(f"line {module.line(call)} makes a layer or a model outside of the loop")
    clear = next((name for origin in CLEAR if (name := module.name_of(origin, loop))), None)
    if clear is None:
        raise Declined("no clear import of Keras precedes the loop")
    if not isinstance(loop.body, cst.IndentedBlock):
        raise Declined("the body of the loop is on the line of the loop")
    start = module.lines.start(module.span(loop.body.body[0])[0])
    return [insert(start, f"{module.lines.indent(start)}{clear}(){module.lines.newline}")]


def _made(module: SyntaxTree, values: Values, line: int) -> tuple[cst.Name, cst.Call]:
    """Return the name of the model whose fit() is on a line, and the call that makes it."""
    models = [
        call.func.value
        for call in module.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and last_name(call.func) == "fit" and module.covers(call, line)
    ]
    model = models[0] if len(models) == 1 else None
    if not isinstance(model, cst.Name):
        raise Declined(f"line {line} has no single call of a model's fit()")
    sources = values.sources(model)
    made = sources[0].value if len(sources) == 1 and not sources[0].each else None
    if not isinstance(made, cst.Call) or not values.makes_model(made):
        raise Declined(f"the file does not show where `{model.value}` is made")
    return model, made


def _loop(module: SyntaxTree, values: Values, made: cst.CSTNode) -> Loop:
    """Return the innermost loop that makes the model: around it, or around the only call of its function."""
    function = next(module.around(made, cst.FunctionDef), None)
    loops: list[Loop] = [*module.around(made, cst.For), *module.around(made, cst.While)]
    own = [loop for loop in loops if function is None or module.within(loop, function)]
    if own:
        return max(own, key=module.span)
    calls = values.calls(function) if function else []
    if len(calls) != 1:
        raise Declined("the loop that makes the models is not in the file")
    return _loop(module, values, calls[0])


def _keeps(module: SyntaxTree, name: cst.Name) -> bool:
    parent = module.parent(name)
    call = module.parent(parent) if isinstance(parent, cst.Arg) else None
    keeper = isinstance(call, cst.Call) and last_name(call.func) in KEEPERS
    return keeper or isinstance(parent, cst.Assign | cst.Return | cst.Element | cst.DictElement)


EDITS: dict[str, Kind] = {"clear-session": clear_session}
