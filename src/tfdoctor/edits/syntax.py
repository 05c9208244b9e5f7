"""Parts of Python's syntax: what a node of libcst names, calls and passes on, without the file around it."""

import libcst as cst


def dotted(node: cst.CSTNode) -> str:
    """Return ``a.b.c`` of such an expression, and "" of any other."""
    match node:
        case cst.Name(value=name):
            return name
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            before = dotted(value)
            return f"{before}.{name}" if before else ""
        case _:
            return ""


def last_name(node: cst.CSTNode) -> str:
    """Return ``c`` of ``anything.c`` and of ``c``, and "" of any other expression."""
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return name
        case _:
            return ""


def root_name(node: cst.CSTNode) -> str:
    """Return the name that an expression of attributes and items starts with, "" of any other."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def named(call: cst.Call) -> dict[str, cst.BaseExpression]:
    """Return the arguments that a call gives by name."""
    return {argument.keyword.value: argument.value for argument in call.args if argument.keyword}


def positional(call: cst.Call) -> list[cst.BaseExpression]:
    """Return the arguments that a call gives by their place."""
    return [argument.value for argument in call.args if argument.keyword is None]


def given(function: cst.FunctionDef, call: cst.Call, name: str, skip: int = 0) -> cst.BaseExpression | None:
    """Return the expression that a call gives a parameter, else its default; None where that is unclear.

    ``skip`` is 1 for a method, whose first parameter the call does not give.
    """
    if any(argument.star for argument in call.args):
        return None
    by_place = positional(call)
    names = [parameter.name.value for parameter in function.params.params[skip:]]
    if name in names and names.index(name) < len(by_place):
        return by_place[names.index(name)]
    every = (*function.params.params, *function.params.kwonly_params)
    defaults = {parameter.name.value: parameter.default for parameter in every}
    return named(call).get(name, defaults.get(name))


def receiver(node: cst.CSTNode | None) -> cst.BaseExpression | None:
    """Return ``x`` of the call ``x.method()``; None of anything else."""
    return node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else None


def method_of(node: cst.CSTNode | None) -> str:
    """Return ``method`` of the call ``x.method()``; "" of anything else."""
    return last_name(node.func) if isinstance(node, cst.Call) and receiver(node) else ""


def part_of(value: cst.BaseExpression, place: int) -> cst.BaseExpression | None:
    """Return an element of a written tuple or list."""
    if isinstance(value, cst.Tuple | cst.List) and place < len(value.elements):
        element = value.elements[place]
        return element.value if isinstance(element, cst.Element) else None
    return None


def undecorated(decorator: cst.Decorator) -> cst.BaseExpression:
    """Return the name of a decorator, without arguments."""
    expression = decorator.decorator
    return expression.func if isinstance(expression, cst.Call) else expression
