"""Every pattern takes time in proportion to a text's length, for names of a recording may be any text.

Each is tried, by the methods that the source calls, with long texts that repeat its own words and what patterns
repeat. A text of `LONG` characters takes a linear pattern a few ms; the square of it takes 0.3 s and more.
"""

from collections import defaultdict
from importlib import import_module

from tests.kit import *

SOURCE = Path(__file__).parents[1] / "src" / "tfdoctor"
LONG, LIMIT_S = 12_000, 0.15
METHODS = frozenset({"search", "match", "fullmatch", "finditer", "findall", "sub", "split"})
UNITS = (
    *(" ", "/", "a/", "a", "1", ".", "_", "'", "(", "[", "<"),
    *("!/", "x ", ":", "\\", "-", "`", ",", "A", "\n", " \n", "1:"),
)

OF_THE_SCRIPT = ("capture", "edits", "trial")
"""Rooms whose patterns meet the user's own files and process, and edits of unchanged files alone."""


def trees() -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text())
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).parts[0] not in OF_THE_SCRIPT and path.name != "edit.py"
    }


def patterns() -> dict[re.Pattern[str], frozenset[str]]:
    """Return the patterns that modules hold, with the methods that any module calls on a name like theirs."""
    parsed, used = trees(), defaultdict[str, set[str]](set)
    for tree in parsed.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                used[getattr(node.value, "id", getattr(node.value, "attr", ""))].add(node.attr)
    found: dict[re.Pattern[str], frozenset[str]] = {}
    for path, tree in parsed.items():
        written = {name for node in tree.body for name in compiled(node)}
        module = module_of(path) if written else None
        for name in sorted(written):
            for pattern in inside(getattr(module, name)):
                found[pattern] = found.get(pattern, frozenset()) | (used[name] or {"fullmatch"})
    return found


def compiled(node: ast.stmt) -> Iterator[str]:
    """Yield the names of a module that hold compiled patterns."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    value = getattr(node, "value", None)
    if value is not None and "re.compile" in ast.unparse(value):
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def module_of(path: Path) -> ModuleType:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return import_module(".".join(parts).removesuffix(".__init__"))


def inside(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield from [value] if isinstance(value.pattern, str) else []
    elif isinstance(value, dict):
        yield from inside([*value, *value.values()])
    elif isinstance(value, tuple | list):
        for one in value:
            yield from inside(one)


def hostile(pattern: str) -> Iterator[str]:
    """Yield long texts of what a pattern may repeat, which it does not match at the end."""
    words = dict.fromkeys(re.findall(r"[A-Za-z_]{2,}", pattern)[:12])
    for unit in (*UNITS, *words, *(f"/{word}" for word in words), *(f"{word}(" for word in words)):
        yield unit * (LONG // len(unit)) + "!"


def seconds(pattern: re.Pattern[str], method: str, text: str) -> float:
    """Return the least of three times: others share the machine."""

    def once() -> float:
        began = time.process_time()
        found = pattern.sub("", text) if method == "sub" else getattr(pattern, method)(text)
        _ = list(found) if method == "finditer" else found
        return time.process_time() - began

    took = once()
    return min(took, once(), once()) if took > LIMIT_S else took


def test_no_pattern_takes_the_square_of_a_length() -> None:
    found = patterns()
    slow = {
        (pattern.pattern[:50], method, text[:20]): took
        for pattern, methods in found.items()
        for text in hostile(pattern.pattern)
        for method in sorted(methods)
        if (took := seconds(pattern, method, text)) > LIMIT_S
    }
    assert not slow
    assert len(found) > 90


def test_the_trap_of_such_a_pattern_is_seen() -> None:
    square = re.compile(r"(.*?)/(body|cond)/_\d+(?=/)")
    assert any(seconds(square, "search", text) > LIMIT_S for text in hostile(square.pattern))
