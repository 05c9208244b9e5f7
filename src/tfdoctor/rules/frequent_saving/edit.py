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
            if len(sources) == 1 and sources[0].whole:
                return _literal(module, sources[0].value)
            # What the only object of a class is given for a parameter of its ``__init__``.
            function, owner = module.nearest(number, cst.FunctionDef), module.nearest(number, cst.ClassDef)
            if function is None or owner is None or function.name.value != "__init__":
                raise Declined(f"the file does not show what `{name}` is")
            kind = owner.name.value
            calls = [call for call in module.calls(kind) if isinstance(call.func, cst.Name)]
            of_class = [owner.name, *(call.func for call in calls)]
            value = given(function, calls[0], name, 1) if len(calls) == 1 else None
            if value is None or any(use not in of_class for use in module.all(cst.Name) if use.value == kind):
                raise Declined(f"{kind}() is not made exactly once in the file")
            if value not in (*positional(calls[0]), *named(calls[0]).values()):
                raise Declined(f"`{name}` has its default, which other files may use")
            return _literal(module, value)
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):  # assigned once, and read once
            read = [node for node in module.all(cst.Attribute) if node.attr.value == name]
            targets = [node for node in module.all(cst.AssignTarget) if node.target in read]
            made = module.parent(targets[0]) if len(targets) == 1 and len(read) == 2 else None  # noqa: PLR2004 - same
            if not isinstance(made, cst.Assign) or len(made.targets) != 1:
                raise Declined(f"`{name}` is used elsewhere")
            return _literal(module, made.value)
        case _:
            raise Declined("the interval between two saves is not a number that the file contains")


EDITS = {"longer-interval": longer_interval}
