"""What the expressions of a file are beyond doubt: datasets, tensors, fixed objects, models and layers of Keras."""

from collections.abc import Callable, Iterator

import libcst as cst

from tfdoctor.edits.chains import MAKERS, TRANSFORMATIONS
from tfdoctor.edits.module import BoundValue, SyntaxTree
from tfdoctor.edits.syntax import last_name, root_name

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


def is_dataset(module: SyntaxTree, value: cst.BaseExpression, seen: Seen = NONE) -> bool:
    """Say whether an expression is a tf.data dataset, whose elements are tensors."""
    seen |= {id(value)}
    match value:
        case cst.Name():
            return _all(module, value, seen, _holds_dataset)
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=method))) if method in STAGES:
            return is_dataset(module, receiver, seen)
        case cst.Call(func=cst.Name(value=name)) if module.function(name):
            return module.returned(name, lambda part: is_dataset(module, part, seen))
        case cst.Call(func=func):
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
    match source.value:
        case cst.Call(func=cst.Name(value=name)):
            return module.returned(name, lambda made: _holds_dataset(module, BoundValue(made, source.place), seen))
        case _:
            return False


def is_tensor(module: SyntaxTree, value: cst.BaseExpression, seen: Seen = NONE) -> bool:
    """Say whether an expression is a tensor, or a structure of tensors."""
    seen |= {id(value)}
    match value:
        case cst.Name():
            return _all(module, value, seen, _holds_tensor)
        case cst.Subscript(value=whole):
            return is_tensor(module, whole, seen)
        case cst.Tuple(elements=elements):
            return all(is_tensor(module, element.value, seen) for element in elements)
        case cst.Call(func=cst.Name(value="next"), args=[cst.Arg(value=iterator), *_]):
            return _is_iterator(module, iterator, seen)
        case cst.Call(func=func):
            origin = module.from_tensorflow(func)
            made = origin.rpartition(".")[2][:1].islower() and ".data." not in origin
            return origin.startswith("tensorflow.") and ".keras." not in origin and made
        case _:
            return False


def _is_iterator(module: SyntaxTree, value: cst.BaseExpression, seen: Seen) -> bool:
    match value:
        case cst.Name():
            return _all(module, value, seen, _holds_iterator)
        case cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=dataset)]):
            return is_dataset(module, dataset, seen)
        case _:
            return False


def _holds_iterator(module: SyntaxTree, source: BoundValue, seen: Seen) -> bool:
    return source.whole and _is_iterator(module, source.value, seen)


def _holds_tensor(module: SyntaxTree, source: BoundValue, seen: Seen) -> bool:
    if not source.each:
        return is_tensor(module, source.part or source.value, seen)
    through, elements = source.value, True
    match through:
        case cst.Call(func=func, args=[cst.Arg(value=inner), *_]) if last_name(func) == "enumerate":
            through, elements = inner, source.place == 1
    match through:
        case cst.Call(func=func, args=[cst.Arg(value=inner), *_]) if last_name(func) in PASSED_ON:
            through = inner
    return elements and is_dataset(module, through, seen)


def _all(
    module: SyntaxTree, name: cst.Name, seen: Seen, holds: Callable[[SyntaxTree, BoundValue, Seen], bool]
) -> bool:
    """Say whether a name has a source, and all of them are of a kind; ``d = d.map(f)`` says nothing new."""
    found = module.sources(name)
    rest = [source for source in found if id(source.value) not in seen]
    known = seen | {id(source.value) for source in found}
    direct = [source for source in rest if not _starts_with(source.value, name.value)]
    return bool(found) and all(holds(module, source, known) for source in (direct or rest))


