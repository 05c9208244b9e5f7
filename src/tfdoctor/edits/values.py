"""What the expressions of a file are beyond doubt: datasets, tensors, fixed objects, models and layers of Keras."""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator

from tfdoctor.edits.calls import MAKERS, TRANSFORMATIONS
from tfdoctor.source_code.syntax import arguments, dotted, last_name, own_methods, root_name, tail
from tfdoctor.source_code.tree import BoundValue, SyntaxTree, place

STAGES = TRANSFORMATIONS | {"prefetch"}

PASSED_ON = frozenset(["tqdm", "trange", "Progbar"])  # Wrappers of a loop's iterable that pass on its elements

# Methods that change a list, a dictionary or an array in place.
MUTATORS = frozenset(
    ["append", "clear", "extend", "fill", "insert", "pop", "remove", "reverse", "setdefault", "shuffle", "sort",
     "update"]
)  # fmt: skip

# Attributes that Keras keeps in a variable, which a graph reads anew in each step.
RATES = frozenset(["learning_rate", "lr"])

Seen = frozenset[int]  # The ids of expressions that are being asked about, since names may stand for each other
NONE: Seen = frozenset()


def is_dataset(module: SyntaxTree, value: ast.expr, seen: Seen = NONE) -> bool:
    """Say whether an expression is a tf.data dataset, whose elements are tensors."""
    seen |= {id(value)}
    match value:
        case ast.Name():
            return _all(module, value, seen, _holds_dataset)
        case ast.Call(func=ast.Attribute(value=receiver, attr=method)) if method in STAGES:
            return is_dataset(module, receiver, seen)
        case ast.Call(func=ast.Name(id=name)) if module.function(name):
            return module.returns(name, lambda part: is_dataset(module, part, seen))
        case ast.Call(func=func):
            parts = module.from_tensorflow(func).split(".")
            in_data = "data" in parts and (parts[-1] in MAKERS or parts[-1].endswith("Dataset"))
            return in_data or parts[-1].endswith("dataset_from_directory")
        case _:
            return False


def _holds_dataset(module: SyntaxTree, source: BoundValue, seen: Seen) -> bool:
    if source.each:
        return False
    if source.part is not None:
        return is_dataset(module, source.part, seen)
    called = dotted(source.value.func) if isinstance(source.value, ast.Call) else ""
    return module.returns(called, lambda made: _holds_dataset(module, BoundValue(made, source.place), seen))


def is_tensor(module: SyntaxTree, value: ast.expr, seen: Seen = NONE) -> bool:
    """Say whether an expression is a tensor, or a structure of tensors."""
    seen |= {id(value)}
    match value:
        case ast.Name():
            return _all(module, value, seen, _holds_tensor)
        case ast.Subscript(value=whole):
            return is_tensor(module, whole, seen)
        case ast.Tuple(elts=parts):
            return all(is_tensor(module, part, seen) for part in parts)
        case ast.Call(func=ast.Name(id="next"), args=[iterator, *_]):
            return _is_iterator(module, iterator)
        case ast.Call(func=func):
            origin = module.from_tensorflow(func)
            made = origin.rpartition(".")[2][:1].islower() and ".data." not in origin
            return origin.startswith("tensorflow.") and ".keras." not in origin and made
        case _:
            return False


def _is_iterator(module: SyntaxTree, value: ast.expr) -> bool:
    match value:
        case ast.Name():
            return module.always(value, lambda made: _is_iterator(module, made))
        case ast.Call(func=ast.Name(id="iter"), args=[dataset]):
            return is_dataset(module, dataset)
        case _:
            return False


def _holds_tensor(module: SyntaxTree, source: BoundValue, seen: Seen) -> bool:
    if not source.each:
        return is_tensor(module, source.part or source.value, seen)
    through, counted = source.value, False
    if isinstance(through, ast.Call) and through.args and tail(through) == "enumerate":
        through, counted = through.args[0], source.place != 1
    if isinstance(through, ast.Call) and through.args and tail(through) in PASSED_ON:
        through = through.args[0]
    return not counted and is_dataset(module, through, seen)


def _all(
    module: SyntaxTree, name: ast.Name, seen: Seen, holds: Callable[[SyntaxTree, BoundValue, Seen], bool]
) -> bool:
    """Say whether a name has a source, and all of them are of a kind; ``d = d.map(f)`` says nothing new."""
    found = module.sources(name)
    rest = [source for source in found if id(source.value) not in seen]
    known = seen | {id(source.value) for source in found}
    direct = [source for source in rest if not _starts_with(source.value, name.id)]
    return bool(found) and all(holds(module, source, known) for source in (direct or rest))


