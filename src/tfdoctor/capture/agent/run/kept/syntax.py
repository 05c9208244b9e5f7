"""What single nodes of a syntax tree name, repeat or take away."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Loop = ast.For | ast.AsyncFor | ast.While

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# Methods that take something out of a container.
SHRINKS = frozenset(["clear", "pop", "popitem", "popleft", "remove", "discard"])


def parameters(scope: ast.AST) -> set[str]:
    """Return the names that a function is given."""
    if not isinstance(scope, (*FUNCTIONS, ast.Lambda)):
        return set()
    given = scope.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {one.arg for one in every if one is not None}


def repeats_from(loop: Loop) -> int:
    """Return the line from which a loop repeats: what a `for` goes through is made once."""
    return loop.lineno if isinstance(loop, ast.While) else loop.body[0].lineno


def shrunk(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the containers that a node takes something out of, or all."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in SHRINKS:
            yield node.func.value
    elif isinstance(node, ast.Delete):
        for target in node.targets:
            yield target.value if isinstance(target, ast.Subscript) else target
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
                yield target.value


def root(container: ast.expr) -> ast.expr:
    """Return what a container is a part of: `history` of `history["loss"]`."""
    while isinstance(container, ast.Subscript):
        container = container.value
    return container


def key_of(container: ast.expr) -> tuple[str, str] | None:
    """Return what tells a container from others of the file: its name, or that of the attribute."""
    container = root(container)
    if isinstance(container, ast.Name):
        return "name", container.id
    return ("attribute", container.attr) if isinstance(container, ast.Attribute) else None


def tail(node: ast.expr) -> str:
    """Return the last name of what is called: "append"; "" where it has none."""
    called = node.func if isinstance(node, ast.Call) else node
    if isinstance(called, ast.Name):
        return called.id
    return called.attr if isinstance(called, ast.Attribute) else ""


def head(node: ast.expr) -> str:
    """Return the first name of what is called or read: "tf" of `tf.math.reduce_mean(x)`."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def last_line(node: ast.stmt | ast.expr) -> int:
    """Return the last line of a node."""
    return node.end_lineno or node.lineno
