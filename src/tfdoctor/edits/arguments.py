"""Arguments of calls: added, or set where they are there already."""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.syntax import last_name, named, positional

KEYWORD_ONLY = 99  # More positional arguments than any call has


def setting(
    module: SyntaxTree,
    call: cst.Call,
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
    if any(argument.star for argument in call.args):
        raise Declined(f".{last_name(call.func)}() is called with * or **, so its arguments are unknown")
    given = named(call).get(name) or next(iter(positional(call)[position:]), None)
    if given is None:
        return _added(module, call, f"{name}={value}")
    if module.written(given) not in instead_of:
        raise Declined(f".{last_name(call.func)}() already has {name}={module.written(given)}")
    return module.replaced(given, value)


def written(module: SyntaxTree, call: cst.Call, name: str) -> str:
    """Return how the argument of a name is written, or ""."""
    value = named(call).get(name)
    return module.written(value) if value else ""


def _added(module: SyntaxTree, call: cst.Call, argument: str) -> Splice:
    """Add an argument in the way the others are written: on a line of its own after a trailing comma."""
    end = module.span(call)[1] - 1  # the closing parenthesis
    if not call.args:
        return insert(end, argument)
    last = call.args[-1]
    if not isinstance(last.comma, cst.Comma):
        # The value's own parentheses are not in its span; those of the argument are.
        return insert(module.span(last)[1], f", {argument}")
    # Only parentheses and white space may stand between the last value and its comma.
    between, comma_written, _ = module.text[module.span(last.value)[1] : end].partition(",")
    if not comma_written or between.strip(" \t\r\n)"):
        raise Declined("a comment follows the last argument of the call")
    comma = module.text.index(",", module.span(last.value)[1], end)
    if module.lines.number(comma) == module.lines.number(end):
        return insert(comma + 1, f" {argument},")
    first = module.span(last)[0]
    new = f"{module.lines.newline}{module.lines.indent(first)}{argument},"
    return insert(module.lines.end(comma), new)  # after a comment on the last argument
