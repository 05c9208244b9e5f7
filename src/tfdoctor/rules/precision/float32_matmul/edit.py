"""Mixed precision: a policy above the first layer, and the output kept in float32.

The policy alone would make the model's output, and with it the loss, 16-bit. The edit is made only where the file
shows beyond doubt which layer is the last one. Keras casts the inputs of each layer, and its weights, to 16 bits,
but TensorFlow's own operations take no operands of two types: a call() of the file qualifies only where every
operand comes from its input, a layer or a Python number.
"""

from tfdoctor.edits.kit import *

# Layers that may be the last: each computes the input of the loss, which has to be float32.
OUTPUTS = frozenset(["Activation", "Conv1D", "Conv2D", "Conv2DTranspose", "Conv3D", "Dense", "Softmax"])

# Functions of TensorFlow and keras.ops whose result has the type of their first operand.
KEEP_TYPE = frozenset(
    ["abs", "add", "avg_pool2d", "concat", "concatenate", "elu", "exp", "expand_dims", "flatten", "gelu",
     "identity", "l2_normalize", "leaky_relu", "max", "max_pool2d", "mean", "ones_like", "pad", "reduce_max",
     "reduce_mean", "reduce_min", "reduce_sum", "relu", "relu6", "reshape", "shape", "sigmoid", "silu",
     "softmax", "softplus", "split", "sqrt", "square", "squeeze", "stack", "stop_gradient", "sum", "swish",
     "tanh", "tile", "transpose", "unstack", "zeros_like"]
)  # fmt: skip

FLAGS = frozenset(["mask", "self", "training"])  # Parameters of call() that are no tensors to compute with

KERAS = ("keras", "tf_keras", "tensorflow.keras")

_CHOSEN = re.compile(r"policy|floatx|\bLambda\b")

Made = dict[str, ast.expr]  # what __init__ and build make, by the attribute of self


def mixed_precision(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Set the policy that the rule's example names, and ``dtype="float32"`` of the last layer."""
    policy = in_example(r'set_global_policy\("(mixed_\w+)"\)', example, "the policy")[1]
    own = [node for node in module.all(ast.ClassDef) if keras_class(module, node.name)]
    outputs = _outputs(module, own)
    last = [output for output in outputs if output is not None and tail(output) in OUTPUTS]
    if len(last) != len(outputs):
        raise Declined("the file does not show which layer computes the input of the loss")
    made = [call for call in module.all(ast.Call) if tail(call)[:1].isupper()]
    typed = [call for call in made if call not in last and written(module, call, "dtype")]
    if _CHOSEN.search(module.text) or any(tail(call) != "Input" for call in typed):
        raise Declined("the file sets data types or policies, or has a Lambda layer")
    for other in (node for node in module.all(ast.ClassDef) if node not in own):
        if any(last_name(base).endswith(("Layer", "Model")) for base in other.bases):
            raise Declined("the file defines layers of its own, which may not support 16-bit precision")
    if policy == "mixed_float16" and "GradientTape" in module.text:
        raise Declined("a custom training loop has to scale the loss for float16")
    _must_keep_types(module, own)
    here = (node for node in module.tree.body if module.covers(node, line))
    first = known(next(here, None), "the first layer is not at the recorded line")
    kept = [
        setting(module, output, "dtype", '"float32"', instead_of=('"float32"', "'float32'"))
        for output in last
        if not written(module, output, "dtype")
    ]
    return [_policy_line(module, first, policy), *kept]


def _policy_line(module: SyntaxTree, first: ast.stmt, policy: str) -> Splice:
    """Insert the line after the last import above the first layer, with an import where Keras has no name."""
    origins = {module.from_tensorflow(call.func) for call in module.all(ast.Call)}
    used = [name for name in KERAS if any(origin.startswith(f"{name}.layers.") for origin in origins)]
    package = only(used, f"the file makes layers of {'more than one' if used else 'no'} Keras package")
    (at, below), newline = imports_above(module, first), module.lines.newline
    name, added = module.name_of(f"{package}.mixed_precision", below), ""
    if name is None:
        imported = {origin for origins in module.imports.values() for origin in origins}
        above = [origin for origin in imported if f"{origin}.".startswith(f"{package.partition('.')[0]}.")]
        seen = any(module.name_of(origin, below) for origin in above)
        if not seen or re.search(r"\bmixed_precision\b", module.text):
            raise Declined("no clear import of keras precedes the first layer")
        name, added = "mixed_precision", f"{newline}from {package} import mixed_precision"
    return insert(at, f'{added}{newline}{newline}{name}.set_global_policy("{policy}")')


def _outputs(module: SyntaxTree, own: list[ast.ClassDef]) -> list[ast.Call | None]:
    """Return the calls that make the last layer of each model; None where the file does not show it."""
    calls = module.calls("Sequential", "Model")
    models = [call for call in calls if not any(module.within(call, definition) for definition in own)]
    plain = all(tail(call) == "Sequential" for call in models)
    if models or not own:
        if len(models) != 1 and (not plain or own or not models):
            raise Declined(f"the file creates {'several models' if models else 'no model from layers'}")
        return [_of_sequential(module, call) if plain else _of_functional(module, call) for call in models]
    classes = [node for node in own if module.from_tensorflow(node.bases[0]).endswith(".Model")]
    model = only(classes, "the file defines {}", "model")
    match [node.value for part in own_methods(model, "call") for node in module.inside(ast.Return, part)]:
        case [ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=layer))]:
            made = _made(module, model).get(layer)
            return [made if isinstance(made, ast.Call) else None]
        case _:
            return [None]


