"""Mixed precision: a policy above the first layer, and the output kept in float32.

The policy alone would make the model's output, and with it the loss, 16-bit. The edit is made only
where the file shows beyond doubt which layer is the last one.
"""

import re

import libcst as cst

from tfdoctor.edits.arguments import setting, written
from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, dotted, imports_above, last_name, named, positional
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.values import Values
from tfdoctor.rules.float32_matmul.own_layers import OwnLayers

# Layers that may be the last: each computes the input of the loss, which has to be float32.
OUTPUTS = frozenset(["Activation", "Conv1D", "Conv2D", "Conv2DTranspose", "Conv3D", "Dense", "Softmax"])

KERAS = ("keras", "tf_keras", "tensorflow.keras")

_POLICY = re.compile(r'set_global_policy\("(mixed_\w+)"\)')
_CHOSEN = re.compile(r"policy|floatx|\bLambda\b")


def mixed_precision(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Set the policy that the rule's example names, and ``dtype="float32"`` of the last layer."""
    policy = _POLICY.search(example)
    if policy is None:
        raise Declined("the finding does not name the policy")
    own, values = OwnLayers(module), Values(module)
    outputs = _outputs(module, own)
    if any(output is None or last_name(output.func) not in OUTPUTS for output in outputs):
        raise Declined("the file does not show which layer is the last one")
    last = [output for output in outputs if output is not None]
    _must_be_plain(module, values, policy[1], last)
    own.must_keep_types()
    first = next((node for node in module.tree.body if module.covers(node, line)), None)
    if first is None:
        raise Declined("the first layer is not at the recorded line")
    kept = [
        setting(module, output, "dtype", '"float32"', instead_of=('"float32"', "'float32'"))
        for output in last
        if not written(module, output, "dtype")
    ]
    return [_policy_line(module, values, first, policy[1]), *kept]


def _outputs(module: SyntaxTree, own: OwnLayers) -> list[cst.Call | None]:
    """Return the calls that make the last layer of each model."""
    models = [
        call
        for call in module.all(cst.Call)
        if last_name(call.func) in ("Sequential", "Model")
        and not any(module.within(call, definition) for definition in own.classes)
    ]
    plain = all(last_name(call.func) == "Sequential" for call in models)
    if not models and own.classes:
        return [own.output()]
    if len(models) != 1 and (not plain or own.classes or not models):
        raise Declined(f"the file creates {'several models' if models else 'no model from layers'}")
    return [_of_sequential(module, call) if plain else _of_functional(module, call) for call in models]


def _must_be_plain(module: SyntaxTree, values: Values, policy: str, outputs: list[cst.Call]) -> None:
    """Decline what a policy may break, or what the file chooses itself."""
    made = [call for call in module.all(cst.Call) if last_name(call.func)[:1].isupper()]
    typed = [call for call in made if call not in outputs and written(module, call, "dtype")]
    if _CHOSEN.search(module.text) or any(last_name(call.func) != "Input" for call in typed):
        raise Declined("the file sets data types or policies, or has a Lambda layer")
    for definition in module.all(cst.ClassDef):
        like = any(last_name(base.value).endswith(("Layer", "Model")) for base in definition.bases)
        if like and not values.keras_class(definition.name.value):
            raise Declined("the file defines layers of its own, which may not support 16-bit precision")
    if policy == "mixed_float16" and "GradientTape" in module.text:
        raise Declined("a custom training loop has to scale the loss for float16")


def _policy_line(module: SyntaxTree, values: Values, first: cst.CSTNode, policy: str) -> Splice:
    """Insert the line after the last import above the first layer, with an import where Keras has no name."""
    origins = {values.from_tensorflow(call.func) for call in module.all(cst.Call)}
    used = [name for name in KERAS if any(origin.startswith(f"{name}.layers.") for origin in origins)]
    if len(used) != 1:
        raise Declined(f"the file makes layers of {'more than one' if used else 'no'} Keras package")
    package = used[0]
    last, below = imports_above(module, first)
    if last is None:
        raise Declined("no import precedes the first layer")
    at, newline = module.lines.end(module.span(last)[1]), module.lines.newline
    name, added = module.name_of(f"{package}.mixed_precision", below), ""
    if name is None:
        known = {origin for origins in module.imports.values() for origin in origins}
        above = [origin for origin in known if f"{origin}.".startswith(f"{package.partition('.')[0]}.")]
        seen = any(module.name_of(origin, below) for origin in above)
        if not seen or re.search(r"\bmixed_precision\b", module.text):
            raise Declined("no clear import of keras precedes the first layer")
        name, added = "mixed_precision", f"{newline}from {package} import mixed_precision"
    return insert(at, f'{added}{newline}{newline}{name}.set_global_policy("{policy}")')


def _of_sequential(module: SyntaxTree, model: cst.Call) -> cst.Call | None:
    """Return the last layer of a list, where no ``add`` follows, or the layer added last.

    That is in the block that makes the model, where all others are added above it.
    """
    added = [
        call
        for call in module.all(cst.Call)
        if last_name(call.func) == "add" and len(call.args) == 1 and isinstance(call.args[0].value, cst.Call)
    ]
    if not added:
        match model.args[0].value if model.args else None:
            case cst.List(elements=[*_, cst.Element(value=cst.Call() as layer)]):
                return layer
            case _:
                return None
    last, assigned = added[-1], module.parent(model)
    targets = assigned.targets if isinstance(assigned, cst.Assign) else ()
    names = {module.written(target.target) for target in targets}
    receivers = {module.written(call.func.value) for call in added if isinstance(call.func, cst.Attribute)}
    here = {next(module.around(call, cst.FunctionDef), None) for call in (model, *added)}
    if (  # a call that is no statement may be repeated by a comprehension
        not all(isinstance(module.parent(call), cst.Expr) for call in added)
        or len(here) != 1
        or receivers != names
        or _block(module, model) is not _block(module, last)
        or module.span(added[0]) < module.span(model)
    ):
        return None
    newest = last.args[0].value
    return newest if isinstance(newest, cst.Call) else None


def _of_functional(module: SyntaxTree, model: cst.Call) -> cst.Call | None:
    """Return the layer whose call made the only output, the value last assigned to its name in the same block."""
    made = named(model).get("outputs") or next(iter(positional(model)[1:]), None)
    if isinstance(made, cst.Name):
        before = [
            assignment
            for assignment in module.all(cst.Assign)
            if module.written(assignment.targets[0].target) == made.value
            and module.span(assignment) < module.span(model)
        ]
        same = bool(before) and _block(module, before[-1]) is _block(module, model)
        made = before[-1].value if same else None
    match made:
        case cst.Call(func=cst.Call() as layer) if not _raw(module, model):
            return layer
        case _:
            return None


def _raw(module: SyntaxTree, model: cst.Call) -> bool:
    """Say whether TensorFlow's own operations are between inputs and model, or in functions used there."""
    every, block = module.all(cst.Call), _block(module, model)
    calls = [call for call in every if _block(module, call) is block]
    first = next((call for call in calls if last_name(call.func) == "Input"), None)
    if first is None:
        return True
    between = [call for call in calls if module.span(first) < module.span(call) < module.span(model)]
    used = {last_name(call.func) for call in between}
    within = [call for call in every if any(f.name.value in used for f in module.around(call, cst.FunctionDef))]
    tensorflow = module.name_of("tensorflow", model)
    names = [dotted(call.func) for call in (*between, *within)]
    return any(name.startswith(f"{tensorflow}.") and not name.startswith(f"{tensorflow}.keras.") for name in names)


def _block(module: SyntaxTree, node: cst.CSTNode) -> cst.CSTNode:
    """Return the block of statements around a node, also one of a single line: ``for _ in x: model.add(y)``."""
    one_line = next(module.around(node, cst.SimpleStatementSuite), None)
    return one_line or next(module.around(node, cst.IndentedBlock), module.tree)


EDITS: dict[str, Kind] = {"mixed-precision": mixed_precision}
