"""What an expression gives: a plain number or string, a result of training, Keras' History, the model, or other."""

import ast
from collections.abc import Callable, Iterable

from tfdoctor.capture.sources.source import UserSource, head, tail
from tfdoctor.terms.kinds import KeptValue

ORDER = (KeptValue.HISTORY, KeptValue.MODEL, KeptValue.RESULT)  # What counts where an expression holds several

PLAIN_FUNCTIONS = frozenset(["bool", "float", "format", "int", "len", "ord", "repr", "str", "type"])
PLAIN_METHODS = frozenset(
    ["format", "item", "join", "monotonic", "perf_counter", "process_time", "strftime", "time"]
)
KEEPS_PLAIN = frozenset(["abs", "max", "min", "round", "sum"])  # Functions that give a number for numbers

TENSORFLOW, NUMPY = frozenset(["tf", "tensorflow"]), frozenset(["np", "numpy", "math"])
# Functions that give a number of an array, unless told an axis; those of one number are plain for a plain one.
REDUCES = frozenset(["max", "mean", "median", "min", "std", "sum", "var"])
OF_NUMBERS = frozenset(["sqrt", "exp", "log"])
MOST = 300  # Expressions that are looked at, from one name to what it is bound to, before the answer is: not sure


def is_plain(source: UserSource, node: ast.expr) -> bool:
    """Say whether an expression is plainly a number, a string, or a few of them; False is not sure.

    It is so whatever the tensors that it comes from: they are not kept.
    """
    return _Plain(source).holds(node)


class _Plain:
    """One answer: a name that depends on itself is plain if all else is."""

    def __init__(self, source: UserSource) -> None:
        self.source, self.left, self.asked = source, MOST, set[ast.AST]()

    def holds(self, node: ast.expr | None) -> bool:
        self.left -= 1
        if self.left < 0:
            return False
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Call():
                return self._call(node)
            case ast.Attribute(attr=name):
                return name in {"history", "shape"} and head(node) not in {"self", "cls"}
            case ast.Constant() | ast.JoinedStr() | ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()):
                return True
            case _:
                parts = [node.value] if isinstance(node, ast.Subscript) else _parts(node)
                return parts is not None and all(map(self.holds, parts))

    def _name(self, name: ast.Name) -> bool:
        bound = self.source.reaching(name)
        new = [node for node in bound if node not in self.asked]
        self.asked.update(new)
        return bool(bound) and all(self.holds(self.source.value(node)) for node in new)

    def _call(self, call: ast.Call) -> bool:
        name, first, arguments = tail(call), head(call), [*call.args, *(word.value for word in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            if first in NUMPY and name in REDUCES | OF_NUMBERS:
                return (name in REDUCES and len(arguments) == 1) or all(map(self.holds, arguments))
            return name in PLAIN_METHODS and first not in TENSORFLOW
        if name in PLAIN_FUNCTIONS:
            return True
        given = arguments if name in KEEPS_PLAIN else self.source.given(name)
        return bool(given) and all(map(self.holds, given))


# The fields of expressions that hold those that they are made of.
PARTS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((ast.Tuple, ast.List, ast.Set), ("elts",)),
    **dict.fromkeys((ast.Dict, ast.BoolOp), ("values",)),
    **dict.fromkeys((ast.Starred, ast.NamedExpr), ("value",)),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.IfExp: ("body", "orelse"),
    ast.Compare: ("left", "comparators"),
}


def _parts(node: ast.expr | None) -> list[ast.expr] | None:
    """Return the expressions that another one is made of; None where it is something else."""
    if type(node) not in PARTS:
        return None
    values = [getattr(node, field) for field in PARTS[type(node)]]
    return [part for one in values for part in (one if isinstance(one, list) else [one])]


def kind(node: ast.expr, known: Callable[[ast.expr], KeptValue | None]) -> KeptValue | None:
    """Return what an expression holds of training; None is nothing that is certain.

    `known` says what is known of a name or a call.
    """
    found = known(node)
    if found is not None:
        return found
    match node:
        case ast.Name() | ast.Compare():
            return None
        case ast.Attribute(value=value, attr=name):
            return KeptValue.MODEL if name == "model" and kind(value, known) is KeptValue.HISTORY else None
        case ast.Call(args=arguments):
            tensors = [kind(part, known) for part in arguments] if head(node) in TENSORFLOW else []
        case ast.Subscript(value=value):
            tensors = [kind(value, known)]
        case _:
            return first_kind(kind(part, known) for part in _parts(node) or ())
    return KeptValue.RESULT if KeptValue.RESULT in tensors else None


def first_kind(kinds: Iterable[KeptValue | None]) -> KeptValue | None:
    """Return what counts of several kinds."""
    found = set(kinds)
    return next((one for one in ORDER if one in found), None)