def _of_sequential(module: SyntaxTree, model: ast.Call) -> ast.Call | None:
    """Return the last layer of a list, where no ``add`` follows, or the layer added last.

    That is in the block that makes the model, where all others are added above it.
    """
    given = [(call, arguments(call)[0]) for call in module.calls("add") if len(arguments(call)) == 1]
    added = [(call, layer) for call, layer in given if isinstance(layer, ast.Call)]
    if not added:
        match next(iter(arguments(model)), None):
            case ast.List(elts=[*_, ast.Call() as layer]):
                return layer
            case _:
                return None
    calls, assigned = [call for call, _ in added], module.parent(model)
    targets = assigned.targets if isinstance(assigned, ast.Assign) else ()
    names = {module.written(target) for target in targets}
    receivers = {module.written(of) for call in calls if (of := receiver(call))}
    here = {module.function_around(call) for call in (model, *calls)}
    clear = (  # a call that is no statement may be repeated by a comprehension
        all(isinstance(module.parent(call), ast.Expr) for call in calls)
        and len(here) == 1
        and receivers == names
        and module.block(model) is module.block(calls[-1])
        and place(calls[0]) >= place(model)
    )
    return added[-1][1] if clear else None


def _of_functional(module: SyntaxTree, model: ast.Call) -> ast.Call | None:
    """Return the layer whose call made the only output, the value last assigned to its name in the same block.

    None where TensorFlow's own operations are between inputs and model, or in functions used there.
    """
    made, block = named(model).get("outputs") or next(iter(model.args[1:]), None), module.block(model)
    if isinstance(made, ast.Name):
        before = [
            assignment
            for assignment in module.all(ast.Assign)
            if module.written(assignment.targets[0]) == made.id and place(assignment) < place(model)
        ]
        made = before[-1].value if before and module.block(before[-1]) is block else None
    every = module.all(ast.Call)
    calls = [call for call in every if module.block(call) is block]
    first = next((call for call in calls if tail(call) == "Input"), None)
    if first is None or not isinstance(made, ast.Call) or not isinstance(made.func, ast.Call):
        return None
    between = [call for call in calls if place(first) < place(call) < place(model)]
    used = {tail(call) for call in between}
    functions = [one for one in module.functions if one.name in used]
    within = [call for call in every if any(outer in functions for outer in module.outward(call))]
    tensorflow = module.name_of("tensorflow", model)
    names = [dotted(call.func) for call in (*between, *within)]
    raw = any(name.startswith(f"{tensorflow}.") and not name.startswith(f"{tensorflow}.keras.") for name in names)
    return None if raw else made.func


