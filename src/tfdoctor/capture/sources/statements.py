"""Statements of a loop around training that keep what they are given in a container made outside of the loop.

Read from the source, never run. Only a container that the file shows being made counts, as `[]` or `deque()`, and
nothing is said of one that is made again or that loses anything while the loop runs, as far as the file shows.
"""

import ast
import copy
from collections.abc import Iterator, Sequence

from tfdoctor.capture.sources.frames import At, Frames, KnownNames, Region
from tfdoctor.capture.sources.source import Function, UserSource, key_of, root, tail
from tfdoctor.capture.sources.values import is_plain
from tfdoctor.recording.run_log import KeptStatement
from tfdoctor.terms.kinds import KeptValue

LIST, DICT, SET = "list", "dict", "set"
# Functions that make a container, and its kind.
MADE = {"list": LIST, "deque": LIST, "set": SET, "dict": DICT, "OrderedDict": DICT, "defaultdict": DICT}
MAXLEN = 2  # Positional arguments of a deque that has a longest length
MAKERS = frozenset(["__init__", "__post_init__"])
# Methods that add to a container: which argument they add, and what kind of container has them.
ADDS = {"append": (0, LIST), "appendleft": (0, LIST), "extend": (0, LIST), "insert": (1, LIST), "add": (0, SET)}
LONGEST = 60  # Characters of an expression that are told


def keeping(frames: Sequence[At], *, fits: bool, direct: bool) -> Iterator[KeptStatement]:
    """Yield each such statement around a call whose frames come innermost first.

    `fits` says that the call is Keras' `fit`; `direct` that the user's line makes it, not a library.
    """
    around, names = Frames(frames), KnownNames(frames, fits=fits, direct=direct)
    containers, steady = _Containers(around), set(around.each_turn())
    for region in around.regions:
        for node in region.nodes():
            if not isinstance(node, ast.stmt) or (found := _added(node)) is None:
                continue
            container, value, needs = found
            if is_plain(region.source, value):
                continue
            if containers.outlives(container, needs, region):
                yield KeptStatement(
                    at=(region.source.path, node.lineno),
                    container=_text(container),
                    value=_text(value),
                    what=names.kind(value, region.source) or KeptValue.OTHER,
                    fits=fits,
                    each=node in steady,
                )


def _added(node: ast.stmt) -> tuple[ast.expr, ast.expr, str] | None:
    """Return the container, what a statement adds, and the kind that the container has to be; None is nothing."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=container, attr=name), args=arguments)):
            place, kind = ADDS.get(name, (len(arguments), ""))
            return (container, arguments[place], kind) if place < len(arguments) else None
        case ast.AugAssign(target=container, op=ast.Add(), value=ast.List() | ast.ListComp() as value):
            return container, value, LIST
        case ast.Assign(targets=[ast.Subscript(value=container, slice=key), *_], value=value):
            varies = any(isinstance(part, ast.Name) for part in ast.walk(key))
            return (container, value, DICT) if varies and not isinstance(key, ast.Slice) else None
        case _:
            return None


class _Containers:
    """Whether a container outlives the loops around a call, by the file that uses it."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames

    def outlives(self, container: ast.expr, needs: str, region: Region) -> bool:
        """Say whether a container of a kind is made outside of all loops, and keeps what it gets in a region."""
        key, source = key_of(container), region.source
        if key is None or self._may_lose(source, key):
            return False
        made = self._name(key[1], region) if key[0] == "name" else self._attribute(key[1], source)
        kinds = {_kind(value) for value in made if not _is_none(value)}
        if not kinds or None in kinds:
            return False
        in_another = container is not root(container) and needs != DICT
        return needs in kinds or (in_another and bool(kinds & {DICT, LIST}))

    def _name(self, name: str, region: Region) -> Sequence[ast.expr | None]:
        """Return what a name is bound to outside of the loops; () where it may be bound again in them."""
        source = region.source
        scope = source.scope_of_name(name, region.scope)
        at = self.frames.of(scope)
        if scope is not source.tree and (at is None or self.frames.made_anew(at)):
            return ()
        bound = [one for one in source.stores.get((scope, name), ()) if not _extends(one, source)]
        for node in bound:  # a function may bind a name of the module
            if source.scope_of(node) is not scope or (at and not self.frames.once(node, scope)):
                return ()
        return [source.value(node) for node in bound]

    def _attribute(self, name: str, source: UserSource) -> Sequence[ast.expr | None]:
        """Return what attributes of that name are bound to; () where that may be in the loops."""
        of_classes = [
            node
            for (scope, bound), nodes in source.stores.items()
            if bound == name and isinstance(scope, ast.ClassDef)
            for node in nodes
        ]
        nodes = [one for one in (*source.attributes.get(name, ()), *of_classes) if not _extends(one, source)]
        return [source.value(one) for one in nodes] if all(self._once(one, source) for one in nodes) else ()

    def _once(self, node: ast.expr, source: UserSource) -> bool:
        """Say whether an attribute is bound outside of the loops, or where an object is made outside of them."""
        scope = source.scope_of(node)
        if self.frames.once(node, scope):
            return True
        maker = isinstance(scope, Function) and scope.name in MAKERS
        made = source.scope_of(scope) if maker else scope
        return isinstance(made, ast.ClassDef) and all(tail(call) != made.name for _, call in self.frames.calls())

    def _may_lose(self, source: UserSource, key: tuple[str, str]) -> bool:
        """Say whether a container may lose something in the loops, there or in a function of the user's."""
        shrinks = source.shrinks.get(key, ())
        if not all(self.frames.once(node, source.scope_of(node)) for node in shrinks):
            return True
        return any(
            tail(call) in region.source.functions and key in map(key_of, call.args)
            for region, call in self.frames.calls()
        )


LITERALS: dict[type, str] = {
    ast.List: LIST, ast.ListComp: LIST, ast.Dict: DICT, ast.DictComp: DICT, ast.Set: SET, ast.SetComp: SET,
}  # fmt: skip


def _kind(value: ast.expr | None) -> str | None:
    """Return what kind of container an expression makes; None is none, or one that has an end."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _kind(value.left)
    if not isinstance(value, ast.Call):
        return LITERALS.get(type(value))
    name, words = tail(value), {word.arg: word.value for word in value.keywords}
    if name == "field" and "default_factory" in words:
        return MADE.get(tail(words["default_factory"]))
    bounded = name == "deque" and ("maxlen" in words or len(value.args) >= MAXLEN)
    return None if bounded else MADE.get(name)


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _extends(node: ast.expr, source: UserSource) -> bool:
    """Say whether a target is that of `+=` and a list: it keeps its container."""
    parent = source.parents[node]
    return isinstance(parent, ast.AugAssign) and isinstance(parent.value, ast.List | ast.ListComp)


class _Named(ast.NodeTransformer):
    """Leaves out the strings of an expression: any of them may be a password."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Keep numbers."""
        return ast.Name("…") if isinstance(node.value, str | bytes) else node

    def visit_JoinedStr(self, _: ast.JoinedStr) -> ast.expr:
        """Leave it out, whatever is filled in."""
        return ast.Name("…")


def _text(node: ast.expr) -> str:
    """Return an expression as short text, without its strings."""
    text = ast.unparse(_Named().visit(copy.deepcopy(node)))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"
