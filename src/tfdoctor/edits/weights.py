"""The edit that updates a model's weights in place, where a function copies them to NumPy and back.

``get_weights`` copies every weight to NumPy, and ``set_weights`` copies all of them back. A graph of assignments
computes the same from ``model.weights``, which are in the same order
(https://keras.io/api/models/model_saving_apis/weights_saving_and_loading/).
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from tfdoctor.edits.graph import decorated, must_get_tensors
from tfdoctor.edits.module import SyntaxTree, is_docstring
from tfdoctor.edits.splice import Declined, Elsewhere, Splice
from tfdoctor.edits.values import Values
from tfdoctor.terms.record import Record

# Of a mixture in a loop: both lists of weights, the loop over their numbers, and ``set_weights``.
LOOP_STATEMENTS = 4


class Mixture(Record):
    """``target.set_weights([value for names in zip(a.get_weights(), b.get_weights())])``."""

    target: str
    models: tuple[cst.BaseExpression, ...]
    names: tuple[str, ...]
    value: cst.BaseExpression
    written: str  # the value by these names


def assign_weights(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Write assignments for the only statements of a function around a line, or of one that the line calls."""
    values = Values(module)
    function = _function(module, values, line)
    if "_weights(" not in module.written(function):
        raise Elsewhere(f"{function.name.value}() neither reads nor sets weights")
    body = [part for part in function.body.body if isinstance(part, cst.BaseStatement) and not is_docstring(part)]
    mixed = _mixed(module, body)
    if mixed is None or function.decorators:
        raise Declined("the function does more than mix the weights of two models in one list")
    _must_be_arithmetic(values, function, mixed)
    must_get_tensors(values, function)
    start, end = module.span(body[0])[0], module.span(body[-1])[1]
    if "#" in module.text[start:end]:
        raise Declined("a comment stands between the statements")
    return [decorated(module, function), Splice(start, end, 0, _assignments(module, mixed, start))]


def _function(module: SyntaxTree, values: Values, line: int) -> cst.FunctionDef:
    around = [f for f in module.all(cst.FunctionDef) if module.covers(f.body, line)]
    called = [
        values.function(call.func.value) for call in module.on(cst.Call, line) if isinstance(call.func, cst.Name)
    ]
    found = [f for f in around or called if f is not None and f is values.function(f.name.value)]
    if len(found) != 1:
        raise Elsewhere("the line is not in one function of the file with a name of its own")
    return found[0]


def _assigned(part: cst.CSTNode) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """Return the target and the value of a line that assigns a value to one target."""
    match part:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]):
            return target, value
        case _:
            return None


def _set(module: SyntaxTree, part: cst.BaseStatement) -> tuple[str, cst.BaseExpression | None] | None:
    """Return ``model`` and the value of ``model.set_weights(value)``; no value where there is not one."""
    match part:
        case cst.SimpleStatementLine(
            body=[
                cst.Expr(
                    value=cst.Call(func=cst.Attribute(value=model, attr=cst.Name(value="set_weights")), args=given)
                )
            ]
        ):
            return module.written(model), given[0].value if len(given) == 1 else None
        case _:
            return None


def _mixed(module: SyntaxTree, body: Sequence[cst.BaseStatement]) -> Mixture | None:
    """Return what the statements mix: in a loop, or a list that has a name or is written in the call."""
    called = _set(module, body[-1]) if body else None
    if called is None:
        return None
    target, given = called
    if len(body) == LOOP_STATEMENTS:
        return _of_loop(module, body, target, given)
    made = _assigned(body[0])
    match len(body), made:
        case 1, _:
            return _of_list(module, target, given)
        case 2, (name, value) if given and module.written(given) == module.written(name):
            return _of_list(module, target, value)
        case _:
            return None


def _of_list(module: SyntaxTree, target: str, made: cst.BaseExpression | None) -> Mixture | None:
    match made:
        case cst.ListComp(
            elt=value,
            for_in=cst.CompFor(
                target=cst.Tuple(elements=names),
                iter=cst.Call(func=cst.Name(value="zip"), args=arguments),
                ifs=[],
                inner_for_in=None,
            ),
        ) if len(names) == len(arguments):
            models = tuple(_weights_of(argument.value) for argument in arguments)
            written = tuple(module.written(name.value) for name in names)
            known = [model for model in models if model is not None]
            own = target in [module.written(model) for model in known]
            return (
                Mixture(target, tuple(known), written, value, module.written(value))
                if own and len(known) == len(models)
                else None
            )
        case _:
            return None


