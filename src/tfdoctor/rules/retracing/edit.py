"""The edits that make a function once: compile in front of the loop, and tf.function in front of it."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.execution import FUNCTION, undecorated
from tfdoctor.edits.loop_bodies import Loop, bound_in, moved_up, must_be_the_same, own_loop
from tfdoctor.edits.module import SyntaxTree, last_name, root_name
from tfdoctor.edits.splice import Declined, Splice, spliced
from tfdoctor.edits.values import Values
from tfdoctor.rules.retracing.signatures import reduce_retracing, tensor_argument

# Keras' optimizers whose first argument is the learning rate, which ``optimizer.learning_rate`` assigns.
OPTIMIZERS = frozenset(
    ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD"]
)

RATES = ("learning_rate", "lr")

# What needs a new compile, or sets the learning rate in another way, which compile resets.
_RECOMPILED = re.compile(r"\.trainable\s*=|\.add\(|\.pop\(|\bschedules\b|ReduceLROnPlateau|LearningRateScheduler")
# The same outside of the loop, where a function that the loop calls may do it.
_ELSEWHERE = re.compile(r"\.trainable\s*=|\bschedules\b|ReduceLROnPlateau|LearningRateScheduler")


def compile_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Move ``model.compile`` in front of its loop; a learning rate that changes is assigned in the loop."""
    call, statement = _compile(module, line)
    loop, values = own_loop(module, statement), Values(module)
    model = call.func.value if isinstance(call.func, cst.Attribute) else None
    if not isinstance(model, cst.Name):
        raise Declined("the model is not a name of the file")
    changed = bound_in(module, loop) - {model.value} - _only_rates(module, loop)
    bound, made = module.bound(model), values.object(model)
    if not bound or any(module.within(node, loop) for node in bound):
        raise Declined(f"`{model.value}` is another model in each turn of the loop")
    if not isinstance(made, cst.Call) or not values.makes_model(made):
        raise Declined(f"the file does not show that `{model.value}` is a Keras model")
    if found := _RECOMPILED.search(module.written(loop)) or _ELSEWHERE.search(module.text):
        raise Declined(f"the file has `{found[0].strip()}`, after which the model may have to be compiled again")
    rate = None
    for place, argument in enumerate(call.args):
        if argument.star:
            raise Declined("compile() is called with * or **")
        if argument.keyword.value == "optimizer" if argument.keyword else place == 0:
            rate = _changing_rate(module, values, argument.value, changed)
        else:
            must_be_the_same(module, values, argument.value, changed)
    instead = f"{model.value}.optimizer.learning_rate = {module.written(rate.value)}" if rate else ""
    return moved_up(module, statement, loop, _without(module, call, rate), instead)


def _only_rates(module: SyntaxTree, loop: Loop) -> frozenset[str]:
    """Return the names of which a loop assigns the learning rate alone, which a compiled model reads anew."""
    rates, others = set[str](), {name.value for name in module.inside(cst.Name, loop) if name in module.bound(name)}
    for node in module.inside(cst.AssignTarget, loop):
        match node.target:
            case cst.Attribute(attr=attr, value=of) if attr.value in RATES:
                rates |= {of.value} if isinstance(of, cst.Name) else set()
            case target:
                others.add(root_name(target))
    return frozenset(rates - others)


def _compile(module: SyntaxTree, line: int) -> tuple[cst.Call, cst.SimpleStatementLine]:
    """Return the only call of compile() on a line, else of the loop around it, and the statement that it is.

    The statement stands alone on its line. A recording may name the line of the fit() that traces the model again.
    """
    every = [
        call
        for call in module.all(cst.Call)
        if isinstance(call.func, cst.Attribute) and last_name(call.func) == "compile"
    ]
    innermost = max(_loops(module, line), key=module.span, default=None)
    inside = [call for call in every if innermost is not None and module.within(call, innermost)]
    calls = [call for call in every if module.covers(call, line)] or inside
    if len(calls) != 1:
        raise Declined(f"line {line} has no single call of compile()")
    part = module.parent(calls[0])
    statement = module.parent(part) if isinstance(part, cst.Expr | cst.Assign) else None
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        raise Declined("the call is not a statement of its own")
    return calls[0], statement


