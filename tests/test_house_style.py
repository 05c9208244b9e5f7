"""The rules of the house that no linter knows."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tfdoctor"
MODULES = sorted(SOURCE.rglob("*.py"))
RULES = sorted(path for path in (SOURCE / "rules").glob("*.py") if path.stem != "__init__")
SHOWN = sorted(
    path
    for folder in ("docs", "examples", "sample_traces", "scripts", "benchmarks", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)
"""What a visitor reads; ours alone would be out of place in it."""

UNNAMED = {"utils", "util", "helpers", "helper", "base", "common", "misc", "manager"}

PRIVATE = re.compile(rb"/(root|work|tmp|Users)/|/home/(?!user\b)")
"""Paths of the machine that something was made on."""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_module_is_named_after_what_it_holds(module: Path) -> None:
    assert module.stem not in UNNAMED


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_a_module_says_what_it_is(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8")))


@pytest.mark.parametrize("rule", RULES, ids=lambda path: path.stem)
def test_a_rule_has_its_tests(rule: Path) -> None:
    assert (ROOT / "tests" / "rules" / f"test_{rule.stem}.py").is_file()


@pytest.mark.parametrize("rule", RULES, ids=lambda path: path.stem)
def test_a_threshold_gives_its_reason(rule: Path) -> None:
    assert list(_unexplained(ast.parse(rule.read_text(encoding="utf-8")))) == []


def _unexplained(module: ast.Module) -> Iterator[str]:
    """Yield the numeric constants of a module that no docstring follows."""
    for statement, following in zip(module.body, [*module.body[1:], None], strict=True):
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=target)], value=ast.Constant(value=int() | float())
            ):
                explained = isinstance(following, ast.Expr) and isinstance(
                    following.value, ast.Constant
                )
                if target.isupper() and not explained:
                    yield target


@pytest.mark.parametrize("path", SHOWN, ids=name)
def test_no_path_of_a_private_machine_is_shown(path: Path) -> None:
    assert PRIVATE.search(path.read_bytes()) is None
