"""The edit that lengthens the interval of saves, where the file shows it as a number that nothing else reads."""

from tfdoctor.edits.kit import *


def longer_interval(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Multiply the number N of ``if step % N == R:`` around a line by the factor of the rule's example.

    R that is not 0 moves by as much as N: the end of each interval stays its end, so that the last save stays late.
    """
    factor = int(in_example(r"\A# (\d+) times as far apart", example, "the interval")[1])
    around = [node for node in module.all(cst.If) if module.covers(node.body, line) and node.orelse is None]
    for condition in reversed(around):
        match condition.test:
            case cst.Comparison(
                left=cst.BinaryOperation(operator=cst.Modulo(), right=number),
                comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Integer() as rest)],
            ):
                moved = rest.evaluated_value
            case cst.UnaryOperation(
                operator=cst.Not(), expression=cst.BinaryOperation(operator=cst.Modulo(), right=number)
            ):
                moved = 0
            case _:
                continue
        literal = _literal(module, number)
        interval = literal.evaluated_value
        longer = [module.replaced(literal, str(interval * factor))]
        return [*longer, module.replaced(rest, str(moved + interval * (factor - 1)))] if moved else longer
    raise Declined("no `if step % N == 0:` is around the line")


def _literal(module: SyntaxTree, number: cst.BaseExpression) -> cst.Integer:
    """Follow a constant, or an attribute of the only object of a class, to the number that the file has for it."""
    match number:
        case cst.Integer():
            return number
        case cst.Name(value=name):
            bound = module.bound(number)
            uses = [
                use
                for use in module.all(cst.Name)
                if use.value == name
                and not {use, module.parent(use)} & {*bound}
                and not is_label(module, use)
                and {*module.bound(use)} & {*bound}
            ]
            if len(bound) != 1 or len(uses) != 1:
                raise Declined(f"`{name}` is used elsewhere")
            sources = Values(module).sources(number)
            whole = len(sources) == 1 and sources[0].whole
            return _literal(module, sources[0].value if whole else _of_parameter(module, number))
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):  # assigned once, and read once
            named = [node for node in module.all(cst.Attribute) if node.attr.value == name]
            targets = [node for node in module.all(cst.AssignTarget) if node.target in named]
            made = module.parent(targets[0]) if len(targets) == 1 and len(named) == 2 else None  # noqa: PLR2004 - same
            if not isinstance(made, cst.Assign) or len(made.targets) != 1:
                raise Declined(f"`{name}` is used elsewhere")
            return _literal(module, made.value)
        case _:
            raise Declined("the interval between two saves is not a number that the file contains")


def _of_parameter(module: SyntaxTree, name: cst.Name) -> cst.BaseExpression:
    """Return what the only object of a class is given for a parameter of its ``__init__``."""
    function, owner = module.nearest(name, cst.FunctionDef), module.nearest(name, cst.ClassDef)
    if function is None or owner is None or function.name.value != "__init__":
        raise Declined(f"the file does not show what `{name.value}` is")
    kind = owner.name.value
    made = [call for call in module.calls(kind) if isinstance(call.func, cst.Name)]
    known = [owner.name, *(call.func for call in made)]
    value = given(function, made[0], name.value, 1) if len(made) == 1 else None
    if value is None or any(use not in known for use in module.all(cst.Name) if use.value == kind):
        raise Declined(f"{kind}() is not made exactly once in the file")
    if value not in (*positional(made[0]), *named(made[0]).values()):
        raise Declined(f"`{name.value}` has its default, which other files may use")
    return value


EDITS = {"longer-interval": longer_interval}
