"""Statements that give a name a call: ``d = files.map(f)``, and one on itself: ``d = d.map(f)``."""

import libcst as cst


def assigned(line: cst.CSTNode | None) -> cst.Call | None:
    """Return the call that a line assigns to one name; None for other lines."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=cst.Call() as call)
            ]
        ):
            return call
        case _:
            return None


def target(line: cst.CSTNode | None) -> str:
    """Return the one name that a line assigns; "" for other lines."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]
        ):
            return name
        case _:
            return ""


def rebound(line: cst.CSTNode | None) -> str:
    """Return the name of ``d = d.map(f)``; "" where the chain starts with another."""
    node: cst.BaseExpression | None = assigned(line)
    while isinstance(node, cst.Call | cst.Attribute):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node.value if isinstance(node, cst.Name) and node.value == target(line) else ""
