"""Arguments of calls: added, or set where they are there already."""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined, Splice, insert


def setting(
    module: SyntaxTree,
    call: cst.Call,
    name: str,
    value: str,
    *,
    instead_of: tuple[str, ...],
    position: int = 99,
) -> Splice:
    """Return the splice after which a call has ``name=value``.

    An argument that is there is replaced only if it is written as one of ``instead_of``; ``position``
    is how many positional arguments can be given before this one.

    Raises:
        Declined: what the call gets cannot be told from its line, or somebody chose another value.
    """
    if any(argument.star for argument in call.args):
        raise Declined(f"what .{last_name(call.func)}() gets is not written out (* or **)")
    given = next((each for each in call.args if each.keyword and each.keyword.value == name), None)
    positional = [each for each in call.args if each.keyword is None]
    if given is None and len(positional) > position:
        given = positional[position]
    if given is None:
        return _added(module, call, f"{name}={value}")
    value_now = module.written(given.value)
    if value_now not in instead_of:
        raise Declined(f".{last_name(call.func)}() is given {name}={value_now}")
    start, end = module.span(given.value)
    return Splice(start, end, 0, value)


def written(module: SyntaxTree, call: cst.Call, name: str) -> str:
    """Return how the argument of a name is written, or ""."""
    found = [each for each in call.args if each.keyword and each.keyword.value == name]
    return module.written(found[0].value) if found else ""


def _added(module: SyntaxTree, call: cst.Call, argument: str) -> Splice:
    """Add an argument in the way the others are written: on a line of its own after a trailing comma."""
    end = module.span(call)[1] - 1  # the closing parenthesis
    if not call.args:
        return insert(end, argument)
    last = call.args[-1]
    if not isinstance(last.comma, cst.Comma):
        # The value's own parentheses are not in its span; those of the argument are.
        return insert(module.span(last)[1], f", {argument}")
    comma = (
        module.text.index(",", module.span(last.value)[1], end) if _plain(module, last, end) else -1
    )
    if comma < 0:
        raise Declined("there is a comment behind its last argument")
    own_line = module.lines.number(comma) < module.lines.number(end)
    if not own_line:
        return insert(comma + 1, f" {argument},")
    first = module.span(last)[0]
    new = f"{module.lines.newline}{module.lines.indent(first)}{argument},"
    return insert(module.lines.end(comma), new)  # behind what is said of the last one


def _plain(module: SyntaxTree, last: cst.Arg, end: int) -> bool:
    """Say whether only parentheses and white space stand between the last value and its comma."""
    rest = module.text[module.span(last.value)[1] : end]
    return "," in rest and not rest.partition(",")[0].strip(" \t\r\n)")
