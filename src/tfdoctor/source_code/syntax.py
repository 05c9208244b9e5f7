"""Parts of Python's syntax: what a node names, calls and passes on, without the file around it."""

import ast

Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def dotted(node: ast.AST) -> str:
    """Return ``a.b.c`` of such an expression, and "" of any other."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            before = dotted(value)
            return f"{before}.{name}" if before else ""
        case _:
            return ""


def last_name(node: ast.AST | None) -> str:
    """Return ``c`` of ``anything.c`` and of ``c``, and "" of any other expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def tail(node: ast.AST | None) -> str:
    """Return the last name of what is called, or of what is no call: "append"; "" where it has none."""
    return last_name(node.func if isinstance(node, ast.Call) else node)


def head(node: ast.expr) -> str:
    """Return the first name of what is called or read: "tf" of ``tf.math.reduce_mean(x)``."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return last_name(node)


def root_name(node: ast.expr) -> str:
    """Return the name that an expression of attributes and items starts with, "" of any other."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return last_name(node)


def named(call: ast.Call) -> dict[str, ast.expr]:
    """Return the arguments that a call gives by name."""
    return {word.arg: word.value for word in call.keywords if word.arg}


def arguments(call: ast.Call) -> list[ast.expr]:
    """Return what a call is given, by place and by name."""
    return [*call.args, *(word.value for word in call.keywords)]


def spread(call: ast.Call) -> bool:
    """Say whether a call has arguments with ``*`` or ``**``, so that it does not show what it gives."""
    return any(isinstance(one, ast.Starred) for one in call.args) or any(not word.arg for word in call.keywords)


def parameters(function: Function) -> list[ast.arg]:
    """Return the parameters that may be given by name."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def given(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """Return the expression that a call gives a parameter, else its default; None where that is unclear."""
    if spread(call):
        return None
    signature = function.args
    names = [one.arg for one in (*signature.posonlyargs, *signature.args)]
    if name in names and (at := names.index(name)) < len(call.args):
        return call.args[at]
    defaults = dict(zip(reversed(names), reversed(signature.defaults), strict=False))
    by_name = zip((one.arg for one in signature.kwonlyargs), signature.kw_defaults, strict=True)
    return named(call).get(name, {**defaults, **dict(by_name)}.get(name))


def receiver(node: ast.AST | None) -> ast.expr | None:
    """Return ``x`` of the call ``x.method()``; None of anything else."""
    return node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None


def method_of(node: ast.AST | None) -> str:
    """Return ``method`` of the call ``x.method()``; "" of anything else."""
    return tail(node) if receiver(node) else ""


def is_number(node: ast.AST | None) -> bool:
    """Say whether a node is a number that is written out."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


def is_text(node: ast.AST | None) -> bool:
    """Say whether a node is a text that is written out."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def own_methods(definition: ast.ClassDef | None, *names: str) -> list[Function]:
    """Return the methods that a class defines itself: those of some names, or all."""
    methods = [part for part in (definition.body if definition else ()) if isinstance(part, Function)]
    return [method for method in methods if not names or method.name in names]