def _made(module: SyntaxTree, definition: ast.ClassDef) -> Made:
    """Return the layers that __init__ and build assign once to attributes of self."""
    made = attributes(module, definition, "__init__", "build")
    return {name: first for name, [first, *more] in made.items() if not more and _is_layer(module, first)}


def _is_layer(module: SyntaxTree, value: ast.expr) -> bool:
    match value:
        case ast.ListComp(elt=made):
            return _is_layer(module, made)
        case ast.List(elts=parts):
            return bool(parts) and all(_is_layer(module, part) for part in parts)
        case ast.Call(func=func):
            origin = module.from_tensorflow(func)
            own = isinstance(func, ast.Name) and keras_class(module, func.id) is not None
            return own or ".layers." in origin or origin.endswith(".Sequential")
        case _:
            return False


def _must_keep_types(module: SyntaxTree, own: list[ast.ClassDef]) -> None:
    """Decline where a call() of the file may mix two types, or something other than call() uses a layer."""
    every = set[str]()
    for definition in own:
        name, layers = definition.name, _made(module, definition)
        method = only(own_methods(definition, "call"), f"{name} has no call() of its own")
        if len([one for one in method.args.args if one.arg not in FLAGS]) != 1:
            raise Declined(f"call() of {name} takes several inputs, which may differ in type")
        calls = module.inside(ast.Call, *method.body)
        wrong: list[ast.expr] = [call for call in calls if not _keeps(module, call, layers)]
        # Names fit that are local, a layer, a part of Keras' names or a Python number.
        wrong += [one for one in module.inside(ast.expr, *method.body) if not _fits(module, one, method, layers)]
        if wrong:
            raise Declined(f"line {wrong[0].lineno} may compute with two types under the policy")
        every |= layers.keys()
    for call in module.methods(*every):
        if module.home(call) != "call":
            raise Declined(f"line {call.lineno} calls .{method_of(call)}(), whose result would have 16 bits")


def _fits(module: SyntaxTree, one: ast.expr, method: Function, layers: Made) -> bool:
    """Say whether an expression is no name or attribute of self that may have another type than the input."""
    use = module.parent(one)
    match one:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            plain = isinstance(use, ast.Call | ast.keyword | ast.For | ast.comprehension | ast.Subscript)
            given = isinstance(use, ast.keyword | ast.Tuple | ast.List | ast.Set)  # as a shape: no operand
            return (name in layers and plain) or given or (isinstance(use, ast.Call) and use.func is not one)
        case ast.Name():
            local = all(module.within(node, method) for node in module.bound(one))
            return local or bool(module.from_tensorflow(one)) or is_number(made_by(module, one))
        case _:
            return True


def _keeps(module: SyntaxTree, call: ast.Call, layers: Made) -> bool:
    """Say whether a call is one of a layer, of super, or of a function that keeps the type."""
    if origin := module.from_tensorflow(call.func):
        is_argument = isinstance(module.parent(call), ast.Call | ast.keyword)
        return tail(call) in KEEP_TYPE or (is_argument and origin.endswith(".range"))
    match call.func:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name in layers
        case ast.Name(id="zip" | "enumerate" | "reversed" | "range"):
            return True
        case ast.Name() as func:  # for layer in self.layers
            sources = module.sources(func)
            lists = [source.value for source in sources if source.each and isinstance(source.value, ast.Attribute)]
            return len(lists) == len(sources) != 0 and all(last_name(one) in layers for one in lists)
        case _:
            return False


EDITS = {"mixed-precision": mixed_precision}
