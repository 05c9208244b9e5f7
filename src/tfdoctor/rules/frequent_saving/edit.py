"""The edit that lengthens the interval of saves, where the file shows it as a number that nothing else reads."""

import re

import libcst as cst

from tfdoctor.edits.by_id import Kind
from tfdoctor.edits.module import SyntaxTree, named, positional
from tfdoctor.edits.names import given, is_label
from tfdoctor.edits.splice import Declined, Splice
from tfdoctor.edits.values import Values

_TIMES = re.compile(r"^# (\d+) times as far apart")


def longer_interval(module: SyntaxTree, line: int, example: str) -> list[Splice]:
    """Multiply the number N of ``if step % N == R:`` around a line by the factor of the rule's example.

    R that is not 0 moves by as much as N: the end of each interval stays its end, so that the last save stays late.
    """
    times = _TIMES.match(example)
    if times is None:
        raise Declined("the finding does not name the interval")
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
        literal, factor = _literal(module, number), int(times[1])
        interval = literal.evaluated_value
        longer = [module.replaced(literal, str(interval * factor))]
        return [*longer, module.replaced(rest, str(moved + interval * (factor - 1)))] if moved else longer
    raise Declined("no `if step % N == 0:` is around the line")


def _literal(module: SyntaxTree, number: cst.BaseExpression) -> cst.Integer:
    """Follow a constant, or an attribute of the only object of a class, to the number that the file has for it."""
    match number:
        case cst.Integer():
            return number
        case cst.Name():
            return _literal(module, _of_name(module, number))
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)):
            return _literal(module, _of_attribute(module, name))
        case _:
            raise Declined("the interval between two saves is not a number that the file contains")


def _of_name(module: SyntaxTree, name: cst.Name) -> cst.BaseExpression:
    """Return what binds a name that has no other use."""
    values = Values(module)
    bound, sources = module.bound(name), values.sources(name)
    uses = [
        use
        for use in module.all(cst.Name)
        if use.value == name.value
        and use not in bound
        and module.parent(use) not in bound
        and not is_label(module, use)
        and any(node in bound for node in module.bound(use))
    ]
    if len(bound) != 1 or len(uses) != 1:
        raise Declined(f"`{name.value}` is used elsewhere")
    whole = len(sources) == 1 and sources[0].whole
    return sources[0].value if whole else _of_parameter(module, name)


def _of_parameter(module: SyntaxTree, name: cst.Name) -> cst.BaseExpression:
    """Return what the only object of a class is given for a parameter of its ``__init__``."""
    function = next(module.around(name, cst.FunctionDef), None)
    owner = next(module.around(name, cst.ClassDef), None)
    if function is None or owner is None or function.name.value != "__init__":
        raise Declined(f"the file does not show what `{name.value}` is")
    kind = owner.name.value
    calls = module.all(cst.Call)
    made = [call for call in calls if isinstance(call.func, cst.Name) and call.func.value == kind]
    known = [owner.name, *(call.func for call in made)]
    uses = [use for use in module.all(cst.Name) if use.value == kind]
    value = given(function, made[0], name.value, 1) if len(made) == 1 else None
    if value is None or any(all(use is not one for one in known) for use in uses):
        raise Declined(f"{kind}() is not made exactly once in the file")
    if value not in (*positional(made[0]), *named(made[0]).values()):
        raise Declined(f"`{name.value}` has its default, which other files may use")
    return value


def _of_attribute(module: SyntaxTree, name: str) -> cst.BaseExpression:
    """Return what the file assigns to an attribute that it reads only once."""
    uses = [node for node in module.all(cst.Attribute) if node.attr.value == name]
    targets = [node for node in module.all(cst.AssignTarget) if node.target in uses]
    assigned = module.parent(targets[0]) if len(targets) == 1 and len(uses) == 2 else None  # noqa: PLR2004 - and its use
    if not isinstance(assigned, cst.Assign) or len(assigned.targets) != 1:
        raise Declined(f"`{name}` is used elsewhere")
    return assigned.value


EDITS: dict[str, Kind] = {"longer-interval": longer_interval}
