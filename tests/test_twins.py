"""Programs of benchmarks that are stored as diffs: each applies, and its result is a program."""

import difflib
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks import twins

BENCHMARKS = Path(twins.__file__).parent
DIFFS = sorted(BENCHMARKS.rglob("*.diff"))

TEXTS = st.lists(st.sampled_from(["a", "b", "", " ", "-c", "+d", "@@ -1 +1 @@"])).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


def unified(before: str, after: str, context: int = 3) -> str:
    first, second = (text.splitlines(keepends=True) for text in (before, after))
    return "".join(difflib.unified_diff(first, second, "sick.py", "healthy.py", n=context))


@given(TEXTS, TEXTS, st.integers(0, 3))
def test_a_diff_makes_one_text_of_the_other(before: str, after: str, context: int) -> None:
    assert twins.applied(before, unified(before, after, context)) == after


@given(TEXTS, TEXTS, TEXTS)
def test_a_diff_of_another_text_is_refused(before: str, after: str, other: str) -> None:
    assume(before != after and not other.startswith(before))
    every_line = unified(before, after, context=len(before))
    with pytest.raises(ValueError, match="does not fit"):
        twins.applied(other, every_line)


def test_every_stored_diff_makes_a_program() -> None:
    assert DIFFS
    for diff in DIFFS:
        assert not diff.with_suffix(".py").exists()  # which of the two would be the program?
        compile(twins.text(diff.parent, diff.stem), str(diff), "exec")


def test_a_program_is_written_where_it_can_run_and_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "sick.py").write_text("a\nb\n")
    (tmp_path / "healthy.diff").write_text(unified("a\nb\n", "a\nc\n"))
    assert twins.exists(tmp_path, "healthy")
    assert not twins.exists(tmp_path, "timed")
    assert twins.written(tmp_path, "healthy", tmp_path / "out").read_text() == "a\nc\n"
    assert twins.written(tmp_path, "sick", tmp_path / "out").read_text() == "a\nb\n"
    command = [sys.executable, "-m", "benchmarks.twins", str(tmp_path / "healthy.diff")]
    shown = subprocess.run(command, cwd=BENCHMARKS.parent, capture_output=True, text=True, check=True)
    assert shown.stdout == "a\nc\n"
