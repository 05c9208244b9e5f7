"""Statements of a loop around training that keep what they are given in a container made outside of the loop.

Read from the source, never run. Only a container that the file shows being made counts, as `[]` or `deque()`, and
nothing is said of one that is made again or that loses anything while the loop runs, as far as the file shows.
"""

from __future__ import annotations

import ast
import copy

from .containers import DICT, LIST, SET, Containers
from .frames import Frames
from .names import KnownNames
from .syntax import tail
from .values import OTHER, Plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .frames import At

    Added = tuple[ast.expr, ast.expr, str]

# Methods that add to a container: which argument they add, and what kind of container has them.
ADDS = {"append": (0, LIST), "appendleft": (0, LIST), "extend": (0, LIST), "insert": (1, LIST), "add": (0, SET)}
LONGEST = 60  # Characters of an expression that are told


def keeping(frames: Sequence[At], *, fits: bool, direct: bool) -> Iterator[dict[str, object]]:
    """Yield what the log gets of each such statement around a call whose frames come innermost first.

    `fits` says that the call is Keras' `fit`; `direct` that the user's line makes it, not a library.
    """
    around, names = Frames(frames), KnownNames(frames, fits=fits, direct=direct)
    containers, steady = Containers(around), set(around.each_turn())
    for region in around.regions:
        plain = Plain(region.source)
        for node in region:
            if not isinstance(node, ast.stmt):
                continue
            found = added(node)
            if found is None or plain(found[1]):
                continue
            container, value, needs = found
            if containers.outlives(container, needs, region):
                what = names.kind(value, region.source)
                yield {
                    "at": (region.source.path, node.lineno),
                    "container": _text(container),
                    "value": _text(value),
                    "what": what or OTHER,
                    "fits": fits,
                    "each": node in steady,
                }


def added(node: ast.stmt) -> Added | None:
    """Return the container, what a statement adds, and the kind that the container has to be; None is nothing."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _by_method(node.value)
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        more = isinstance(node.value, (ast.List, ast.ListComp))
        return (node.target, node.value, LIST) if more else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        key = node.targets[0].slice
        varies = any(isinstance(part, ast.Name) for part in ast.walk(key))
        if varies and not isinstance(key, ast.Slice):
            return node.targets[0].value, node.value, DICT
    return None


def _by_method(call: ast.Call) -> Added | None:
    place, kind = ADDS.get(tail(call), (len(call.args), ""))
    if not isinstance(call.func, ast.Attribute) or len(call.args) <= place:
        return None
    return call.func.value, call.args[place], kind


class _Named(ast.NodeTransformer):
    """Leaves out the strings of an expression: any of them may be a password."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Keep numbers."""
        return ast.Name("…") if isinstance(node.value, (str, bytes)) else node

    def visit_JoinedStr(self, _: ast.JoinedStr) -> ast.expr:
        """Leave it out, whatever is filled in."""
        return ast.Name("…")


def _text(node: ast.expr) -> str:
    """Return an expression as short text, without its strings."""
    text = ast.unparse(_Named().visit(copy.deepcopy(node)))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"
