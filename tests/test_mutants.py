"""The faults that show what the tests would catch."""

from scripts.mutants import again, faults, sample
from tests.kit import *


def changed(source: str) -> list[str]:
    return [source[: one.start] + one.new + source[one.end :] for one in faults("file.py", source)]


@cases(
    ("a < b == c", ["pass", "a <= b == c", "a < b != c"]),
    ("x = 'é' not  in b", ["x = 'é' in b"]),
    ("x = not a", ["x = (a)"]),
    ("x = a and b or c", ["x = a and b and c", "x = a or b or c"]),
    ("x = a + 3", ["x = a - 3", "x = a + 4"]),
    ("x = f'{a + 1}'", []),
    ("x: int | None = True", ["x: int | None = False"]),
    (
        "def f(a: int = 2.5) -> 1: return a",
        ["def f(a: int = 5.0) -> 1: return a", "def f(a: int = 2.5) -> 1: return None"],
    ),
    ("while a: break", ["while not (a): break", "while a: pass"]),
    ("a.b = [c for c in d if c]", ["pass", "a.b = [c for c in d if not (c)]"]),
    ("if TYPE_CHECKING: x = 1", []),
)
def test_what_a_line_could_be_changed_to(source: str, others: list[str]) -> None:
    assert changed(source) == others
    for text in others:
        ast.parse(text)


def test_a_fault_is_found_again_in_a_tree_where_its_line_is_elsewhere() -> None:
    """By the text of its line, also in another file; one that is gone, or stands in two others, is told apart."""
    old = faults("a.py", "x = 1\ny = 2\nz = 3\nz = 3\n")
    new = faults("a.py", "\n\nx = 1\nz = 3\n") + faults("b.py", "  \ny = 2\n")
    found = [one for one, _ in again(new, [one._asdict() for one in old])]
    assert [one and (one.file, one.line) for one in found] == [("a.py", 3), ("b.py", 2), ("a.py", 4), None]


def test_a_sample_is_of_lines_and_the_same_each_time() -> None:
    every = faults("a.py", "x = 1 + 2 + 3 + 4\n" + "y = 1\n" * 3)
    assert sample(every, 3, seed=1) == sample(every, 3, seed=1)
    assert sorted(one.line for one in sample(every, 9, seed=1)) == [1, 2, 3, 4]