def _starts_with(node: ast.expr, name: str) -> bool:
    """Say whether a chain of a dataset's methods starts with a name."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and tail(node) in STAGES:
        node = node.func.value
    return last_name(node) == name and isinstance(node, ast.Name)


def why_not_fixed(module: SyntaxTree, name: ast.Name) -> str:
    """Return why a name may not stand for the same unchanged object in every step; "" if it does.

    Fixed are numbers and texts, objects of TensorFlow and Keras, those of the file's Keras classes, and
    tuples and lists of these.
    """
    node, source = _settled(module, name) or (name, None)
    if any(isinstance(bound, ast.alias) for bound in module.bound(name)):
        return f"`{name.id}` is imported, and the file does not show what it is"
    if source is None or source.each or not (isinstance(node, ast.arg) or module.runs_once(node)):
        return f"`{name.id}` is not assigned exactly once"
    # What the file itself does above the line that makes the object is done to an earlier one.
    if any(
        changed == name.id and not (module.is_top_level(at) and place(at) < place(node))
        for changed, at in _changes(module)
    ):
        return f"`{name.id}` is changed elsewhere in the file"
    if source.part is None or not _is_fixed(module, source.part):
        return f"`{name.id}` is neither a constant nor made by TensorFlow or Keras"
    return ""


def made_by(module: SyntaxTree, name: ast.Name) -> ast.expr | None:
    """Return what made the only fixed object that a name stands for, also through parameters."""
    _, source = _settled(module, name) or (name, None)
    value = source.part if source and not source.each else None
    if isinstance(value, ast.Name):
        return made_by(module, value)
    parameter = any(isinstance(node, ast.arg) for node in module.bound(name))
    return value if parameter or not why_not_fixed(module, name) else None


def _settled(module: SyntaxTree, name: ast.Name) -> tuple[ast.AST, BoundValue] | None:
    """Return the only binding of a name, or the last of those that all run before the name is read.

    Those are statements of the file itself, in no block, above the name. ``x = x / 2`` reads an earlier ``x``.
    """
    own = module.simple(name)
    bound = [node for node in sorted(module.bound(name), key=place) if not own or own is not module.simple(node)]
    before = all(module.is_top_level(node) and place(node) < place(name) for node in bound)
    if not bound or (len(bound) > 1 and not before):
        return None
    source = module.source(bound[-1])
    return (bound[-1], source) if source else None


def _changes(module: SyntaxTree) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names of the objects that the file changes in place, and where."""
    for augmented in module.all(ast.AugAssign):
        yield root_name(augmented.target), augmented
    for target in module.targets:
        rate = isinstance(target, ast.Attribute) and target.attr in RATES
        if isinstance(target, ast.Subscript | ast.Attribute) and not rate:
            yield root_name(target), target
    for call in module.methods(*MUTATORS):
        yield from ((root_name(changed), call) for changed in (call.func, *arguments(call)))


def _is_fixed(module: SyntaxTree, value: ast.expr) -> bool:  # noqa: PLR0911 - one case a kind
    match value:
        case ast.Constant():
            return True
        case ast.Name():
            return not why_not_fixed(module, value)
        case ast.UnaryOp(operand=inner) | ast.ListComp(elt=inner):
            return _is_fixed(module, inner)
        case ast.BinOp(left=left, right=right):
            return _is_fixed(module, left) and _is_fixed(module, right)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(_is_fixed(module, part) for part in parts)
        case ast.Attribute():
            return bool(module.from_tensorflow(value)) or last_name(value).endswith("variables")
        case ast.Call(func=func):
            while isinstance(func, ast.Call):  # Dense(8)(x)
                value, func = func, func.func
            if module.from_tensorflow(func):
                return not is_dataset(module, value)
            name = func.id if isinstance(func, ast.Name) else ""
            if module.function(name):
                return module.returns(name, lambda made: _is_made(module, made))
            return keras_class(module, name) is not None
        case _:
            return False


def _is_made(module: SyntaxTree, value: ast.expr) -> bool:
    """Say whether a function returns an object of Keras, which it makes at each call."""
    match value:
        case ast.Name():
            return module.always(value, lambda made: _is_made(module, made))
        case ast.Call(func=func):
            own = isinstance(func, ast.Name) and keras_class(module, func.id) is not None
            return own or bool(module.from_tensorflow(func))
        case _:
            return False


def keras_class(module: SyntaxTree, name: str) -> ast.ClassDef | None:
    """Return the only class of the file with a name, if it is a layer or a model of Keras."""
    found = [node for node in module.all(ast.ClassDef) if node.name == name]
    if len(found) != 1 or len(found[0].bases) != 1:
        return None
    base = found[0].bases[0]
    kind = module.from_tensorflow(base).rpartition(".")[2]
    own = isinstance(base, ast.Name) and base.id != name and keras_class(module, base.id)
    return found[0] if kind in ("Layer", "Model", "Sequential") or own else None


def attributes(module: SyntaxTree, definition: ast.ClassDef | None, *methods: str) -> dict[str, list[ast.expr]]:
    """Return what the methods of a class assign to each attribute of self: those of some names, or all."""
    made, setup = defaultdict[str, list[ast.expr]](list), own_methods(definition, *methods)
    for node in module.all(ast.Assign) if setup else ():
        if module.function_around(node) in setup:
            for name in map(dotted, node.targets):
                if name.startswith("self.") and name.count(".") == 1:
                    made[name.removeprefix("self.")].append(node.value)
    return made
