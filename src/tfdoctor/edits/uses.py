"""Where a dataset is used, followed through the file by its names."""

import libcst as cst

from tfdoctor.edits.chains import next_call
from tfdoctor.edits.module import SyntaxTree
from tfdoctor.edits.splice import Declined

_REPEATED: tuple[type[cst.CSTNode], ...] = (cst.For, cst.While, cst.BaseComp)


def must_only_train(module: SyntaxTree, made: cst.BaseExpression) -> None:
    """Decline unless a dataset is used by one fit() or one loop, and nowhere else.

    The run shows that the dataset trains; a dataset for evaluation needs its last batch.
    """
    seen: set[cst.CSTNode] = set()
    here: cst.BaseExpression | None = made
    while here is not None and here not in seen:
        seen.add(here)
        while (call := next_call(module, here)) is not None:
            here = call
        if _consumed(module, here):
            return
        here = _next(module, here)
    raise Declined("the dataset may also be used for evaluation, which needs its last batch")


def _consumed(module: SyntaxTree, made: cst.BaseExpression) -> bool:
    """Say whether fit() trains on an expression, or a loop iterates over it."""
    match module.parent(made):
        case cst.For(iter=through):
            return through is made
        case cst.Arg() as argument:
            match module.parent(argument):
                case cst.Call(func=cst.Attribute(attr=cst.Name(value="fit")), args=[first, *_]):
                    # It trains on the first argument, or on x.
                    by_name = argument.keyword is not None and argument.keyword.value == "x"
                    return argument is first if first.keyword is None else by_name
                case _:
                    return False
        case _:
            return False


def _next(module: SyntaxTree, made: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the only use of the name that gets an expression, or of the function that returns it."""
    match module.parent(made):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assignment:
            return _only(_uses(module, name, assignment))
        case cst.Return():
            function = module.nearest(made, cst.FunctionDef)
            return _called(module, function) if function is not None else None
        case _:
            return None


def _uses(module: SyntaxTree, name: str, assignment: cst.Assign) -> list[cst.Name]:
    """Return where a name may be read after an assignment.

    That is below it, up to the next assignment in the same block; a global name may also be read in all
    functions. Of an assignment in a loop no use is known, since a read above it may follow it.
    """
    if _again(module, assignment):
        return []
    start, end = module.span(assignment)[1], _until(module, name, assignment)
    named = [node for node in module.all(cst.Name) if node.value == name]
    read = [node for node in named if not isinstance(module.parent(node), cst.AssignTarget)]
    after = [node for node in read if start <= module.span(node)[0] < end]
    function = module.nearest(assignment, cst.FunctionDef)
    if function is None:
        return after + [node for node in read if module.home(node) and node not in after]
    return [node for node in after if function in module.around(node, cst.FunctionDef)]


def _until(module: SyntaxTree, name: str, assignment: cst.Assign) -> int:
    """Return where the next assignment to a name in the same block ends."""
    block = module.parent(module.parent(assignment) or assignment)
    later = [
        module.span(other)[1]
        for other in module.all(cst.Assign)
        if module.written(other.targets[0].target) == name
        and module.parent(module.parent(other) or other) is block
        and module.span(other) > module.span(assignment)
    ]
    return min(later, default=len(module.text))


def _again(module: SyntaxTree, node: cst.CSTNode) -> bool:
    """Say whether a node is in a loop or a comprehension."""
    return any(True for kind in _REPEATED for _ in module.around(node, kind))


def _called(module: SyntaxTree, function: cst.FunctionDef) -> cst.Call | None:
    """Return the only call of a function, unless a loop repeats it."""
    name = function.name.value
    named = [node for node in module.all(cst.Name) if node.value == name]
    use = _only([node for node in named if node is not function.name])
    call = module.parent(use) if use is not None else None
    if use is None or _again(module, use):
        return None
    return call if isinstance(call, cst.Call) and call.func is use else None


def _only(uses: list[cst.Name]) -> cst.Name | None:
    return uses[0] if len(uses) == 1 else None
