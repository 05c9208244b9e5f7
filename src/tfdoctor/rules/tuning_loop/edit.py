"""The edit that forgets the earlier models at the head of the loop that builds them."""

from tfdoctor.edits.kit import *

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
    values, fits = Values(module), module.methods("fit", line=line)
    model = receiver(fits[0]) if len(fits) == 1 else None
    if not isinstance(model, cst.Name):
        raise Declined(f"line {line} has no single call of a model's fit()")
    sources = values.sources(model)
    made = sources[0].value if len(sources) == 1 and not sources[0].each else None
    if not isinstance(made, cst.Call) or not values.makes_model(made):
        raise Declined(f"the file does not show where `{model.value}` is made")
    loop = _loop(module, values, made)
    for use in module.all(cst.Name):  # where the model is kept its memory stays, whatever Keras forgets
        parent = module.parent(use)
        keeper = isinstance(parent, cst.Arg) and module.parent(parent)
        kept = isinstance(keeper, cst.Call) and last_name(keeper.func) in KEEPERS
        kept = kept or isinstance(parent, cst.Assign | cst.Return | cst.Element | cst.DictElement)
        if kept and use.value == model.value:
            raise Declined(f"line {module.line(use)} keeps the model, or gives it on")
    for call in module.all(cst.Call):  # their names would be given again
        inside = module.within(call, loop) or module.nearest(call, cst.FunctionDef)
        if not inside and (".layers." in values.from_tensorflow(call.func) or values.makes_model(call)):
            raise Declined(f"line {module.line(call)} makes a layer or a model outside of the loop")
    names = filter(None, (module.name_of(origin, loop) for origin in CLEAR))
    clear = known(next(names, None), "no clear import of Keras precedes the loop")
    if not isinstance(loop.body, cst.IndentedBlock):
        raise Declined("the body of the loop is on the line of the loop")
    start = module.lines.start(module.span(loop.body.body[0])[0])
    return [insert(start, f"{module.lines.indent(start)}{clear}(){module.lines.newline}")]


def _loop(module: SyntaxTree, values: Values, made: cst.CSTNode) -> Loop:
    """Return the innermost loop that makes the model: around it, or around the only call of its function."""
    function = module.nearest(made, cst.FunctionDef)
    loops: list[Loop] = [*module.around(made, cst.For), *module.around(made, cst.While)]
    own = [loop for loop in loops if function is None or module.within(loop, function)]
    if own:
        return max(own, key=module.span)
    calls = values.calls(function) if function else []
    return _loop(module, values, only(calls, "the loop that makes the models is not in the file"))


EDITS = {"clear-session": clear_session}
