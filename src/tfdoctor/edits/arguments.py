"""Arguments of calls: added, or set where they are there already."""

import ast
import re

from tfdoctor.source_code.splice import Declined, Splice, insert
from tfdoctor.source_code.syntax import arguments, named, spread, tail
from tfdoctor.source_code.tree import SyntaxTree, place

_COMMENT = re.compile(r"#[^\r\n]*")
KEYWORD_ONLY = 99  # More positional arguments than any call has


def setting(
    module: SyntaxTree,
    call: ast.Call,
    name: str,
    value: str,
    *,
    instead_of: tuple[str, ...],
    position: int = KEYWORD_ONLY,
) -> Splice:
    """Return the splice after which a call has ``name=value``.

    An existing argument is replaced only if it is written as one of ``instead_of``; ``position``
    is how many positional arguments can be given before this one.

    Raises:
        Declined: the line does not show what the call gets, or somebody chose another value.
    """
    if spread(call):
        raise Declined(f".{tail(call)}() is called with * or **, so its arguments are unknown")
    given = named(call).get(name) or next(iter(call.args[position:]), None)
    if given is None:
        return _added(module, call, f"{name}={value}")
    if module.written(given) not in instead_of:
        raise Declined(f".{tail(call)}() already has {name}={module.written(given)}")
    return module.replaced(given, value)


def written(module: SyntaxTree, call: ast.Call, name: str) -> str:
    """Return how the argument of a name is written, or ""."""
    value = named(call).get(name)
    return module.written(value) if value else ""


def _added(module: SyntaxTree, call: ast.Call, argument: str) -> Splice:
    """Add an argument in the way the others are written: on a line of its own after a trailing comma."""
    end = module.span(call)[1] - 1  # the closing parenthesis
    if not arguments(call):
        return insert(end, argument)
    last = max((*call.args, *call.keywords), key=place)
    first, after = module.span(last)[0], min(module.span(last)[1], end)  # a generator may have the call's
    behind = module.text[after:end]  # Only parentheses, a comma, comments and white space stand there
    plain = _COMMENT.sub(lambda comment: " " * len(comment.group()), behind)
    if "," not in plain:
        return insert(after + plain.rfind(")") + 1, f", {argument}")
    before, _, _ = behind.partition(",")
    if before.strip(" \t\r\n)"):
        raise Declined("a comment follows the last argument of the call")
    comma = after + len(before)
    if module.lines.number(comma) == module.lines.number(end):
        return insert(comma + 1, f" {argument},")
    new = f"{module.lines.newline}{module.lines.indent(first)}{argument},"
    return insert(module.lines.end(comma), new)  # after a comment on the last argument
