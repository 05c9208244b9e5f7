"""What an expression gives: a plain number or string, a result of training, Keras' History, or something else."""

from __future__ import annotations

import ast

from .syntax import head, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .source import UserSource

RESULT, HISTORY, MODEL, OTHER = "result", "history", "model", "other"
ORDER = (HISTORY, MODEL, RESULT)  # What counts where an expression holds several

PLAIN_FUNCTIONS = frozenset(["bool", "float", "format", "int", "len", "ord", "repr", "str", "type"])
PLAIN_METHODS = frozenset(
    ["format", "item", "join", "monotonic", "perf_counter", "process_time", "strftime", "time"]
)
KEEPS_PLAIN = frozenset(["abs", "max", "min", "round", "sum"])  # Functions that give a number for numbers

NUMPY = frozenset(["np", "numpy", "math"])
# Functions that give a number of an array, unless told an axis; those of one number are plain for a plain one.
REDUCES = frozenset(["max", "mean", "median", "min", "std", "sum", "var", "sqrt", "exp", "log"])
MOST = 300  # Expressions that are looked at, from one name to what it is bound to, before the answer is: not sure


class Plain:
    """Says which expressions of a file give numbers and strings alone, whatever the tensors they come from."""

    def __init__(self, source: UserSource) -> None:
        self.source = source
        self.left = 0
        self.asked: set[ast.AST] = set()  # a name that depends on itself is plain if all else is

    def __call__(self, node: ast.expr) -> bool:
        """Say whether an expression is plainly a number, a string, or a few of them; False is not sure."""
        self.left, self.asked = MOST, set()
        return self._is(node)

    def _is(self, node: ast.expr | None) -> bool:
        self.left -= 1
        if node is None or self.left < 0:
            return False
        if isinstance(node, ast.Name):
            return self._name(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Attribute):
            return node.attr in {"history", "shape"} and head(node) not in {"self", "cls"}
        if _is_text(node):
            return True
        parts = (node.value,) if isinstance(node, ast.Subscript) else _parts(node)
        return parts is not None and all(map(self._is, parts))

    def _name(self, name: ast.Name) -> bool:
        bound = self.source.reaching(name)
        new = [node for node in bound if node not in self.asked]
        self.asked.update(new)
        return bool(bound) and all(self._is(self.source.value(node)) for node in new)

    def _call(self, call: ast.Call) -> bool:
        name, arguments = tail(call), [*call.args, *(word.value for word in call.keywords)]
        if isinstance(call.func, ast.Attribute):
            if name in REDUCES and head(call) in NUMPY:
                whole = name not in {"sqrt", "exp", "log"} and len(arguments) == 1
                return whole or all(map(self._is, arguments))
            return name in PLAIN_METHODS and head(call) not in {"tf", "tensorflow"}
        if name in PLAIN_FUNCTIONS:
            return True
        given = arguments if name in KEEPS_PLAIN else self.source.given(name)
        return bool(given) and all(map(self._is, given))


def _is_text(node: ast.expr) -> bool:
    """Say whether an expression is a constant, or a string that is filled in."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    return isinstance(node, (ast.Constant, ast.JoinedStr))


# The fields of expressions that hold those that they are made of.
FIELDS = {
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
    ast.Set: ("elts",),
    ast.Dict: ("values",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.IfExp: ("body", "orelse"),
    ast.Compare: ("left", "comparators"),
    ast.BoolOp: ("values",),
    ast.Starred: ("value",),
    ast.NamedExpr: ("value",),
}


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """Return the expressions that another one is made of; None where it is something else."""
    fields = FIELDS.get(type(node))
    if fields is None:
        return None
    values = [getattr(node, field) for field in fields]
    return [part for one in values for part in (one if isinstance(one, list) else [one])]


def kind(node: ast.expr, known: Callable[[ast.expr], str | None]) -> str | None:
    """Return what an expression holds of training; None is nothing that is certain.

    `known` says what is known of a name or a call.
    """
    found = known(node)
    if found is not None or isinstance(node, (ast.Name, ast.Compare)):
        return found
    if isinstance(node, ast.Attribute):
        of = kind(node.value, known)
        return MODEL if of == HISTORY and node.attr == "model" else None
    if isinstance(node, (ast.Call, ast.Subscript)):  # of tensors
        parts = [node.value] if isinstance(node, ast.Subscript) else node.args
        tensors = isinstance(node, ast.Subscript) or head(node) in {"tf", "tensorflow"}
        return RESULT if tensors and RESULT in [kind(part, known) for part in parts] else None
    return first(kind(part, known) for part in _parts(node) or ())


def first(kinds: Iterable[str | None]) -> str | None:
    """Return what counts of several kinds."""
    found = set(kinds)
    return next((one for one in ORDER if one in found), None)
