"""Whether a container outlives the loops around a call: where it is made, and whether it loses anything there."""

from __future__ import annotations

import ast

from .syntax import FUNCTIONS, key_of, root, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .frames import Frames, Region
    from .source import UserSource

    Made = Sequence["ast.expr | None"]  # what a name is bound to; None is unknown

LIST, DICT, SET = "list", "dict", "set"

# Functions that make a container, and its kind.
MADE = {"list": LIST, "deque": LIST, "set": SET, "dict": DICT, "OrderedDict": DICT, "defaultdict": DICT}

LITERALS = (((ast.List, ast.ListComp), LIST), ((ast.Dict, ast.DictComp), DICT), ((ast.Set, ast.SetComp), SET))

MAKERS = frozenset(["__init__", "__post_init__"])

MAXLEN = 2  # Positional arguments of a deque that has a longest length


class Containers:
    """Judges containers by the file that uses them; what it does not show being made is none."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames

    def outlives(self, container: ast.expr, needs: str, region: Region) -> bool:
        """Say whether a container of a kind is made outside of all loops, and keeps what it gets in a region."""
        key, source = key_of(container), region.source
        if key is None or self._may_lose(source, key):
            return False
        by_name = key[0] == "name"
        made = self._name(key[1], region) if by_name else self._attribute(key[1], source)
        kinds = {_kind(value) for value in made or () if not _is_none(value)}
        if not kinds or None in kinds:
            return False
        in_another = container is not root(container) and needs != DICT
        return needs in kinds or (in_another and bool(kinds & {DICT, LIST}))

    def _name(self, name: str, region: Region) -> Made | None:
        """Return what a name is bound to outside of the loops; None where it may be bound again in them."""
        source = region.source
        scope = source.scope_of_name(name, region.scope)
        at = self.frames.of(scope)
        if scope is not source.tree and (at is None or self.frames.made_anew(at)):
            return None
        bound = [one for one in source.stores.get((scope, name), ()) if not _adds(one, source)]
        for node in bound:  # a function may bind a name of the module
            if source.scope_of(node) is not scope or (at and not self.frames.once(node, scope)):
                return None
        return [source.value(node) for node in bound]

    def _attribute(self, name: str, source: UserSource) -> Made | None:
        """Return what attributes of that name are bound to; None where that may be in the loops."""
        of_classes = [
            node
            for (scope, bound), nodes in source.stores.items()
            if bound == name and isinstance(scope, ast.ClassDef)
            for node in nodes
        ]
        nodes = [*source.attributes.get(name, ()), *of_classes]
        nodes = [node for node in nodes if not _adds(node, source)]
        if not all(self._is_bound_once(node, source) for node in nodes):
            return None
        return [source.value(node) for node in nodes]

    def _is_bound_once(self, node: ast.expr, source: UserSource) -> bool:
        """Say whether an attribute is bound outside of the loops, or where an object is made outside of them."""
        scope = source.scope_of(node)
        if self.frames.once(node, scope):
            return True
        maker = isinstance(scope, FUNCTIONS) and scope.name in MAKERS
        made = source.scope_of(scope) if maker else scope
        if not isinstance(made, ast.ClassDef):
            return False
        return all(tail(call) != made.name for _, call in self.frames.calls())

    def _may_lose(self, source: UserSource, key: tuple[str, str]) -> bool:
        """Say whether a container may lose something in the loops, there or in a function of the user's."""
        shrinks = source.shrinks.get(key, ())
        if not all(self.frames.once(node, source.scope_of(node)) for node in shrinks):
            return True
        return any(
            tail(call) in region.source.functions and key in map(key_of, call.args)
            for region, call in self.frames.calls()
        )


def _kind(value: ast.expr | None) -> str | None:
    """Return what kind of container an expression makes; None is none, or one that has an end."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _kind(value.left)
    if not isinstance(value, ast.Call):
        return next((kind for literals, kind in LITERALS if isinstance(value, literals)), None)
    name, words = tail(value), {word.arg: word.value for word in value.keywords}
    factory = words.get("default_factory")
    if name == "field" and factory is not None:
        return MADE.get(tail(factory))
    bounded = name == "deque" and ("maxlen" in words or len(value.args) >= MAXLEN)
    return None if bounded else MADE.get(name)


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _adds(node: ast.expr, source: UserSource) -> bool:
    """Say whether a target is that of `+=` and a list: it keeps its container."""
    parent = source.parents[node]
    return isinstance(parent, ast.AugAssign) and isinstance(parent.value, (ast.List, ast.ListComp))
