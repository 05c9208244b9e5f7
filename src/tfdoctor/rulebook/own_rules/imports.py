"""Why a rule of the user that worked with an earlier tfdoctor cannot be imported, and what to change in it."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb

PACKAGE = Path(__file__).resolve().parents[2]


def advice(error: BaseException, path: Path) -> str:
    """Return what to change in a rule that fails to import; "" where that is not known."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    if isinstance(error, AttributeError) and frames[-1].f_globals.get("__name__") == "dataclasses":
        return " A class that inherits from one of tfdoctor's needs no @dataclass: remove the decorator."
    if not isinstance(error, ImportError):
        return ""
    asked_of = error.name or ""
    moved = asked_of.replace("tfdoctor.diagnosis.", "tfdoctor.families.")
    if moved != asked_of and find_spec(moved):
        return f" What rules are written with has moved: import it from {moved}."
    if not asked_of.startswith("tfdoctor.facts"):
        return ""
    asked = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.ImportFrom)]
    names = [one.name for node in asked if node.module == error.name for one in node.names]
    found = [f"{name} from {module}" for name in names if (module := _module_of(name)) not in ("", error.name)]
    if found:
        return f" Facts have moved: import {' and '.join(found)}."
    return " There is no such fact: the page of the manual on facts lists them."


def _module_of(name: str) -> str:
    """Return the module of facts that defines a name; "" where none does."""
    defined = re.compile(rf"^(?:class|def) {re.escape(name)}\b", re.MULTILINE)
    for file in sorted((PACKAGE / "facts").rglob("*.py")):
        if defined.search(file.read_text(encoding="utf-8")):
            return ".".join(("tfdoctor", *file.relative_to(PACKAGE).with_suffix("").parts))
    return ""
