"""The edit that turns an eager training step into a graph, where the file shows that nothing else changes."""

import re

import libcst as cst

from tfdoctor.edits.eager import must_compile
from tfdoctor.edits.loop_bodies import loops_on
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Elsewhere, Splice, insert
from tfdoctor.edits.traceable import Traceable
from tfdoctor.edits.values import Values, given

FUNCTION = "tensorflow.function"

_DIFFERENT_SHAPES = re.compile(r"\bpadded_batch\b|\bbucket_by_sequence_length\b|\bragged\b|\bRagged")


def tf_function(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Decorate the function that is defined on a line, or those of the loop there that take gradients."""
    values = Values(module)
    defined = [f for f in module.all(cst.FunctionDef) if module.line(f) == line]
    taped = [f for f in defined if "GradientTape" in module.written(f)] or _taped(module, line)
    if any(values.repeated(function) for function in taped):
        raise Declined("the step is defined anew in a loop, and each would be traced anew")
    if unclear := next((f for f in taped if values.function(f.name.value) is not f), None):
        raise Declined(f"several functions are called {unclear.name.value}")
    return _in_graphs(module, values, taped)


def graph_of_call(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Decorate the function around a line that a loop calls, or the one that the line of a loop calls."""
    values = Values(module)
    around = [f for f in module.all(cst.FunctionDef) if module.covers(f.body, line)]
    found = [f for f in around if any(map(values.repeated, values.calls(f)))]
    found = found or [
        own
        for call in module.on(cst.Call, line)
        if isinstance(call.func, cst.Name)
        and values.repeated(call)
        and (own := values.function(call.func.value)) is not None
    ]
    if len(found) != 1:
        raise Elsewhere("the line is not in one function of the file that a loop calls")
    calls = module.inside(cst.Call, found[0])
    methods = [call.func.attr.value for call in calls if isinstance(call.func, cst.Attribute)]
    assigns = any(method.startswith("assign") for method in methods)  # a variable of TensorFlow
    if not assigns and not any(values.from_tensorflow(call.func) for call in calls):
        raise Elsewhere(f"{found[0].name.value}() runs no operations of TensorFlow")
    return _in_graphs(module, values, found)


def _in_graphs(module: SyntaxTree, values: Values, steps: list[cst.FunctionDef]) -> list[Splice]:
    """Decorate functions; decline unless a graph can hold them and gets only tensors and fixed objects."""
    if "functions_eagerly" in module.text:
        raise Declined("the file calls run_functions_eagerly")
    if _DIFFERENT_SHAPES.search(module.text):
        raise Declined("the batches differ in shape, and each new shape would be traced anew")
    _must_have_pure_layers(module, values)
    traceable = Traceable(module, batch_is_known=True)
    for step in steps:
        traceable.check(step)
        must_get_tensors(values, step)
    return [decorated(module, step) for step in steps]


def _taped(module: SyntaxTree, line: int) -> list[cst.FunctionDef]:
    """Return the functions that the loop around a line calls and in which a tape records."""
    loops = loops_on(module, line)
    if not loops:
        raise Declined("no loop is at the recorded line")
    loop = max(loops, key=module.line)  # the one that begins there, else the innermost around it
    called = {call.func.value for call in module.inside(cst.Call, loop) if isinstance(call.func, cst.Name)}
    taped = [
        function
        for function in module.all(cst.FunctionDef)
        if "GradientTape" in module.written(function) and function.name.value in called
    ]
    if "GradientTape" in module.written(loop):
        raise Declined("the step is written in the body of the loop and not in a function")
    if not taped:
        raise Declined("the loop calls no function of the file in which a GradientTape records")
    return taped


def _must_have_pure_layers(module: SyntaxTree, values: Values) -> None:
    """Decline where a layer or model that is not from Keras may need eager steps."""
    must_compile(module)
    if re.search(r"\bLambda\(", module.text):
        raise Declined("a Lambda layer calls a function that may need eager steps")
    traceable = Traceable(module, batch_is_known=True)
    for definition in module.all(cst.ClassDef):
        if values.keras_class(definition.name.value):
            traceable.check_class(definition)
    for target in module.all(cst.AssignTarget):
        changes = isinstance(target.target, cst.Attribute) and target.target.attr.value == "trainable"
        if changes and (values.repeated(target) or any(module.around(target, cst.FunctionDef))):
            raise Declined(
                f"line {module.line(target)} sets trainable, and a graph keeps the variables it began with"
            )


def must_get_tensors(values: Values, step: cst.FunctionDef) -> None:
    """Decline where a step may be called with values that would be traced anew, or whose type would differ."""
    calls, name = values.calls(step), step.name.value
    if not calls or step.params.star_kwarg or isinstance(step.params.star_arg, cst.Param):
        raise Declined(f"{name}() is not only called by its name")
    for call in calls:
        for parameter in (*step.params.params, *step.params.kwonly_params):
            value = given(step, call, parameter.name.value)
            if value is None or not _is_steady(values, value):
                raise Declined(
                    f"the file does not show that {name}() gets a tensor or a constant as {parameter.name.value}"
                )


def _is_steady(values: Values, value: cst.BaseExpression) -> bool:
    """Say whether an argument is a tensor, or the same object at each call."""
    if values.is_tensor(value):
        return True
    match value:
        case cst.Name(value="True" | "False" | "None"):
            return True
        case cst.Name():
            sources = values.sources(value)
            through = len(sources) == 1 and sources[0].whole
            parameter = any(isinstance(node, cst.Param) for node in values.module.bound(value))
            if parameter and through:
                return _is_steady(values, sources[0].value)
            return not values.why_not_fixed(value)
        case cst.BaseNumber() | cst.SimpleString():
            return True
        case _:
            return False


def decorated(module: SyntaxTree, function: cst.FunctionDef) -> Splice:
    """Insert the decorator above a function."""
    name = module.imported(FUNCTION, function, "the function")
    start = module.lines.start(module.span(function)[0])
    indent = module.lines.indent(start)
    return insert(start, f"{indent}@{name}{module.lines.newline}")
