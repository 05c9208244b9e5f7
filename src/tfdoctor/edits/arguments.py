"""Arguments of calls: added, or set where they are there already."""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice, insert

KEYWORD_ONLY = 99
"""More positional arguments than any call has."""


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
        raise Declined(
            f".{last_name(call.func)}() is called with * or **, so its arguments are unknown"
        )
    given = _given(call, name, position)
    if given is None:
        return _added(module, call, f"{name}={value}")
    value_now = module.written(given.value)
    if value_now not in instead_of:
        raise Declined(f".{last_name(call.func)}() already has {name}={value_now}")
    start, end = module.span(given.value)
    return Splice(start, end, 0, value)


def written(module: SyntaxTree, call: cst.Call, name: str) -> str:
    """Return how the argument of a name is written, or ""."""
    argument = _named(call, name)
    return module.written(argument.value) if argument else ""


def _named(call: cst.Call, name: str) -> cst.Arg | None:
    named = (argument for argument in call.args if argument.keyword)
    return next((arg for arg in named if arg.keyword and arg.keyword.value == name), None)


def _given(call: cst.Call, name: str, position: int) -> cst.Arg | None:
    """Return the argument of a name, else the one at its position."""
    positional = [argument for argument in call.args if argument.keyword is None]
    at_position = positional[position] if len(positional) > position else None
    return _named(call, name) or at_position


def _added(module: SyntaxTree, call: cst.Call, argument: str) -> Splice:
    """Add an argument in the way the others are written: on a line of its own after a trailing comma."""
    end = module.span(call)[1] - 1  # the closing parenthesis
    if not call.args:
        return insert(end, argument)
    last = call.args[-1]
    if not isinstance(last.comma, cst.Comma):
        # The value's own parentheses are not in its span; those of the argument are.
        return insert(module.span(last)[1], f", {argument}")
    if not _plain(module, last, end):
        raise Declined("a comment follows the last argument of the call")
    comma = module.text.index(",", module.span(last.value)[1], end)
    own_line = module.lines.number(comma) < module.lines.number(end)
    if not own_line:
        return insert(comma + 1, f" {argument},")
    first = module.span(last)[0]
    new = f"{module.lines.newline}{module.lines.indent(first)}{argument},"
    return insert(module.lines.end(comma), new)  # after a comment on the last argument


def _plain(module: SyntaxTree, last: cst.Arg, end: int) -> bool:
    """Say whether only parentheses and white space stand between the last value and its comma."""
    rest = module.text[module.span(last.value)[1] : end]
    return "," in rest and not rest.partition(",")[0].strip(" \t\r\n)")
