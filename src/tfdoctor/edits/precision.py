"""Mixed precision: a policy above the first layer, and the output kept in float32.

The policy alone would make the model's output, and with it the loss, 16 bit. The edit is made only
where the file shows beyond doubt which layer is the last one.
"""

import re
from itertools import chain

import libcst as cst

from tfdoctor.edits.arguments import setting, written
from tfdoctor.edits.module import SyntaxTree, dotted, last_name
from tfdoctor.edits.splice import Declined, Splice, insert

OUTPUTS = frozenset(
    ["Activation", "Conv1D", "Conv2D", "Conv2DTranspose", "Conv3D", "Dense", "Softmax"]
)
"""Layers that may be the last: each computes what the loss gets, so float32 there is what counts."""

KERAS = ("keras", "tf_keras", "tensorflow.keras")

_POLICY = re.compile(r'set_global_policy\("(mixed_\w+)"\)')
_CHOSEN = re.compile(r"policy|floatx|\bLambda\b")


def mixed_precision(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Set the policy that the rule's example names, and ``dtype="float32"`` of the last layer."""
    policy = _POLICY.search(example)
    if policy is None:
        raise Declined("the rule does not say which policy")
    output = _output(module)
    _must_be_plain(module, policy[1], output)
    first = next((each for each in module.tree.body if module.covers(each, line)), None)
    if first is None:
        raise Declined("the first layer is not written there")
    kept = setting(module, output, "dtype", '"float32"', instead_of=('"float32"', "'float32'"))
    return [
        _policy_line(module, first, policy[1]),
        *([] if written(module, output, "dtype") else [kept]),
    ]


def _must_be_plain(module: SyntaxTree, policy: str, output: cst.Call) -> None:
    """Decline what a policy may break, or what somebody has thought about before."""
    made = [each for each in module.all(cst.Call) if last_name(each.func)[:1].isupper()]
    typed = [each for each in made if each is not output and written(module, each, "dtype")]
    if _CHOSEN.search(module.text) or any(last_name(each.func) != "Input" for each in typed):
        raise Declined("the file sets types or policies itself, or has a Lambda layer")
    bases = [last_name(base.value) for kind in module.all(cst.ClassDef) for base in kind.bases]
    if any(base.endswith(("Layer", "Model")) for base in bases):
        raise Declined("the file has layers of its own, which may not be fit for 16 bit")
    if policy == "mixed_float16" and "GradientTape" in module.text:
        raise Declined("a training loop of one's own has to scale the loss for float16")


def _policy_line(module: SyntaxTree, first: cst.CSTNode, policy: str) -> Splice:
    """Insert the line after the last import above the first layer."""
    imports = [
        each
        for each in module.tree.body
        if isinstance(each, cst.SimpleStatementLine)
        and any(isinstance(part, cst.Import | cst.ImportFrom) for part in each.body)
        and module.span(each) < module.span(first)
    ]
    body = list(module.tree.body)
    below = body[body.index(imports[-1]) + 1] if imports else first  # an import may stand in a try
    keras = next(filter(None, (module.name_of(origin, below) for origin in _origins(module))), None)
    if not imports or keras is None:
        raise Declined("the file has no name of its own for keras above the first layer")
    at, newline = module.lines.end(module.span(imports[-1])[1]), module.lines.newline
    line = f'{keras}.mixed_precision.set_global_policy("{policy}")'
    return insert(at, f"{newline}{newline}{line}")


def _origins(module: SyntaxTree) -> list[str]:
    """Return which Keras the file's layers are of; that of TensorFlow only where the file uses it."""
    known = {origin for origins in module.imports.values() for origin in origins}
    used = [
        name for name in KERAS if any(each == name or each.startswith(f"{name}.") for each in known)
    ]
    if "tensorflow" in known and re.search(r"\.keras\b", module.text):
        used.append("tensorflow.keras")
    if len(set(used)) > 1:
        raise Declined("the file uses more than one Keras")
    return used


def _output(module: SyntaxTree) -> cst.Call:
    """Return the call that makes the last layer of the file's only model."""
    models = [
        each for each in module.all(cst.Call) if last_name(each.func) in ("Sequential", "Model")
    ]
    if len(models) != 1:
        raise Declined(f"the file makes {'several models' if models else 'no model of layers'}")
    model = models[0]
    layer = (
        _of_sequential(module, model)
        if last_name(model.func) == "Sequential"
        else _of_functional(module, model)
    )
    if layer is None or last_name(layer.func) not in OUTPUTS:
        raise Declined("which layer is the last one cannot be told from the file")
    return layer


def _of_sequential(module: SyntaxTree, model: cst.Call) -> cst.Call | None:
    """Return the last layer of a list, where no ``add`` follows, or the one that is added last."""
    added = [
        each
        for each in module.all(cst.Call)
        if last_name(each.func) == "add"
        and len(each.args) == 1
        and isinstance(each.args[0].value, cst.Call)
    ]
    match model.args[0].value if model.args else None:
        case cst.List(elements=[*_, cst.Element(value=cst.Call() as last)]) if not added:
            return last
        case None if added and _same_block(module, [model, *added]) and _alone(module, added):
            return newest if isinstance(newest := added[-1].args[0].value, cst.Call) else None
        case _:
            return None


def _alone(module: SyntaxTree, calls: list[cst.Call]) -> bool:
    """Say whether each call is a statement: none is in a comprehension, which calls it again and again."""
    return all(isinstance(module.parent(each), cst.Expr) for each in calls)


def _of_functional(module: SyntaxTree, model: cst.Call) -> cst.Call | None:
    """Return the layer whose call gave the only output."""
    named = {each.keyword.value: each.value for each in model.args if each.keyword}
    positional = [each.value for each in model.args if each.keyword is None]
    outputs = named.get("outputs", positional[1] if len(positional) > 1 else None)
    given = _assigned(module, outputs, model) if isinstance(outputs, cst.Name) else outputs
    match given:
        case cst.Call(func=cst.Call() as layer) if not _raw(module, model):
            return layer
        case _:
            return None


def _assigned(module: SyntaxTree, name: cst.Name, model: cst.Call) -> cst.BaseExpression | None:
    """Return what a name was given last before the model, in the same block."""
    before = [
        each
        for each in module.all(cst.Assign)
        if module.written(each.targets[0].target) == name.value
        and module.span(each) < module.span(model)
    ]
    found = before[-1] if before else None
    return found.value if found is not None and _same_block(module, [found, model]) else None


def _raw(module: SyntaxTree, model: cst.Call) -> bool:
    """Say whether TensorFlow's own operations stand between inputs and model, or in functions used there."""
    block = _block(module, model)
    calls = [each for each in module.all(cst.Call) if _block(module, each) is block]
    first = next((each for each in calls if last_name(each.func) == "Input"), None)
    if first is None:
        return True
    between = [
        each for each in calls if module.span(first) < module.span(each) < module.span(model)
    ]
    used = {last_name(each.func) for each in between}
    functions = [each for each in module.all(cst.FunctionDef) if each.name.value in used]
    inside = [
        each
        for each in module.all(cst.Call)
        if any(around in functions for around in module.around(each, cst.FunctionDef))
    ]
    tensorflow = module.name_of("tensorflow", model)
    named = [dotted(each.func) for each in (*between, *inside)]
    return any(
        each.startswith(f"{tensorflow}.") and not each.startswith(f"{tensorflow}.keras.")
        for each in named
    )


def _same_block(module: SyntaxTree, nodes: list[cst.Call] | list[cst.CSTNode]) -> bool:
    return len({id(_block(module, node)) for node in nodes}) == 1


def _block(module: SyntaxTree, node: cst.CSTNode) -> cst.CSTNode:
    """Return the block of statements that a node is in, of one line too: ``for _ in x: model.add(y)``."""
    one_line = module.around(node, cst.SimpleStatementSuite)
    return next(chain(one_line, module.around(node, cst.IndentedBlock)), module.tree)