def _loops(module: SyntaxTree, line: int) -> list[Loop]:
    return [*module.on(cst.For, line), *module.on(cst.While, line)]


def _changing_rate(
    module: SyntaxTree, values: Values, optimizer: cst.BaseExpression, changed: frozenset[str]
) -> cst.Arg | None:
    """Return the argument that is the learning rate, if it is another one in each turn; nothing else may be."""
    rate = _rate(values, optimizer) if isinstance(optimizer, cst.Call) and optimizer.args else None
    if not isinstance(optimizer, cst.Call) or rate is None:
        must_be_the_same(module, values, optimizer, changed)
        return None
    for argument in optimizer.args:
        if argument is not rate:
            must_be_the_same(module, values, argument.value, changed)
    try:
        must_be_the_same(module, values, rate.value, changed)
    except Declined:
        return rate
    return None


def _rate(values: Values, optimizer: cst.Call) -> cst.Arg | None:
    """Return the argument of one of Keras' optimizers that is its learning rate."""
    if last_name(optimizer.func) not in OPTIMIZERS or ".optimizers." not in values.from_tensorflow(optimizer.func):
        return None
    named = [arg for arg in optimizer.args if arg.keyword and arg.keyword.value in RATES]
    first = optimizer.args[0]
    return first if first.keyword is None and not first.star else next(iter(named), None)


def _without(module: SyntaxTree, call: cst.Call, rate: cst.Arg | None) -> str:
    """Return the call as it is written, without the argument that is assigned in the loop."""
    optimizer = module.parent(rate) if rate else None
    if rate is None or not isinstance(optimizer, cst.Call):
        return module.written(call)
    place, (start, end), begin = list(optimizer.args).index(rate), module.span(rate), module.span(call)[0]
    if place + 1 < len(optimizer.args):
        end = module.span(optimizer.args[place + 1])[0]
    elif place:
        start = module.span(optimizer.args[place - 1].value)[1]
    return spliced(module.written(call), [Splice(start - begin, end - begin, 0, "")])


def function_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Move the definition of a tf.function, or the call that makes one, in front of its loop."""
    loops = _loops(module, line)
    if not loops:
        raise Declined(f"line {line} is in no loop of the file")
    made = [part for loop in loops for part in loop.body.body if _function_name(module, part)]
    if len(made) != 1:
        raise Declined("the loop does not show one tf.function that it makes in each turn")
    statement, values = made[0], Values(module)
    loop, name, own = own_loop(module, statement), _function_name(module, statement), frozenset[str]()
    targets: list[tuple[cst.CSTNode, str]] = [
        *((node, module.written(node.target)) for node in module.inside(cst.AssignTarget, loop)),
        *((node, node.name.value) for node in module.inside(cst.FunctionDef, loop)),
    ]
    if any(bound == name and not module.within(node, statement) for node, bound in targets):
        raise Declined(f"`{name}` is assigned elsewhere in the loop")
    if isinstance(statement, cst.FunctionDef):  # its parameters, and the names that it binds for itself
        parameters = (node.name.value for node in module.inside(cst.Param, statement))
        own = bound_in(module, statement.body) | {*parameters}
    changed = bound_in(module, loop) - {name} - own
    if re.search(r"\bglobal\b|\bnonlocal\b|\bVariable\(", module.written(statement)):
        raise Declined("the function binds names outside of itself, or makes variables")
    if not isinstance(statement, cst.FunctionDef):
        must_be_the_same(module, values, statement, changed)
    elif found := next((one.value for one in module.inside(cst.Name, statement) if one.value in changed), ""):
        raise Declined(f"`{found}` is another one in each turn of the loop")
    return moved_up(module, statement, loop)


def _function_name(module: SyntaxTree, part: cst.CSTNode) -> str:
    """Return the name of the tf.function that a statement makes; "" where it makes none."""
    match part:
        case cst.FunctionDef(name=name, decorators=decorators):
            made = any(module.means(undecorated(each), FUNCTION) for each in decorators)
            return name.value if made else ""
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as name)], value=cst.Call(func=func))]
        ):
            return name.value if module.means(func, FUNCTION) else ""
        case _:
            return ""


EDITS: dict[str, Kind] = {
    "compile-once": compile_once,
    "function-once": function_once,
    "reduce-retracing": reduce_retracing,
    "tensor-argument": tensor_argument,
}
