"""Calls that edits change: their arguments, and chains of dataset transformations."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tfdoctor.source_code.splice import Declined, Splice, insert, only
from tfdoctor.source_code.syntax import arguments, last_name, named, spread, tail
from tfdoctor.source_code.tree import SyntaxTree, place

# Methods of tf.data.Dataset that return a dataset, without prefetch.
TRANSFORMATIONS = frozenset(
    ["apply", "batch", "bucket_by_sequence_length", "cache", "concatenate", "enumerate", "filter", "flat_map",
     "group_by_window", "ignore_errors", "interleave", "map", "padded_batch", "ragged_batch", "rebatch",
     "repeat", "scan", "shard", "shuffle", "skip", "sparse_batch", "take", "take_while", "unbatch", "unique",
     "window", "with_options"]
)  # fmt: skip

# Static methods of tf.data.Dataset that return a dataset.
MAKERS = frozenset(
    ["choose_from_datasets", "from_generator", "from_tensor_slices", "from_tensors", "list_files", "load",
     "random", "range", "sample_from_datasets", "zip"]
)  # fmt: skip


def only_call(module: SyntaxTree, line: int, methods: Iterable[str]) -> ast.Call:
    """Return the only call of one of some methods on a line.

    Python 3.10 and older record the line on which the whole expression begins.

    Raises:
        Declined: the line has several such calls, or none.
    """
    wanted = set(methods)
    method = f".{next(iter(wanted))}()" if len(wanted) == 1 else "a transformation"
    return only(calls_on(module, line, wanted), f"line {line} has {{}} to {method}")


def whole_chain(module: SyntaxTree, line: int) -> ast.Call:
    """Return the last call of the only chain of transformations on a line.

    Raises:
        Declined: the line has several chains, or none.
    """
    ends = {_end(module, call) for call in calls_on(module, line, TRANSFORMATIONS | MAKERS)}
    outer = [call for call in ends if ends.isdisjoint(module.outward(call))]
    if len(outer) != 1:
        many = "several pipelines" if outer else "no dataset transformation"
        raise Declined(f"line {line} has {many}")
    return outer[0]


def calls_on(module: SyntaxTree, line: int, methods: Iterable[str]) -> list[ast.Call]:
    """Return the calls of methods that begin on a line, else those that span it.

    Raises:
        Declined: the line is unknown (0); a file also has pipelines that do not train.
    """
    if not line:
        raise Declined("the line of the pipeline is unknown")
    calls = [call for call in module.all(ast.Call) if _method(call) in methods]
    # Python 3.11 reports the line of the method's name for a call in a chain.
    begun = [call for call in calls if call.func.end_lineno == line]
    return begun or [call for call in calls if module.covers(call, line)]


def calls_of(chain: ast.expr | None) -> Iterator[ast.Call]:
    """Yield the calls of methods of a chain, the last first."""
    while isinstance(chain, ast.Call) and isinstance(chain.func, ast.Attribute):
        yield chain
        chain = chain.func.value


def methods_of(call: ast.Call) -> list[str]:
    """Return the methods of the chain before a call, and its own."""
    return [tail(call) for call in calls_of(call)]


def assigned(statement: ast.stmt | None) -> tuple[str, ast.Call | None]:
    """Return the name and the call of ``d = files.map(f)``; nothing of other statements."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
            return name, call
        case _:
            return "", None


def rebound(statement: ast.stmt | None) -> str:
    """Return the name of ``d = d.map(f)``; "" where the chain starts with another."""
    name, call = assigned(statement)
    return name if call and last_name(start_of(call)) == name else ""


def in_block(
    module: SyntaxTree, node: ast.AST
) -> tuple[ast.stmt | None, list[ast.stmt | None], list[ast.stmt | None]]:
    """Return the statement of a node, and those above and below it in its block; None for each on a shared line."""
    statement = module.simple(node)
    if statement is None or not module.alone(statement):
        return None, [], []
    block, at = module.block(statement), module.block(statement).index(statement)
    alone = [one if module.alone(one) else None for one in block]
    return statement, alone[:at], alone[at + 1 :]


def segment(module: SyntaxTree, call: ast.Call) -> Splice:
    """Return the part of a chain that one method call adds, as it is written: ``.repeat(2)``.

    Raises:
        Declined: parentheses or a comment stand before the method.
    """
    if not isinstance(call.func, ast.Attribute):
        raise Declined("the stage is not a method call")
    start, end = module.span(call.func.value)[1], module.span(call)[1]
    if module.text[start : module.name_at(call.func)].strip() != ".":
        raise Declined("a comment or a parenthesis stands between the stages")
    return Splice(start, end, 0, module.text[start:end])


def exchanged(module: SyntaxTree, first: ast.Call, second: ast.Call) -> list[Splice]:
    """Return the splices after which two methods of a chain stand in each other's place."""
    one, two = segment(module, first), segment(module, second)
    return [replace(one, new=two.new), replace(two, new=one.new)]


def appended(module: SyntaxTree, call: ast.Call, new: str, rank: int = 0) -> Splice:
    """Append a method to a call: on a line of its own where each of the chain has one."""
    end, lines = module.span(call)[1], module.lines
    if not isinstance(call.func, ast.Attribute):
        return insert(end, new, rank)
    dot = module.name_at(call.func)
    head = module.text[lines.start(dot) : dot].rstrip()
    rest = module.text[end : lines.end(end)].strip()
    above = module.text[: lines.start(dot)].rstrip("\r\n").endswith("\\")
    if head.strip() != "." or above:
        return insert(end, new, rank)
    at = lines.end(end) if not rest or rest.startswith("#") else end
    return insert(at, f"{lines.newline}{lines.indent(dot)}{new}", rank)


def start_of(node: ast.expr) -> ast.expr:
    """Return the expression that a chain of methods starts with."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def next_call(module: SyntaxTree, made: ast.expr) -> ast.Call | None:
    """Return the call of the method that is called on an expression."""
    method = module.parent(made)
    call = module.parent(method) if isinstance(method, ast.Attribute) else None
    return call if isinstance(call, ast.Call) and call.func is method else None


def _end(module: SyntaxTree, call: ast.Call) -> ast.Call:
    following = next_call(module, call)
    while following is not None and _method(following) in TRANSFORMATIONS | {"prefetch"}:
        call, following = following, next_call(module, following)
    return call


def _method(call: ast.AST | None) -> str:
    """Return the name of the method that is called; a maker counts only after ``Dataset.``."""
    match call:
        case ast.Call(func=ast.Attribute(value=value, attr=name)):
            other = name in MAKERS and last_name(value) != "Dataset"
            return "" if other else name
        case _:
            return ""


# Arguments of calls: added, or set where they are there already

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
