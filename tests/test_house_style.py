"""The rules of the house that no linter knows."""

import pkgutil
import tokenize
from collections import Counter

from tests.kit import *

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tfdoctor"
MODULES = sorted(SOURCE.rglob("*.py"))
SHOWN = sorted(
    path
    for folder in ("docs", "examples", "sample_traces", "scripts", "benchmarks", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)
"""What a visitor reads; a path of one developer's machine would be out of place in it."""

VAGUE = {"utils", "util", "helpers", "helper", "base", "common", "misc", "manager"}

PRIVATE = re.compile(rb"/(root|work|tmp|Users)/|/home/(?!user\b)")
"""Paths of the machine that something was made on."""

MOST_MODULES = 20
"""In one folder below a room; a package counts as one."""

IGNORE = re.compile(r"# type: ignore\b")
EXPLAINED_IGNORE = re.compile(r"# type: ignore\[[a-z, -]+\] +# +\w")
"""An error code of mypy, then the reason in a second comment."""

SHARED = {"Limits"}
"""The one class name that every rule uses for the same thing."""


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_a_module_is_named_after_what_it_holds() -> None:
    assert [name(path) for path in MODULES if path.stem in VAGUE] == []


def test_a_class_name_occurs_once() -> None:
    texts = (path.read_text(encoding="utf-8") for path in MODULES)
    classes = Counter(kind for text in texts for kind in re.findall(r"^ *class (\w+)\b.*:", text, re.MULTILINE))
    assert {"Rule", "Record"} <= classes.keys()
    assert [kind for kind, times in classes.items() if times > 1 and kind not in SHARED] == []


def test_a_folder_can_be_taken_in_at_a_glance() -> None:
    folders = {path.parent for path in MODULES if path.parent != SOURCE}
    sizes = {name(folder): len(list(pkgutil.iter_modules([str(folder)]))) for folder in folders}
    assert max(sizes.values()) > 1
    assert [folder for folder, size in sizes.items() if size > MOST_MODULES] == []


def test_a_threshold_gives_its_reason() -> None:
    rules = (SOURCE / "rules").rglob("*.py")
    assert [(path.stem, target) for path in rules for target in _unexplained(path)] == []


def test_nothing_of_a_template_is_left_to_do() -> None:
    files = [path for path in SOURCE.rglob("*") if path.suffix in {".md", ".py"}]
    assert files
    assert [name(path) for path in files if "TODO" in path.read_text(encoding="utf-8")] == []


def test_an_ignored_type_error_has_a_code_and_a_reason() -> None:
    files = [path for folder in ("src", "tests", "scripts", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert files
    assert [place for path in files for place in _unexplained_ignores(path)] == []


def _unexplained_ignores(path: Path) -> Iterator[str]:
    """Yield the place of each `type: ignore` comment without a code or a reason."""
    if not IGNORE.search(path.read_text(encoding="utf-8")):  # to take it apart takes long
        return
    with tokenize.open(path) as source:
        for token in tokenize.generate_tokens(source.readline):
            ignores = token.type == tokenize.COMMENT and IGNORE.search(token.string)
            if ignores and not EXPLAINED_IGNORE.search(token.string):
                yield f"{name(path)}:{token.start[0]}"


def _unexplained(path: Path) -> Iterator[str]:
    """Yield the numeric constants of a module that have no comment, neither beside nor above."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for statement in tree(path).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Constant(value=int() | float())):
                above, beside = lines[statement.lineno - 2], lines[statement.lineno - 1]
                if target.isupper() and not above.startswith("# ") and "  # " not in beside:
                    yield target
            case _:
                continue


def test_no_path_of_a_private_machine_is_shown() -> None:
    assert [name(path) for path in SHOWN if PRIVATE.search(path.read_bytes())] == []
