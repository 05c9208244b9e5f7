"""The edits that stop a tf.function from being traced anew: for each shape, and for each Python number."""

import re

import libcst as cst

from tfdoctor.edits.arguments import setting
from tfdoctor.edits.execution import FUNCTION, undecorated
from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.values import Values, given

CONSTANT, FLOAT32 = "tensorflow.constant", "tensorflow.float32"

_NAMED = re.compile(r"^(?:def |loss = )(\w+)\(", re.MULTILINE)  # The function in the examples of the rule
# The parameters in them that get other numbers, where the recording has their names.
_TENSORS = re.compile(r"tf\.constant\((\w+)\)")
# What may need a shape as numbers while a function is traced.
_NEEDS_SHAPE = re.compile(
    r"\.shape\b|\blen\(|\brange\(|\.get_shape\b|\bunstack\b|\bensure_shape\b|\bset_shape\b|\bsplit\b|\bTensorArray\b"
)
# Layers and options that may need it as well.
_LAYERS = re.compile(r"\b(?:Flatten|Lambda|Reshape|unroll|jit_compile)\b")

_OTHER_TYPES = re.compile(r"float64|double|float16|half|mixed_|set_floatx|complex")


def reduce_retracing(module: SyntaxTree, _: int, example: str) -> list[Splice]:
    """Give ``reduce_retracing=True`` to the tf.function that the rule's example names."""
    function, decorator = _function(module, example)
    _must_not_need_shapes(module, function)
    expression = decorator.decorator
    if not isinstance(expression, cst.Call):
        return [insert(module.span(expression)[1], "(reduce_retracing=True)")]
    if any(argument.keyword is None for argument in expression.args):
        raise Declined(f"the decorator of {function.name.value}() has other arguments")
    named = {argument.keyword.value for argument in expression.args if argument.keyword}
    if "input_signature" in named:
        raise Declined(f"{function.name.value}() has an input_signature")
    return [setting(module, expression, "reduce_retracing", "True", instead_of=("None", "False"))]


def _must_not_need_shapes(module: SyntaxTree, function: cst.FunctionDef) -> None:
    """Decline where the function, a function that it may call, a class or a layer needs a known shape."""
    if found := _LAYERS.search(module.text):
        raise Declined(f"the file has `{found[0]}`, which may need a shape that is known")
    parts: list[cst.FunctionDef | cst.ClassDef] = [function, *module.all(cst.ClassDef)]
    for part in parts:
        if found := _NEEDS_SHAPE.search(module.written(part)):
            line = module.line(part)
            raise Declined(f"`{found[0]}` below line {line} may need a shape that is known")
        called = {last_name(call.func) for call in module.all(cst.Call) if module.within(call, part)}
        own = [f for f in module.all(cst.FunctionDef) if f.name.value in called]
        parts += [each for each in own if each not in parts]


def tensor_argument(module: SyntaxTree, _: int, example: str) -> list[Splice]:
    """Pass a tensor where the loop passes a floating-point number of Python that changes."""
    function, _decorator = _function(module, example)
    values = Values(module)
    if found := _OTHER_TYPES.search(module.text):
        raise Declined(f"the file has `{found[0]}`, whose type a tensor of float32 would not take")
    calls = [call for call in values.calls(function) if values.repeated(call)]
    changed = {}
    names = [parameter.name.value for parameter in function.params.params]
    for name in names:
        passed = (given(function, call, name) for call in calls)
        if floats := [value for value in passed if value is not None and _is_float(values, value)]:
            changed[name] = floats
    if len(changed) != 1:
        raise Declined("the file does not show which argument is a floating-point number of Python")
    if other := next((n for n in _TENSORS.findall(example) if n in names and n not in changed), ""):
        raise Declined(f"`{other}` changes too, and is no floating-point number by how it is written")
    name, passed_floats = next(iter(changed.items()))
    _must_only_compute(module, values, function, name)
    return [splice for value in passed_floats for splice in _converted(module, value)]


def _function(module: SyntaxTree, example: str) -> tuple[cst.FunctionDef, cst.Decorator]:
    """Return the function that the example names, and the decorator that makes it a tf.function."""
    named = _NAMED.search(example)
    function = Values(module).function(named[1]) if named else None
    if function is None:
        raise Declined("the function is not one of the file with a name of its own")
    decorators = [d for d in function.decorators if module.means(undecorated(d), FUNCTION)]
    if len(decorators) != 1:
        raise Declined(f"{function.name.value}() is not decorated with tf.function")
    return function, decorators[0]


def _is_float(values: Values, value: cst.BaseExpression) -> bool:  # noqa: PLR0911 - one case a kind
    """Say whether an expression is a floating-point number of Python, by how it is written."""
    match value:
        case cst.Float():
            return True
        case cst.UnaryOperation(expression=inner):
            return _is_float(values, inner)
        case cst.BinaryOperation(operator=cst.Divide(), left=left, right=right):
            return not any(map(values.is_tensor, (left, right)))
        case cst.BinaryOperation(left=left, right=right):
            return _is_float(values, left) or _is_float(values, right)
        case cst.IfExp(body=body, orelse=orelse):
            return _is_float(values, body) and _is_float(values, orelse)
        case cst.Call(func=cst.Name(value="float")):
            return True
        case cst.Call(func=cst.Name(value="min" | "max"), args=args):
            return any(_is_float(values, argument.value) for argument in args)
        case cst.Name():
            sources = values.sources(value)
            return bool(sources) and all(
                not source.each and source.place < 0 and _is_float(values, source.value) for source in sources
            )
        case _:
            return False


def _must_only_compute(module: SyntaxTree, values: Values, function: cst.FunctionDef, name: str) -> None:
    """Decline uses of a parameter other than in arithmetic and as an operand of TensorFlow's functions."""
    for node in module.inside(cst.Name, function.body):
        parent = module.parent(node)
        if node.value != name or (isinstance(parent, cst.Arg) and parent.keyword is node):
            continue
        operand = isinstance(parent, cst.BinaryOperation)
        argument = isinstance(parent, cst.Arg) and parent.keyword is None
        known = all(
            values.from_tensorflow(call.func).startswith("tensorflow.") and last_name(call.func)[:1].islower()
            for call in module.around(node, cst.Call)
            if module.within(call, function.body)
        )
        tested = any(True for _ in module.around(node, cst.Comparison))
        if not (operand or argument) or not known or tested:
            raise Declined(f"line {module.line(node)} uses `{name}` for more than arithmetic")


def _converted(module: SyntaxTree, value: cst.BaseExpression) -> list[Splice]:
    constant, kind = (module.name_of(origin, value) for origin in (CONSTANT, FLOAT32))
    if constant is None or kind is None:
        raise Declined("no clear import of tensorflow precedes the call")
    start, end = module.span(value)
    return [insert(start, f"{constant}("), insert(end, f", {kind})")]