def _of_loop(
    module: SyntaxTree, body: Sequence[cst.BaseStatement], target: str, given: cst.BaseExpression | None
) -> Mixture | None:
    """Return what ``for i in range(len(a)): a[i] = b[i] * 0.1 + a[i] * 0.9`` mixes."""
    lists: dict[str, cst.BaseExpression] = {}
    for weights, value in filter(None, map(_assigned, body[:2])):
        model = _weights_of(value)
        if isinstance(weights, cst.Name) and model is not None:
            lists[weights.value] = model
    match body[2]:
        case cst.For(target=cst.Name(value=at), body=cst.IndentedBlock(body=[turn]), orelse=None) as loop if (
            changed := _assigned(turn)
        ):
            name = module.written(changed[0]).removesuffix(f"[{at}]")
        case _:
            return None
    through = [f"range(len({each}))" for each in lists]
    if len(lists) != 2 or name not in lists or module.written(loop.iter) not in through:  # noqa: PLR2004
        return None
    if given is None or module.written(given) != name or module.written(lists[name]) != target:
        return None
    return _with_new_names(module, lists, name, at, changed[1])


def _with_new_names(
    module: SyntaxTree, lists: Mapping[str, cst.BaseExpression], changed: str, at: str, value: cst.BaseExpression
) -> Mixture | None:
    """Return a mixture with a name for each ``weights[i]`` that the file does not have yet."""
    names = {name: f"{module.written(model)}_variable" for name, model in lists.items()}
    written = module.written(value)
    for name, new in names.items():
        written = re.sub(rf"\b{name}\[{at}\]", new, written)
    taken = any(re.search(rf"\b{new}\b", module.text) for new in names.values())
    left = any(re.search(rf"\b{name}\b", written) for name in (*lists, at))
    if taken or left:
        return None
    target = module.written(lists[changed])
    return Mixture(target, tuple(lists.values()), tuple(names.values()), value, written)


def _weights_of(value: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return ``model`` of ``model.get_weights()``."""
    match value:
        case cst.Call(func=cst.Attribute(value=cst.Name() as model, attr=cst.Name(value="get_weights")), args=[]):
            return model
        case _:
            return None


def _must_be_arithmetic(values: Values, function: cst.FunctionDef, mixed: Mixture) -> None:
    """Decline where the mixture is more than arithmetic of the two weights and fixed numbers."""
    allowed = cst.BinaryOperation | cst.Name | cst.BaseNumber
    if not all(isinstance(node, allowed) for node in _parts(cst.parse_expression(mixed.written))):
        raise Declined("the weights are computed with more than arithmetic")
    names = [node for node in _parts(mixed.value) if isinstance(node, cst.Name)]
    models = [model for model in mixed.models if isinstance(model, cst.Name)]
    parameters = {parameter.name.value for parameter in function.params.params}
    for name in (*names, *models):
        if name.value not in (*mixed.names, *parameters) and values.why_not_fixed(name):
            raise Declined(f"`{name.value}` is not fixed: {values.why_not_fixed(name)}")


def _parts(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    yield value
    if isinstance(value, cst.BinaryOperation):
        yield from _parts(value.left)
        yield from _parts(value.right)


def _assignments(module: SyntaxTree, mixed: Mixture, start: int) -> str:
    """Return the loop over the variables, indented as what it replaces."""
    indent, newline = module.lines.indent(start), module.lines.newline
    unit = "\t" if indent.startswith("\t") else "    "
    models = [module.written(model) for model in mixed.models]
    changed = mixed.names[models.index(mixed.target)]
    weights = ", ".join(f"{model}.weights" for model in models)
    return (
        f"for {', '.join(mixed.names)} in zip({weights}):{newline}{indent}{unit}{changed}.assign({mixed.written})"
    )
