"""The edit that turns an eager training step into a graph, where the file shows that nothing else changes.

``must_be_of_keras`` and ``must_compile`` ask the same of a Keras model that was compiled to run eagerly.
"""

from tfdoctor.edits.kit import *
from tfdoctor.edits.traceable import Traceable

_DIFFERENT_SHAPES = re.compile(r"\bpadded_batch\b|\bbucket_by_sequence_length\b|\bragged\b|\bRagged")


def tf_function(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Decorate the function that is defined on a line, or those of the loop there that take gradients.

    Declines unless a graph can hold them and they get only tensors and fixed objects.
    """
    defined = [f for f in module.functions if f.lineno == line]
    steps = [f for f in defined if "GradientTape" in module.written(f)] or _taped(module, line)
    if any(module.repeated(step) for step in steps):
        raise Declined("the step is defined anew in a loop, and each would be traced anew")
    if unclear := next((f for f in steps if module.function(f.name) is not f), None):
        raise Declined(f"several functions are called {unclear.name}")
    if "functions_eagerly" in module.text:
        raise Declined("the file calls run_functions_eagerly")
    if _DIFFERENT_SHAPES.search(module.text):
        raise Declined("the batches differ in shape, and each new shape would be traced anew")
    _must_have_pure_layers(module)
    traceable = Traceable(module)
    for step in steps:
        traceable.check(step)
        _must_get_tensors(module, step)
    splices = []
    for step in steps:
        name = module.imported("tensorflow.function", step, "the function")
        start = module.lines.start(module.span(step)[0])
        splices.append(insert(start, f"{module.lines.indent(start)}@{name}{module.lines.newline}"))
    return splices


def _taped(module: SyntaxTree, line: int) -> list[Function]:
    """Return the functions that the loop around a line calls and in which a tape records."""
    loops = module.loops_at(line)
    if not loops:
        raise Declined("no loop is at the recorded line")
    loop = max(loops, key=lambda loop: loop.lineno)  # the one that begins there, else the innermost around it
    called = {call.func.id for call in module.inside(ast.Call, loop) if isinstance(call.func, ast.Name)}
    taped = [
        function
        for function in module.functions
        if "GradientTape" in module.written(function) and function.name in called
    ]
    if "GradientTape" in module.written(loop):
        raise Declined("the step is written in the body of the loop and not in a function")
    if not taped:
        raise Declined("the loop calls no function of the file in which a GradientTape records")
    return taped


def _must_have_pure_layers(module: SyntaxTree) -> None:
    """Decline where a layer or model that is not from Keras may need eager steps."""
    must_compile(module)
    if re.search(r"\bLambda\(", module.text):
        raise Declined("a Lambda layer calls a function that may need eager steps")
    if own := [one.name for one in module.all(ast.ClassDef) if keras_class(module, one.name)]:
        raise Declined(f"the file defines {own[0]}, a part of the model that may need eager steps")
    for target in module.targets:
        changes = isinstance(target, ast.Attribute) and target.attr == "trainable"
        if changes and (module.repeated(target) or module.home(target)):
            raise Declined(f"line {target.lineno} sets trainable, and a graph keeps the variables it began with")


def _must_get_tensors(module: SyntaxTree, step: Function) -> None:
    """Decline where a step may be called with values that would be traced anew, or whose type would differ."""
    calls, name = module.uses(step), step.name
    if not calls or step.args.kwarg or step.args.vararg:
        raise Declined(f"{name}() is not only called by its name")
    for call in calls:
        for parameter in parameters(step):
            value = given(step, call, parameter.arg)
            if value is None or not _is_steady(module, value):
                raise Declined(
                    f"the file does not show that {name}() gets a tensor or a constant as {parameter.arg}"
                )


def _is_steady(module: SyntaxTree, value: ast.expr) -> bool:
    """Say whether an argument is a tensor, or the same object at each call."""
    if is_tensor(module, value):
        return True
    match value:
        case ast.Constant():
            return True
        case ast.Name():
            sources = module.sources(value)
            parameter = any(isinstance(node, ast.arg) for node in module.bound(value))
            if parameter and len(sources) == 1 and sources[0].whole:
                return _is_steady(module, sources[0].value)
            return not why_not_fixed(module, value)
        case _:
            return False


def must_be_of_keras(program: ProgramRecord, _: SyntaxTree, __: int, ___: str) -> None:
    """Decline unless all layers of the run are those of Keras, which a graph can hold."""
    if program.layers is None:
        raise Declined("the recording does not contain the layers of the model")
    for layer in program.layers:
        if layer.module.partition(".")[0] not in TENSORFLOW:
            raise Declined(f"layer {layer.kind} is not from Keras and may need eager steps")
        if layer.kind == "Lambda":
            raise Declined("a Lambda layer calls a function that may need eager steps")


def must_compile(module: SyntaxTree) -> None:
    """Decline where functions that are not from Keras may be part of the step."""
    for call in module.all(ast.Call):
        values = arguments(call)
        layer = any("layers" in parts and parts[0] in TENSORFLOW for parts in module.origins(call.func))
        if isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
            if not all(_plain(module, value) for value in values):
                raise Declined("an argument of compile() may need eager steps")
        elif layer and any(_takes_function(module, value) for value in values):
            raise Declined("a function given to a layer may need eager steps")


def _plain(module: SyntaxTree, value: ast.expr) -> bool:
    """Say whether an expression consists of constants and names of TensorFlow and Keras."""
    if module.inside(ast.Lambda, value):
        return False
    for name in module.inside(ast.Name, value):
        if _of_keras(module, name):
            continue
        assigned = module.passed_on(name)
        if assigned is None or not _plain(module, assigned):
            return False
    return True


def _takes_function(module: SyntaxTree, value: ast.expr) -> bool:
    """Say whether a value may be, or hold, a function that is neither from Keras nor from numpy."""
    defined = {definition.name for definition in (*module.functions, *module.all(ast.ClassDef))}
    roots = {name.id for name in module.inside(ast.Name, value) if not _of_keras(module, name)}
    imported = {name for name in roots if module.imports.get(name, {"numpy"}) != {"numpy"}}
    return bool(module.inside(ast.Lambda, value) or imported or roots & defined)


def _of_keras(module: SyntaxTree, name: ast.Name) -> bool:
    origins = module.origins(name)
    return bool(origins) and all(parts[0] in TENSORFLOW for parts in origins)
