"""Statements of a loop around training that keep what they are given in a container made outside of the loop.

Read from the source, never run. Only a container that the file shows being made counts, as `[]` or `deque()`, and
nothing is said of one that is made again or that loses anything while the loop runs, as far as the file shows.
"""

import ast
import copy
from collections.abc import Iterator, Sequence

from tfdoctor.capture.sources.frames import At, Frames, Region
from tfdoctor.capture.sources.held import Held, is_plain
from tfdoctor.recording.run_log import KeptStatement
from tfdoctor.source_code.syntax import Function, tail
from tfdoctor.source_code.tree import SyntaxTree
from tfdoctor.terms.kinds import KeptValue

LIST, DICT, SET = "list", "dict", "set"
# Functions that make a container, and its kind.
MADE = {"list": LIST, "deque": LIST, "set": SET, "dict": DICT, "OrderedDict": DICT, "defaultdict": DICT}
MAXLEN = 2  # Positional arguments of a deque that has a longest length
MAKERS = frozenset(["__init__", "__post_init__"])
# Methods that add to a container: which argument they add, and what kind of container has them.
ADDS = {"append": (0, LIST), "appendleft": (0, LIST), "extend": (0, LIST), "insert": (1, LIST), "add": (0, SET)}
# Methods that take something out of a container.
SHRINKS = frozenset(["clear", "pop", "popitem", "popleft", "remove", "discard"])
LONGEST = 60  # Characters of an expression that are told


def keeping(frames: Sequence[At], *, fits: bool, direct: bool) -> Iterator[KeptStatement]:
    """Yield each such statement around a call whose frames come innermost first.

    `fits` says that the call is Keras' `fit`; `direct` that the user's line makes it, not a library.
    """
    around, held = Frames(frames), Held(frames, fits=fits, direct=direct)
    steady = set(around.each_turn())
    for region in around.regions:
        for node in region.nodes():
            if not isinstance(node, ast.stmt) or (found := _added(node)) is None:
                continue
            container, value, needs = found
            if is_plain(region.source, value):
                continue
            if _outlives(container, needs, region, around):
                yield KeptStatement(
                    at=(region.source.path, node.lineno),
                    container=_text(container),
                    value=_text(value),
                    what=held.kind(value, region.source) or KeptValue.OTHER,
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
            parts = [*ast.walk(key)]  # of a remainder, or of a call's result, there may be few
            few = any(isinstance(part, ast.Mod | ast.Call) for part in parts)
            varies = not few and any(isinstance(part, ast.Name) for part in parts)
            return (container, value, DICT) if varies and not isinstance(key, ast.Slice) else None
        case _:
            return None


def _outlives(container: ast.expr, needs: str, region: Region, frames: Frames) -> bool:
    """Say whether a container of a kind is made outside of all loops, and keeps what it gets in a region."""
    key, source = _key_of(container), region.source
    if key is None or _may_lose(source, key, frames):
        return False
    kind, name = key
    bound = _names_bound(name, region, frames) if kind is ast.Name else _attributes_bound(name, source, frames)
    values = [source.value(node) for node in bound]
    kinds = {_kind(value) for value in values if not (isinstance(value, ast.Constant) and value.value is None)}
    if not kinds or None in kinds:
        return False
    in_another = container is not _root(container) and needs != DICT
    return needs in kinds or (in_another and bool(kinds & {DICT, LIST}))


def _names_bound(name: str, region: Region, frames: Frames) -> Sequence[ast.expr]:
    """Return where a name is bound outside of the loops; () where it may be bound again in them."""
    source = region.source
    scope = source.scope_of_name(name, region.scope)
    at = frames.of(scope)
    if scope is not source.tree and (at is None or frames.made_anew(at)):
        return ()
    bound = [one for one in source.stores(scope, name) if not _extends(one, source)]
    # A function may bind a name of the module.
    own = all(source.scope_of(one) is scope and (at is None or frames.once(one, scope)) for one in bound)
    return bound if own else ()


def _attributes_bound(name: str, source: SyntaxTree, frames: Frames) -> Sequence[ast.expr]:
    """Return where attributes of that name are bound; () where that may be in the loops.

    Outside of them is also where an object is made that is made outside of them.
    """
    attributes = (one for one in source.all(ast.Attribute) if one.attr == name and isinstance(one.ctx, ast.Store))
    of_classes = (one for definition in source.all(ast.ClassDef) for one in source.stores(definition, name))
    bound = [one for one in (*attributes, *of_classes) if not _extends(one, source)]
    for node in bound:
        scope = source.scope_of(node)
        maker = isinstance(scope, Function) and scope.name in MAKERS
        made = source.scope_of(scope) if maker else scope
        again = not isinstance(made, ast.ClassDef) or any(tail(call) == made.name for _, call in frames.calls())
        if again and not frames.once(node, scope):
            return ()
    return bound


def _may_lose(source: SyntaxTree, key: tuple[type, str], frames: Frames) -> bool:
    """Say whether a container may lose something in the loops, there or in a function of the user's."""
    shrinks = (node for node in source.nodes if key in map(_key_of, _shrunk(node)))
    if not all(frames.once(node, source.scope_of(node)) for node in shrinks):
        return True
    named = (node.value for node in source.nodes if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr))
    if any(isinstance(value, ast.Name | ast.Attribute) and _key_of(value) == key for value in named):
        return True  # by another name it may be
    calls = (call for file, call in frames.calls() if any(tail(call) == one.name for one in file.functions))
    return any(key in map(_key_of, call.args) for call in calls)


def _shrunk(node: ast.AST) -> list[ast.expr]:
    """Return the containers that a node takes something out of, or all."""
    match node:
        case ast.Call(func=ast.Attribute(value=container, attr=name)) if name in SHRINKS:
            return [container]
        case ast.Delete(targets=targets):
            return [one.value if isinstance(one, ast.Subscript) else one for one in targets]
        case ast.Assign(targets=targets):
            parts = [one for one in targets if isinstance(one, ast.Subscript)]
            return [part.value for part in parts if isinstance(part.slice, ast.Slice)]
        case _:
            return []


def _root(container: ast.expr) -> ast.expr:
    """Return what a container is a part of: `history` of `history["loss"]`."""
    while isinstance(container, ast.Subscript):
        container = container.value
    return container


def _key_of(container: ast.expr) -> tuple[type, str] | None:
    """Return what tells a container from others of the file: its name, or that of the attribute."""
    whole = _root(container)
    return (type(whole), tail(whole)) if isinstance(whole, ast.Name | ast.Attribute) else None


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


def _extends(node: ast.expr, source: SyntaxTree) -> bool:
    """Say whether a target is that of `+=` and a list: it keeps its container."""
    parent = source.parent(node)
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
