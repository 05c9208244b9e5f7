"""Writes the files of a new module, for `make rule` and `make fact`, or says why not."""

import ast
import keyword
import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


LONGEST_NAME = 30
"""Characters; with a longer name, the lines that import the module have to be wrapped."""


def check_name(name: str, example: str) -> None:
    """Exit with one sentence where a name is too long, a Python keyword or not small letters and hyphens."""
    if not NAME.fullmatch(name):
        sys.exit(f"{name} is not a valid name: use small letters and hyphens, as in {example}")
    if keyword.iskeyword(name):
        sys.exit(f"{name} is a Python keyword: choose another name, such as {example}")
    if len(name) > LONGEST_NAME:
        sys.exit(f"{name} is too long: use at most {LONGEST_NAME} characters, as in {example}")


def check_class_name(kind: str) -> None:
    """Exit with one sentence where a class of this name exists: facts are found by their class."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if any(isinstance(node, ast.ClassDef) and node.name == kind for node in nodes):
            sys.exit(f"the class {kind} exists in {path.relative_to(ROOT)}: choose another name")


def write(files: Mapping[Path, str]) -> None:
    """Write new files; exit with one sentence, and write none, where one of them exists."""
    for path in files:
        if path.exists():
            sys.exit(f"{path.relative_to(ROOT)} exists: choose another name")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    print("Fill in each TODO (`make check` fails until then), then run `make docs check test`.")
