"""The edit that builds a dataset once, before the loop over the epochs, where it is the same at each turn."""

import re
from collections.abc import Iterator

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, root_name
from tfdoctor.edits.names import is_label
from tfdoctor.edits.splice import Declined, Splice, insert
from tfdoctor.edits.values import MUTATORS, Values

# What may give another dataset each time, or make passes over one dataset alike: a cache of random images.
_CHANGES = re.compile(
    r"\b(?:random|rng|seed|cache|snapshot|save|shuffle_seed|global|nonlocal|yield|time|datetime|input|iter|next)\b"
)
# Random choices that are made when the dataset is built; a dataset's own shuffle gets a number.
_LINE_RANDOM = re.compile(r"\.(?:permutation|sample|choice|shuffle)\((?!\s*(?:\d|buffer_size|len\())")


def dataset_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Move the statement on a line that makes a dataset, or calls the function that does, before its loop."""
    values = Values(module)
    statement, made = _made(module, values, line)
    block = module.parent(statement)
    loop = module.parent(block) if block else None
    if not isinstance(loop, cst.For | cst.While) or loop.body is not block:
        raise Declined("the dataset is not made at each turn of one loop")
    for written in (module.written(made.value), *_functions(module, values, made.value)):
        if found := _CHANGES.search(written) or _LINE_RANDOM.search(written):
            raise Declined(f"`{found[0].strip('.(')}` may make another dataset at each turn of the loop")
    used = _names(module, made.value)
    own = {node.value for target in made.targets for node in [target.target] if isinstance(node, cst.Name)}
    changed = [*_bound(module, loop), *_mutated(module, loop)]
    if taken := (used & set(changed)) - own:
        raise Declined(f"`{min(taken)}` changes in the loop")
    if own & used or any(changed.count(name) > 1 for name in own):
        raise Declined("the loop gives the dataset's name other values as well")
    return _moved(module, statement, loop)


def _made(module: SyntaxTree, values: Values, line: int) -> tuple[cst.SimpleStatementLine, cst.Assign]:
    """Return the assignment of a dataset on a line, else that which leads to the function around the line."""
    for statement in _statements(module, values, line):
        match statement.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name())]) as made]:
                if values.is_dataset(made.value) and values.repeated(statement):
                    return statement, made
            case _:
                continue
    raise Declined("the file does not show that a line makes a dataset at each turn of a loop")


def _statements(module: SyntaxTree, values: Values, line: int) -> Iterator[cst.SimpleStatementLine]:
    """Yield the statement on a line, then the only one that calls its function, and so on."""
    on_line = (one for one in module.all(cst.SimpleStatementLine) if module.covers(one, line))
    statement, seen = next(on_line, None), set[int]()
    while statement is not None and id(statement) not in seen:
        yield statement
        seen.add(id(statement))
        function = next(module.around(statement, cst.FunctionDef), None)
        own = function is not None and values.function(function.name.value) is function
        calls = values.calls(function) if function is not None and own else []
        around = [next(module.around(call, cst.SimpleStatementLine), None) for call in calls]
        statement = around[0] if len(around) == 1 else None


def _functions(module: SyntaxTree, values: Values, value: cst.BaseExpression) -> Iterator[str]:
    """Yield the functions of the file that an expression calls, and those that they call."""
    ahead: list[cst.CSTNode] = [value]
    seen = set[str]()
    while ahead:
        part = ahead.pop()
        names = _names(module, part) - seen
        seen |= names
        for function in filter(None, map(values.function, sorted(names))):
            yield module.written(function)
            ahead.append(function)


def _names(module: SyntaxTree, part: cst.CSTNode) -> set[str]:
    named = (node for node in module.all(cst.Name) if module.within(node, part))
    return {node.value for node in named if not is_label(module, node)}


def _bound(module: SyntaxTree, loop: cst.For | cst.While) -> Iterator[str]:
    """Yield the names that a loop binds, once for each place."""
    for node in module.all(cst.Name):
        if module.within(node, loop) and any(node is other for other in module.bound(node)):
            yield node.value
    for augmented in module.all(cst.AugAssign):
        if module.within(augmented, loop):
            yield root_name(augmented.target)


def _mutated(module: SyntaxTree, loop: cst.For | cst.While) -> Iterator[str]:
    for target in module.all(cst.AssignTarget):
        if module.within(target, loop) and not isinstance(target.target, cst.Name | cst.Tuple):
            yield root_name(target.target)
    for call in module.all(cst.Call):
        if isinstance(call.func, cst.Attribute) and module.within(call, loop) and call.func.attr.value in MUTATORS:
            if call.func.attr.value != "shuffle":
                yield root_name(call.func.value)
            yield from (root_name(argument.value) for argument in call.args)


def _moved(module: SyntaxTree, statement: cst.SimpleStatementLine, loop: cst.For | cst.While) -> list[Splice]:
    """Return the splices: the lines of the statement above the loop, and nothing in their place."""
    if len(loop.body.body) == 1:
        raise Declined("the loop does nothing else")
    lines, begin = module.lines, module.span(loop)[0]
    start, end = lines.start(module.span(statement)[0]), module.span(statement)[1]
    last = lines.next(end)
    inner, outer = lines.indent(end - 1 if start == end else start), lines.indent(begin)
    written = module.text[start:last].splitlines(keepends=True)
    if any(line.strip() and not line.startswith(inner) for line in written):
        raise Declined("the lines of the statement are indented in several ways")
    text = "".join(outer + line.removeprefix(inner) if line.strip() else line for line in written)
    if not text.endswith(("\n", "\r")):
        text += lines.newline
    return [insert(lines.start(begin), text), Splice(start, last, 0, "")]


EDITS = {"dataset-once": dataset_once}
