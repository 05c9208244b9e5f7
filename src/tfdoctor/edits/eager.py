"""Whether a step that runs eagerly may need to: by the recorded layers, and by what the file shows."""

import libcst as cst

from tfdoctor.edits.callbacks import meant
from tfdoctor.edits.module import SyntaxTree, dotted
from tfdoctor.edits.names import is_label
from tfdoctor.edits.splice import Declined
from tfdoctor.edits.traceable import Traceable
from tfdoctor.recording.program import ProgramRecord

_KERAS = frozenset(["keras", "tensorflow", "tf_keras"])


def must_be_traceable(program: ProgramRecord, module: SyntaxTree, _: str) -> None:
    """Decline unless a graph can hold all layers of the run, and its model: those of Keras, and the file's own."""
    traceable = Traceable(module, batch_is_known=False)
    if program.layers is None:
        raise Declined("the recording does not contain the layers of the model")
    for layer in program.layers:
        if layer.module.partition(".")[0] not in _KERAS:
            definition = traceable.values.keras_class(layer.kind)
            if layer.module != "__main__" or definition is None:
                raise Declined(f"layer {layer.kind} is not from Keras and may need eager steps")
            traceable.check_class(definition)
        if layer.kind == "Lambda":
            raise Declined("a Lambda layer calls a function that may need eager steps")


def must_compile(module: SyntaxTree) -> None:
    """Decline where functions that are not from Keras may be part of the step."""
    for call in module.all(cst.Call):
        values = [argument.value for argument in call.args]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "compile":
            if not all(_plain(module, value) for value in values):
                raise Declined("an argument of compile() may need eager steps")
        elif _makes_layer(module, call) and any(_takes_function(module, value) for value in values):
            raise Declined("a function given to a layer may need eager steps")


def _plain(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    """Say whether an expression consists of constants and names of TensorFlow and Keras."""
    if module.inside(cst.Lambda, value):
        return False
    for name in _roots(module, value):
        if _of_keras(module, name) or name.value in ("True", "False", "None"):
            continue
        assigned = meant(module, name)
        if assigned is None or not _plain(module, assigned):
            return False
    return True


def _makes_layer(module: SyntaxTree, call: cst.Call) -> bool:
    """Say whether a name in a ``layers`` package of Keras is called."""
    first, _, rest = dotted(call.func).partition(".")
    names = [f"{origin}.{rest}".split(".") for origin in module.imports.get(first, ())]
    return any("layers" in parts and parts[0] in _KERAS for parts in names)


def _takes_function(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    """Say whether a value may be, or hold, a function that is neither from Keras nor from numpy."""
    definitions = module.all(cst.FunctionDef) + module.all(cst.ClassDef)
    defined = {definition.name.value for definition in definitions}
    roots = {name.value for name in _roots(module, value) if not _of_keras(module, name)}
    imported = {name for name in roots if module.imports.get(name, {"numpy"}) != {"numpy"}}
    return bool(module.inside(cst.Lambda, value) or imported or roots & defined)


def _of_keras(module: SyntaxTree, name: cst.Name) -> bool:
    origins = module.imports.get(name.value)
    return origins is not None and all(origin.partition(".")[0] in _KERAS for origin in origins)


def _roots(module: SyntaxTree, value: cst.BaseExpression) -> list[cst.Name]:
    """Return the names in an expression, without those of attributes and of arguments."""
    return [name for name in module.inside(cst.Name, value) if not is_label(module, name)]
