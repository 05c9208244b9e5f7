"""The edits that make a function once, in front of the loop, or trace it once for all shapes and numbers."""

from functools import partial

from tfdoctor.edits.execution import FUNCTION, undecorated
from tfdoctor.edits.kit import *
from tfdoctor.edits.loop_bodies import bound_in, loops_on, moved_up, must_be_the_same, own_loop
from tfdoctor.edits.splice import spliced

# Keras' optimizers whose first argument is the learning rate, which ``optimizer.learning_rate`` assigns.
OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD")
RATES = ("learning_rate", "lr")

# What needs a new compile, or sets the learning rate in another way, which compile resets.
_RECOMPILED = re.compile(r"\.trainable\s*=|\.add\(|\.pop\(|\bschedules\b|ReduceLROnPlateau|LearningRateScheduler")
# The same outside of the loop, where a function that the loop calls may do it.
_ELSEWHERE = re.compile(r"\.trainable\s*=|\bschedules\b|ReduceLROnPlateau|LearningRateScheduler")

# What may need a shape as numbers while a function is traced.
_NEEDS_SHAPE = re.compile(
    r"\.shape\b|\blen\(|\brange\(|\.get_shape\b|\bunstack\b|\bensure_shape\b|\bset_shape\b|\bsplit\b|\bTensorArray\b"
)
# Layers and options that may need it as well.
_LAYERS = re.compile(r"\b(?:Flatten|Lambda|Reshape|unroll|jit_compile)\b")

_OTHER_TYPES = re.compile(r"float64|double|float16|half|mixed_|set_floatx|complex")


def compile_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Move ``model.compile`` in front of its loop; a learning rate that changes is assigned in the loop.

    A recording may name the line of the fit() that traces the model again, in the loop that compiles it.
    """
    calls = module.methods("compile", line=line)
    if not calls and (loops := loops_on(module, line)):
        calls = [call for call in module.methods("compile") if module.within(call, max(loops, key=module.span))]
    call = only(calls, f"line {line} has no single call of compile()")
    part = module.parent(call)
    statement = module.parent(part) if isinstance(part, cst.Expr | cst.Assign) else None
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        raise Declined("the call is not a statement of its own")
    loop, values, model = own_loop(module, statement), Values(module), receiver(call)
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
    rate, text, instead = _changing_rate(module, values, call, changed), module.written(call), ""
    if rate and isinstance(optimizer := module.parent(rate), cst.Call):  # without the argument of the loop
        place, (start, end), begin = list(optimizer.args).index(rate), module.span(rate), module.span(call)[0]
        if place + 1 < len(optimizer.args):
            end = module.span(optimizer.args[place + 1])[0]
        elif place:
            start = module.span(optimizer.args[place - 1].value)[1]
        text = spliced(text, [Splice(start - begin, end - begin, 0, "")])
        instead = f"{model.value}.optimizer.learning_rate = {module.written(rate.value)}"
    return moved_up(module, statement, loop, text, instead)


def _only_rates(module: SyntaxTree, loop: Loop) -> set[str]:
    """Return the names of which a loop assigns the learning rate alone, which a compiled model reads anew."""
    targets = [node.target for node in module.inside(cst.AssignTarget, loop)]
    rates = [one for one in targets if isinstance(one, cst.Attribute) and one.attr.value in RATES]
    others = {name.value for name in module.inside(cst.Name, loop) if name in module.bound(name)}
    others |= {root_name(one) for one in targets if one not in rates}
    return {one.value.value for one in rates if isinstance(one.value, cst.Name)} - others


def _changing_rate(module: SyntaxTree, values: Values, call: cst.Call, changed: frozenset[str]) -> cst.Arg | None:
    """Return the optimizer's argument that is the learning rate, if it is another one in each turn.

    Nothing else that compile() is given may be.
    """
    rate, same = None, list[cst.BaseExpression]()
    for place, argument in enumerate(call.args):
        if argument.star:
            raise Declined("compile() is called with * or **")
        optimizer = argument.value
        of_compile = argument.keyword.value == "optimizer" if argument.keyword else place == 0
        if of_compile and isinstance(optimizer, cst.Call) and last_name(optimizer.func) in OPTIMIZERS:
            rates = [arg for arg in optimizer.args[:1] if arg.keyword is None and not arg.star]
            rates += [arg for arg in optimizer.args if arg.keyword and arg.keyword.value in RATES]
            if ".optimizers." in values.from_tensorflow(optimizer.func) and rates:
                rate = rates[0]
                same += [arg.value for arg in optimizer.args if arg is not rate]
                continue
        same.append(optimizer)
    for one in same:
        must_be_the_same(module, values, one, changed)
    try:
        must_be_the_same(module, values, rate.value, changed) if rate else None
    except Declined:
        return rate
    return None


def function_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Move the definition of a tf.function, or the call that makes one, in front of its loop."""
    loops = loops_on(module, line)
    if not loops:
        raise Declined(f"line {line} is in no loop of the file")
    made = [part for loop in loops for part in loop.body.body if _function_name(module, part)]
    statement = only(made, "the loop does not show one tf.function that it makes in each turn")
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
        must_be_the_same(module, Values(module), statement, changed)
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


