"""Statements that give a name a call: ``d = files.map(f)``, and one on itself: ``d = d.map(f)``."""

import libcst as cst

from tfdoctor.edits.chains import start_of


def assigned(line: cst.CSTNode | None) -> cst.Call | None:
    """Return the call that a line assigns to one name; None for other lines."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name())], value=cst.Call() as call)]
        ):
            return call
        case _:
            return None


def target(line: cst.CSTNode | None) -> str:
    """Return the one name that a line assigns; "" for other lines."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
            return name
        case _:
            return ""


def rebound(line: cst.CSTNode | None) -> str:
    """Return the name of ``d = d.map(f)``; "" where the chain starts with another."""
    call = assigned(line)
    start = start_of(call) if call else None
    return start.value if isinstance(start, cst.Name) and start.value == target(line) else ""