def _starts_with(node: cst.BaseExpression, name: str) -> bool:
    """Say whether a chain of a dataset's methods starts with a name."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and last_name(node.func) in STAGES:
        node = node.func.value
    return isinstance(node, cst.Name) and node.value == name


def why_not_fixed(module: SyntaxTree, name: cst.Name) -> str:
    """Return why a name may not stand for the same unchanged object in every step; "" if it does.

    Fixed are numbers and texts, objects of TensorFlow and Keras, those of the file's Keras classes, and
    tuples and lists of these.
    """
    settled = _settled(module, name)
    node, source = settled or (name, None)
    anew = source is None or source.each
    if anew or source is None or not (isinstance(node, cst.Param) or module.runs_once(node)):
        return f"`{name.value}` is not assigned exactly once"
    # What the file itself does above the line that makes the object is done to an earlier one.
    if any(
        changed == name.value and not (module.is_top_level(at) and module.span(at) < module.span(node))
        for changed, at in _changes(module)
    ):
        return f"`{name.value}` is changed elsewhere in the file"
    if source.part is None or not _is_fixed(module, source.part):
        return f"`{name.value}` is neither a constant nor made by TensorFlow or Keras"
    return ""


def made_by(module: SyntaxTree, name: cst.Name) -> cst.BaseExpression | None:
    """Return what made the only fixed object that a name stands for, also through parameters."""
    settled = _settled(module, name)
    source = settled[1] if settled and not settled[1].each else None
    value = source.part if source else None
    if isinstance(value, cst.Name):
        return made_by(module, value)
    parameter = any(isinstance(node, cst.Param) for node in module.bound(name))
    return value if parameter or not why_not_fixed(module, name) else None


def _settled(module: SyntaxTree, name: cst.Name) -> tuple[cst.CSTNode, BoundValue] | None:
    """Return the only binding of a name, or the last of those that all run before the name is read.

    Those are statements of the file itself, in no block, above the name. ``x = x / 2`` reads an earlier ``x``.
    """
    own = module.nearest(name, cst.SimpleStatementLine)
    bound = [
        node
        for node in sorted(module.bound(name), key=module.span)
        if own is None or own is not module.nearest(node, cst.SimpleStatementLine)
    ]
    before = all(module.is_top_level(node) and module.span(node) < module.span(name) for node in bound)
    if not bound or (len(bound) > 1 and not before):
        return None
    source = module.source(bound[-1])
    return (bound[-1], source) if source else None


def _changes(module: SyntaxTree) -> Iterator[tuple[str, cst.CSTNode]]:
    """Yield the names of the objects that the file changes in place, and where."""
    for augmented in module.all(cst.AugAssign):
        yield root_name(augmented.target), augmented
    for target in module.all(cst.AssignTarget):
        whole = target.target
        rate = isinstance(whole, cst.Attribute) and last_name(whole) in RATES
        if isinstance(whole, cst.Subscript | cst.Attribute) and not rate:
            yield root_name(whole), target
    for call in module.methods(*MUTATORS):
        yield from ((root_name(changed), call) for changed in (call.func, *(one.value for one in call.args)))


def _is_fixed(module: SyntaxTree, value: cst.BaseExpression) -> bool:  # noqa: PLR0911 - one case a kind
    match value:
        case cst.BaseNumber() | cst.SimpleString() | cst.ConcatenatedString():
            return True
        case cst.Name(value=name):
            return name in ("True", "False", "None") or not why_not_fixed(module, value)
        case cst.UnaryOperation(expression=inner) | cst.ListComp(elt=inner):
            return _is_fixed(module, inner)
        case cst.BinaryOperation(left=left, right=right):
            return _is_fixed(module, left) and _is_fixed(module, right)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return all(_is_fixed(module, element.value) for element in elements)
        case cst.Attribute():
            return bool(module.from_tensorflow(value)) or last_name(value).endswith("variables")
        case cst.Call(func=func):
            while isinstance(func, cst.Call):  # Dense(8)(x)
                value, func = func, func.func
            if module.from_tensorflow(func):
                return not is_dataset(module, value)
            name = func.value if isinstance(func, cst.Name) else ""
            if module.function(name):
                return module.returned(name, lambda made: _is_made(module, made))
            return keras_class(module, name) is not None
        case _:
            return False


def _is_made(module: SyntaxTree, value: cst.BaseExpression) -> bool:
    """Say whether a function returns an object of Keras, which it makes at each call."""
    match value:
        case cst.Name():
            return module.always(value, lambda made: _is_made(module, made))
        case cst.Call(func=func):
            own = isinstance(func, cst.Name) and keras_class(module, func.value) is not None
            return own or bool(module.from_tensorflow(func))
        case _:
            return False


def keras_class(module: SyntaxTree, name: str) -> cst.ClassDef | None:
    """Return the only class of the file with a name, if it is a layer or a model of Keras."""
    found = [node for node in module.all(cst.ClassDef) if node.name.value == name]
    if len(found) != 1 or len(found[0].bases) != 1:
        return None
    base = found[0].bases[0].value
    kind = module.from_tensorflow(base).rpartition(".")[2]
    own = isinstance(base, cst.Name) and base.value != name and keras_class(module, base.value)
    return found[0] if kind in ("Layer", "Model", "Sequential") or own else None
