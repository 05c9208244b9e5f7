"""The edit that builds a dataset once, before the loop over the epochs, where it is the same at each turn."""

from tfdoctor.edits.kit import *
from tfdoctor.edits.values import MUTATORS

# What may give another dataset each time, or make passes over one dataset alike: a cache of random images.
_CHANGES = re.compile(
    r"\b(?:random|rng|seed|cache|snapshot|save|shuffle_seed|global|nonlocal|yield|time|datetime|input|iter|next)\b"
)
# Random choices that are made when the dataset is built; a dataset's own shuffle gets a number.
_LINE_RANDOM = re.compile(r"\.(?:permutation|sample|choice|shuffle)\((?!\s*(?:\d|buffer_size|len\())")


def dataset_once(module: SyntaxTree, line: int, _: str) -> list[Splice]:
    """Move the statement on a line that makes a dataset, or calls the function that does, before its loop."""
    values = Values(module)
    statement, own, made = _made(module, values, line)
    block = module.parent(statement)
    loop = module.parent(block) if block else None
    if not isinstance(loop, cst.For | cst.While) or loop.body is not block:
        raise Declined("the dataset is not made at each turn of one loop")
    parts: list[cst.CSTNode] = [made]  # the dataset, the functions of the file that make it, and those they call
    ahead, seen = [*parts], set[str]()
    while ahead:
        names = _names(module, ahead.pop()) - seen
        seen |= names
        functions = [*filter(None, map(values.function, sorted(names)))]
        parts, ahead = [*parts, *functions], [*ahead, *functions]
    for written in map(module.written, parts):
        if found := _CHANGES.search(written) or _LINE_RANDOM.search(written):
            raise Declined(f"`{found[0].strip('.(')}` may make another dataset at each turn of the loop")
    # The names that the loop binds, once for each place, and those whose objects it changes.
    changing = [call for call in module.inside(cst.Call, loop) if isinstance(call.func, cst.Attribute)]
    changing = [call for call in changing if method_of(call) in MUTATORS]
    targets = (node.target for node in module.inside(cst.AssignTarget, loop))
    nodes: list[cst.BaseExpression] = [
        *(node for node in module.inside(cst.Name, loop) if node in module.bound(node)),
        *(node.target for node in module.inside(cst.AugAssign, loop)),
        *(target for target in targets if not isinstance(target, cst.Name | cst.Tuple)),
        *(argument.value for call in changing for argument in call.args),
        *filter(None, (receiver(call) for call in changing if method_of(call) != "shuffle")),
    ]
    used, changed = _names(module, made), list(map(root_name, nodes))
    if taken := (used & set(changed)) - {own}:
        raise Declined(f"`{min(taken)}` changes in the loop")
    if own in used or changed.count(own) > 1:
        raise Declined("the loop gives the dataset's name other values as well")
    return _moved(module, statement, loop)


def _made(module: SyntaxTree, values: Values, line: int) -> tuple[cst.SimpleStatementLine, str, cst.BaseExpression]:
    """Return the statement that gives a name a dataset on a line, or leads to the function there, with both."""
    statement, seen = next(iter(module.on(cst.SimpleStatementLine, line)), None), set[cst.CSTNode]()
    while statement is not None and statement not in seen:
        match statement.body:
            case [cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=made)]:
                if values.is_dataset(made) and values.repeated(statement):
                    return statement, name, made
            case _:
                pass
        seen.add(statement)
        calls = values.callers(statement)
        statement = module.nearest(calls[0], cst.SimpleStatementLine) if len(calls) == 1 else None
    raise Declined("the file does not show that a line makes a dataset at each turn of a loop")


def _names(module: SyntaxTree, part: cst.CSTNode) -> set[str]:
    return {node.value for node in module.inside(cst.Name, part) if not is_label(module, node)}


def _moved(module: SyntaxTree, statement: cst.SimpleStatementLine, loop: Loop) -> list[Splice]:
    """Return the splices: the lines of the statement above the loop, and nothing in their place."""
    if len(loop.body.body) == 1:
        raise Declined("the loop does nothing else")
    lines, begin, gone = module.lines, module.span(loop)[0], module.without(statement)
    end = module.span(statement)[1]
    inner, outer = lines.indent(end - 1 if gone.start == end else gone.start), lines.indent(begin)
    written = module.text[gone.start : gone.end].splitlines(keepends=True)
    if any(line.strip() and not line.startswith(inner) for line in written):
        raise Declined("the lines of the statement are indented in several ways")
    text = "".join(outer + line.removeprefix(inner) if line.strip() else line for line in written)
    if not text.endswith(("\n", "\r")):
        text += lines.newline
    return [insert(lines.start(begin), text), gone]


EDITS = {"dataset-once": dataset_once}