def reduce_retracing(module: SyntaxTree, _: int, example: str) -> list[Splice]:
    """Give ``reduce_retracing=True`` to the tf.function that the rule's example names.

    Declines where the function, a function that it may call, a class or a layer needs a known shape.
    """
    function, decorator = _function(module, example)
    if found := _LAYERS.search(module.text):
        raise Declined(f"the file has `{found[0]}`, which may need a shape that is known")
    parts: list[cst.FunctionDef | cst.ClassDef] = [function, *module.all(cst.ClassDef)]
    for part in parts:
        if found := _NEEDS_SHAPE.search(module.written(part)):
            raise Declined(f"`{found[0]}` below line {module.line(part)} may need a shape that is known")
        called = {last_name(call.func) for call in module.inside(cst.Call, part)}
        parts += [f for f in module.all(cst.FunctionDef) if f.name.value in called and f not in parts]
    expression = decorator.decorator
    if not isinstance(expression, cst.Call):
        return [insert(module.span(expression)[1], "(reduce_retracing=True)")]
    if positional(expression):
        raise Declined(f"the decorator of {function.name.value}() has other arguments")
    if "input_signature" in named(expression):
        raise Declined(f"{function.name.value}() has an input_signature")
    return [setting(module, expression, "reduce_retracing", "True", instead_of=("None", "False"))]


def tensor_argument(module: SyntaxTree, _: int, example: str) -> list[Splice]:
    """Pass a tensor where the loop passes a floating-point number of Python that changes."""
    function, _decorator = _function(module, example)
    values = Values(module)
    if found := _OTHER_TYPES.search(module.text):
        raise Declined(f"the file has `{found[0]}`, whose type a tensor of float32 would not take")
    calls = [call for call in values.calls(function) if values.repeated(call)]
    names = [parameter.name.value for parameter in function.params.params]
    passed = {name: [given(function, call, name) for call in calls] for name in names}
    floats = {name: [one for one in passed[name] if one is not None and _is_float(values, one)] for name in names}
    changed = [name for name in names if floats[name]]
    name = only(changed, "the file does not show which argument is a floating-point number of Python")
    tensors = re.findall(r"tf\.constant\((\w+)\)", example)  # what gets other numbers, if the recording names it
    if other := next((n for n in tensors if n in names and n != name), ""):
        raise Declined(f"`{other}` changes too, and is no floating-point number by how it is written")
    for node in module.inside(cst.Name, function.body):  # arithmetic, and operands of TensorFlow's functions
        parent = module.parent(node)
        if node.value != name or (isinstance(parent, cst.Arg) and parent.keyword is node):
            continue
        plain = isinstance(parent, cst.BinaryOperation) or (isinstance(parent, cst.Arg) and parent.keyword is None)
        around = (call for call in module.around(node, cst.Call) if module.within(call, function.body))
        of_tensors = all(
            values.from_tensorflow(call.func).startswith("tensorflow.") and last_name(call.func)[:1].islower()
            for call in around
        )
        if not plain or not of_tensors or module.nearest(node, cst.Comparison):
            raise Declined(f"line {module.line(node)} uses `{name}` for more than arithmetic")
    splices = list[Splice]()
    for value in floats[name]:
        constant = module.imported("tensorflow.constant", value, "the call")
        kind, (start, end) = module.imported("tensorflow.float32", value, "the call"), module.span(value)
        splices += [insert(start, f"{constant}("), insert(end, f", {kind})")]
    return splices


def _function(module: SyntaxTree, example: str) -> tuple[cst.FunctionDef, cst.Decorator]:
    """Return the function that the example names, and the decorator that makes it a tf.function."""
    named = re.search(r"^(?:def |loss = )(\w+)\(", example, re.MULTILINE)
    found = Values(module).function(named[1]) if named else None
    function = known(found, "the function is not one of the file with a name of its own")
    decorators = [d for d in function.decorators if module.means(undecorated(d), FUNCTION)]
    return function, only(decorators, f"{function.name.value}() is not decorated with tf.function")


def _is_float(values: Values, value: cst.BaseExpression) -> bool:  # noqa: PLR0911 - one case a kind
    """Say whether an expression is a floating-point number of Python, by how it is written."""
    is_float = partial(_is_float, values)
    match value:
        case cst.Float() | cst.Call(func=cst.Name(value="float")):
            return True
        case cst.UnaryOperation(expression=inner):
            return is_float(inner)
        case cst.BinaryOperation(operator=cst.Divide(), left=left, right=right):
            return not any(map(values.is_tensor, (left, right)))
        case cst.BinaryOperation(left=left, right=right):
            return is_float(left) or is_float(right)
        case cst.IfExp(body=body, orelse=orelse):
            return is_float(body) and is_float(orelse)
        case cst.Call(func=cst.Name(value="min" | "max"), args=args):
            return any(is_float(argument.value) for argument in args)
        case cst.Name():
            return values.always(value, is_float)
        case _:
            return False


EDITS = {
    "compile-once": compile_once,
    "function-once": function_once,
    "reduce-retracing": reduce_retracing,
    "tensor-argument": tensor_argument,
}
