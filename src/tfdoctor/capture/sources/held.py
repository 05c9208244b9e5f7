"""What an expression gives: a plain number or string, a result of training, Keras' History, the model, or other."""

import ast
from collections.abc import Iterable, Sequence

from tfdoctor.capture.sources.frames import At
from tfdoctor.source_code.syntax import arguments, head, tail
from tfdoctor.source_code.tree import SyntaxTree
from tfdoctor.terms.kinds import KeptValue

ORDER = (KeptValue.HISTORY, KeptValue.MODEL, KeptValue.RESULT)  # What counts where an expression holds several

# Functions that get the result of the call that trains, on the same line.
WRAPS = frozenset(
    ["append", "add", "bool", "enumerate", "extend", "float", "insert", "int", "print", "round", "str", "zip"]
)
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


def is_plain(source: SyntaxTree, node: ast.expr) -> bool:
    """Say whether an expression is plainly a number, a string, or a few of them; False is not sure.

    It is so whatever the tensors that it comes from: they are not kept.
    """
    return _Plain(source).holds(node)


class _Plain:
    """One answer: a name that depends on itself is plain if all else is."""

    def __init__(self, source: SyntaxTree) -> None:
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
        name, first, passed = tail(call), head(call), arguments(call)
        if isinstance(call.func, ast.Attribute):
            if first in NUMPY and name in REDUCES | OF_NUMBERS:
                return (name in REDUCES and len(passed) == 1) or all(map(self.holds, passed))
            return name in PLAIN_METHODS and first not in TENSORFLOW
        if name in PLAIN_FUNCTIONS:
            return True
        given = passed if name in KEEPS_PLAIN else self.source.given(name)
        return bool(given) and all(map(self.holds, given))


# Expressions that are made of others, and their fields that are no part of the result.
COMPOSED = (
    ast.BinOp, ast.BoolOp, ast.Compare, ast.Dict, ast.IfExp, ast.List, ast.NamedExpr, ast.Set, ast.Starred,
    ast.Tuple, ast.UnaryOp,
)  # fmt: skip
BESIDE = frozenset(["keys", "target", "test"])


def _parts(node: ast.expr | None) -> list[ast.expr] | None:
    """Return the expressions that another one is made of; None where it is something else."""
    if not isinstance(node, COMPOSED):
        return None
    fields = (value for name, value in ast.iter_fields(node) if name not in BESIDE)
    parts = (part for one in fields for part in (one if isinstance(one, list) else [one]))
    return [part for part in parts if isinstance(part, ast.expr)]


class Held:
    """What expressions around a call that trains hold of it: its results, Keras' History of it, or the model."""

    def __init__(self, frames: Sequence[At], *, fits: bool, direct: bool) -> None:
        self.scopes = {at.scope for at in frames}
        self.given: dict[ast.AST, list[KeptValue | None]] = {}  # what the call of a frame gives, or each part of it
        self.known: dict[ast.AST, KeptValue | None] = {}  # names, where they are bound
        self.tapes: list[ast.With] = []  # under which tensors are computed
        for number, at in enumerate(frames):
            called = frames[number - 1].name if number else "fit" if fits else ""
            call = _call(at, called)
            if call is None:
                continue
            self.given[call] = self._returned(frames[number - 1]) if number else [KeptValue.HISTORY] if fits else []
            on = call.func.value if isinstance(call.func, ast.Attribute) else None
            if number == 0 and fits and isinstance(on, ast.Name):
                self.known.update(dict.fromkeys(at.source.reaching(on), KeptValue.MODEL))
            if number == 0 and direct and not fits:
                self.given[call] = [] if tail(call).endswith(("_on_batch", "run")) else [KeptValue.RESULT]
                around = at.source.own(at.scope) if tail(call) == "gradient" else ()
                blocks = (one for one in around if isinstance(one, ast.With))
                self.tapes = [one for one in blocks if "GradientTape" in [tail(i.context_expr) for i in one.items]]

    def kind(self, node: ast.expr, source: SyntaxTree) -> KeptValue | None:
        """Return what an expression holds; None where that is nothing, or not certain."""
        return None if is_plain(source, node) else self._kind(node, source)

    def _returned(self, inner: At) -> list[KeptValue | None]:
        match [value for value in inner.source.returned(inner.scope) if value]:
            case [ast.Tuple(elts=parts)]:
                return [self.kind(part, inner.source) for part in parts]
            case values:
                return [_first_kind(self.kind(value, inner.source) for value in values)]

    def _kind(self, node: ast.expr, source: SyntaxTree) -> KeptValue | None:
        given = self.given.get(node, [])
        if len(given) == 1 and given[0]:
            return given[0]
        match node:
            case ast.Name():  # the same, wherever it may be bound
                kinds = {self._bound(one, source) for one in source.reaching(node)}
                return kinds.pop() if len(kinds) == 1 else None
            case ast.Attribute(value=value, attr="model"):
                return KeptValue.MODEL if self._kind(value, source) is KeptValue.HISTORY else None
            case ast.Call(args=parts):
                tensors = [self._kind(part, source) for part in parts] if head(node) in TENSORFLOW else []
            case ast.Subscript(value=value):
                tensors = [self._kind(value, source)]
            case _:
                parts = [] if isinstance(node, ast.Compare | ast.Attribute) else _parts(node) or []
                return _first_kind(self._kind(part, source) for part in parts)
        return KeptValue.RESULT if KeptValue.RESULT in tensors else None

    def _bound(self, name: ast.Name, source: SyntaxTree) -> KeptValue | None:
        """Return what a name holds where it is bound in a frame; one that depends on itself holds nothing new."""
        if name not in self.known and source.scope_of(name) in self.scopes:
            self.known[name] = None
            self.known[name] = self._assigned(name, source)
        return self.known.get(name)

    def _assigned(self, name: ast.Name, source: SyntaxTree) -> KeptValue | None:
        """Return what an assignment gives a name; parts are given by parts."""
        node = next((one for one in source.outward(name) if isinstance(one, ASSIGNS)), None)
        if node is None or node.value is None:
            return None
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value, target = node.value, next(one for one in targets if source.within(name, one))
        parts = list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]
        place = next((at for at, part in enumerate(parts) if name in (part, getattr(part, "value", None))), None)
        if place is None:
            return None
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(value.elts) == len(parts):
            value, parts = value.elts[place], [name]
        if any(source.within(node, tape) for tape in self.tapes) and not is_plain(source, value):
            return KeptValue.RESULT
        given = self.given.get(value, [])
        found = given[0] if len(given) == 1 else given[place] if len(given) == len(parts) else None
        return found or (self.kind(value, source) if parts == [name] else None)


ASSIGNS = (ast.Assign, ast.AnnAssign, ast.NamedExpr)


def _call(at: At, name: str) -> ast.Call | None:
    """Return the outermost call of that name that the line of a frame makes; "" is any that may train."""
    for node in ast.walk(at.source.statement(at.scope, at.line) or ast.Pass()):
        if isinstance(node, ast.Call) and at.source.covers(node, at.line):
            on_call = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
            if tail(node) == name if name else not on_call and tail(node) not in WRAPS:
                return node
    return None


def _first_kind(kinds: Iterable[KeptValue | None]) -> KeptValue | None:
    """Return what counts of several kinds."""
    found = set(kinds)
    return next((one for one in ORDER if one in found), None)
