"""Chains of dataset transformations: which one is on a line, where it ends, and what precedes it."""

from collections.abc import Iterable, Iterator

import libcst as cst

from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined, Splice, insert, only
from tfdoctor.edits.syntax import last_name
from tfdoctor.terms.record import Record

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


def only_call(module: SyntaxTree, line: int, methods: Iterable[str]) -> cst.Call:
    """Return the only call of one of some methods on a line.

    Python 3.10 and older record the line on which the whole expression begins.

    Raises:
        Declined: the line has several such calls, or none.
    """
    wanted = set(methods)
    method = f".{next(iter(wanted))}()" if len(wanted) == 1 else "a transformation"
    return only(calls_on(module, line, wanted), f"line {line} has {{}} to {method}")


def whole_chain(module: SyntaxTree, line: int) -> cst.Call:
    """Return the last call of the only chain of transformations on a line.

    Raises:
        Declined: the line has several chains, or none.
    """
    ends = {_end(module, call) for call in calls_on(module, line, TRANSFORMATIONS | MAKERS)}
    outer = [call for call in ends if ends.isdisjoint(module.around(call, cst.Call))]
    if len(outer) != 1:
        many = "several pipelines" if outer else "no dataset transformation"
        raise Declined(f"line {line} has {many}")
    return outer[0]


def calls_on(module: SyntaxTree, line: int, methods: Iterable[str]) -> list[cst.Call]:
    """Return the calls of methods that begin on a line, else those that span it.

    Raises:
        Declined: the line is unknown (0); a file also has pipelines that do not train.
    """
    if not line:
        raise Declined("the line of the pipeline is unknown")
    calls = [call for call in module.all(cst.Call) if _method(call) in methods]
    # Python 3.11 reports the line of the method's name for a call in a chain.
    begun = [call for call in calls if isinstance(call.func, cst.Attribute) and module.line(call.func.attr) == line]
    return begun or [call for call in calls if module.covers(call, line)]


def calls_of(chain: cst.BaseExpression | None) -> Iterator[cst.Call]:
    """Yield the calls of methods of a chain, the last first."""
    while isinstance(chain, cst.Call) and isinstance(chain.func, cst.Attribute):
        yield chain
        chain = chain.func.value


def methods_of(call: cst.Call) -> list[str]:
    """Return the methods of the chain before a call, and its own."""
    return [last_name(call.func) for call in calls_of(call)]


def assigned_before(module: SyntaxTree, call: cst.Call) -> list[cst.Call]:
    """Return the calls assigned, above a chain, to the name that the chain starts with."""
    above = [
        assignment for assignment in module.all(cst.Assign) if module.span(assignment.value) <= module.span(call)
    ]
    names, calls = [module.written(start_of(call))], list[cst.Call]()
    for name in names:  # grows by the earlier names of the dataset
        for assignment in above:
            if module.written(assignment.targets[0].target) != name:
                continue
            calls += [assignment.value] if isinstance(assignment.value, cst.Call) else []
            earlier = module.written(start_of(assignment.value))
            names += [earlier] if earlier not in names else []
    return calls


def mapped_before(module: SyntaxTree, call: cst.Call) -> list[cst.CSTNode]:
    """Return the chains up to a call, and the functions of the file that they name."""
    chains = [call, *assigned_before(module, call)]
    names = {name.value for name in module.all(cst.Name) if any(module.within(name, chain) for chain in chains)}
    functions = [node for node in module.all(cst.FunctionDef) if node.name.value in names]
    return [*chains, *functions]


def assigned(line: cst.CSTNode | None) -> cst.Call | None:
    """Return the call that a line gives one name: ``d = files.map(f)``; None for other lines."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=cst.Call() as call)]
        ):
            return call
        case _:
            return None


def target(line: cst.CSTNode | None) -> str:
    """Return the one name that a line assigns; "" for other lines."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
            return name
        case _:
            return ""


def rebound(line: cst.CSTNode | None) -> str:
    """Return the name of ``d = d.map(f)``; "" where the chain starts with another."""
    call = assigned(line)
    start = start_of(call) if call else None
    return start.value if isinstance(start, cst.Name) and start.value == target(line) else ""


def in_block(
    module: SyntaxTree, node: cst.CSTNode
) -> tuple[cst.SimpleStatementLine | None, list[cst.CSTNode], list[cst.CSTNode]]:
    """Return the statement of a node, and those above and below it in its block."""
    line = module.nearest(node, cst.SimpleStatementLine)
    block = module.parent(line) if line else None
    if line is None or not isinstance(block, cst.Module | cst.IndentedBlock):
        return line, [], []
    body = list(block.body)
    at = body.index(line)
    return line, [*body[:at]], [*body[at + 1 :]]


class Segment(Record):
    """One method of a chain as it is written, from the end of what it is called on: ``.repeat(2)``."""

    start: int
    end: int
    text: str


def segment(module: SyntaxTree, call: cst.Call) -> Segment:
    """Return the part of a chain that one method call adds.

    Raises:
        Declined: parentheses or a comment stand before the method.
    """
    if not isinstance(call.func, cst.Attribute):
        raise Declined("the stage is not a method call")
    start, end = module.span(call.func.value)[1], module.span(call)[1]
    before = module.text[start : module.span(call.func.attr)[0]]
    if before.strip() != ".":
        raise Declined("a comment or a parenthesis stands between the stages")
    return Segment(start, end, module.text[start:end])


def exchanged(module: SyntaxTree, first: cst.Call, second: cst.Call) -> list[Splice]:
    """Return the splices after which two methods of a chain stand in each other's place."""
    one, two = segment(module, first), segment(module, second)
    return [Splice(one.start, one.end, 0, two.text), Splice(two.start, two.end, 0, one.text)]


def appended(module: SyntaxTree, call: cst.Call, new: str, rank: int = 0) -> Splice:
    """Append a method to a call: on a line of its own where each of the chain has one."""
    end, lines = module.span(call)[1], module.lines
    if not isinstance(call.func, cst.Attribute):
        return insert(end, new, rank)
    dot = module.span(call.func.attr)[0]
    head = module.text[lines.start(dot) : dot].rstrip()
    rest = module.text[end : lines.end(end)].strip()
    above = module.text[: lines.start(dot)].rstrip("\r\n").endswith("\\")
    if head.strip() != "." or above:
        return insert(end, new, rank)
    at = lines.end(end) if not rest or rest.startswith("#") else end
    return insert(at, f"{lines.newline}{lines.indent(dot)}{new}", rank)


def start_of(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return the expression that a chain of methods starts with."""
    while isinstance(node, cst.Call | cst.Attribute):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node


def next_call(module: SyntaxTree, made: cst.BaseExpression) -> cst.Call | None:
    """Return the call of the method that is called on an expression."""
    method = module.parent(made)
    call = module.parent(method) if isinstance(method, cst.Attribute) else None
    return call if isinstance(call, cst.Call) and call.func is method else None


def _end(module: SyntaxTree, call: cst.Call) -> cst.Call:
    """Return the last transformation of a chain."""
    following = next_call(module, call)
    while following is not None and _method(following) in TRANSFORMATIONS | {"prefetch"}:
        call, following = following, next_call(module, following)
    return call


def _method(call: cst.CSTNode | None) -> str:
    """Return the name of the method that is called; a maker counts only after ``Dataset.``."""
    match call:
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value=name))):
            other = name in MAKERS and last_name(value) != "Dataset"
            return "" if other else name
        case _:
            return ""
