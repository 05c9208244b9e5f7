"""Where the dataset that a call makes goes, followed through the file by its names."""

import libcst as cst

from tfdoctor.edits.module import SyntaxTree, last_name
from tfdoctor.edits.splice import Declined

_REPEATED: tuple[type[cst.CSTNode], ...] = (cst.For, cst.While, cst.BaseComp)


def must_only_train(module: SyntaxTree, made: cst.BaseExpression) -> None:
    """Decline unless a dataset goes to one fit() or one loop over it, and nowhere else.

    That it is the one that trains is known of the run: what is evaluated on has to stay whole.
    """
    seen: set[cst.CSTNode] = set()
    here: cst.BaseExpression | None = made
    while here is not None and here not in seen:
        seen.add(here)
        here = _chain(module, here)
        if _consumed(module, here):
            return
        here = _next(module, here)
    raise Declined("its dataset may be evaluated on too, which has to stay whole")


def _chain(module: SyntaxTree, made: cst.BaseExpression) -> cst.BaseExpression:
    """Return the last call of the chain of methods that begins with an expression."""
    while True:
        method = module.parent(made)
        call = module.parent(method) if isinstance(method, cst.Attribute) else None
        if not isinstance(call, cst.Call) or call.func is not method:
            return made
        made = call


def _consumed(module: SyntaxTree, made: cst.BaseExpression) -> bool:
    """Say whether an expression is what fit() trains on, or what a loop goes through."""
    match module.parent(made):
        case cst.For(iter=through):
            return through is made
        case cst.Arg() as argument:
            call = module.parent(argument)
            return isinstance(call, cst.Call) and _trained(call) is argument
        case _:
            return False


def _trained(call: cst.Call) -> cst.Arg | None:
    """Return what a call of fit() trains on: its first argument, or x."""
    if not isinstance(call.func, cst.Attribute) or last_name(call.func) != "fit":
        return None
    first = call.args[0]
    named = [each for each in call.args if each.keyword and each.keyword.value == "x"]
    return first if first.keyword is None else next(iter(named), None)


def _next(module: SyntaxTree, made: cst.BaseExpression) -> cst.BaseExpression | None:
    """Return the only use of what an expression is given to: a name, or the function that returns it."""
    match module.parent(made):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as given:
            return _only(_uses(module, name, given))
        case cst.Return():
            function = _function(module, made)
            return _called(module, function) if function is not None else None
        case _:
            return None


def _uses(module: SyntaxTree, name: str, given: cst.Assign) -> list[cst.Name]:
    """Return where a name may be read once a statement has given it a dataset.

    That is behind it, until the next such statement, and of a name of the whole file in all functions; nowhere
    where the statement is in a loop, behind which may be above it.
    """
    if _again(module, given):
        return []
    end, last, own = module.span(given)[1], _until(module, name, given), _function(module, given)
    named = [each for each in module.all(cst.Name) if each.value == name]
    read = [each for each in named if not isinstance(module.parent(each), cst.AssignTarget)]
    after = [each for each in read if end <= module.span(each)[0] < last]
    if own is None:
        return after + [one for one in read if _function(module, one) and one not in after]
    return [each for each in after if own in module.around(each, cst.FunctionDef)]


def _until(module: SyntaxTree, name: str, given: cst.Assign) -> int:
    """Return where the next statement of the same block ends that gives a name something."""
    block = module.parent(module.parent(given) or given)
    later = [
        module.span(each)[1]
        for each in module.all(cst.Assign)
        if module.written(each.targets[0].target) == name
        and module.parent(module.parent(each) or each) is block
        and module.span(each) > module.span(given)
    ]
    return min(later, default=len(module.text))


def _function(module: SyntaxTree, node: cst.CSTNode) -> cst.FunctionDef | None:
    return next(module.around(node, cst.FunctionDef), None)


def _again(module: SyntaxTree, node: cst.CSTNode) -> bool:
    """Say whether a node is in a loop or a comprehension."""
    return any(True for kind in _REPEATED for _ in module.around(node, kind))


def _called(module: SyntaxTree, function: cst.FunctionDef) -> cst.Call | None:
    """Return the only call of a function, where it is called once in a run."""
    name = function.name.value
    uses = [
        each for each in module.all(cst.Name) if each.value == name and each is not function.name
    ]
    use = _only(uses)
    call = module.parent(use) if use is not None else None
    if use is None or _again(module, use):
        return None
    return call if isinstance(call, cst.Call) and call.func is use else None


def _only(uses: list[cst.Name]) -> cst.Name | None:
    return uses[0] if len(uses) == 1 else None
