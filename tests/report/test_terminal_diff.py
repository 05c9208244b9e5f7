"""What changes in the user's lines is seen on a terminal, however long they are."""

from difflib import ndiff

from hypothesis import given
from hypothesis import strategies as st

from tfdoctor.report.terminal_diff import LINES, WIDEST, brief

LONG = 'model.compile("sgd", "mse", metrics=[' + ", ".join(f'"metric_{n}"' for n in range(40)) + "]"


def diff(old: str, new: str) -> str:
    return "\n".join(
        line.rstrip() for line in ndiff(old.splitlines(), new.splitlines()) if not line.startswith("? ")
    )


def test_a_long_line_is_cut_around_what_differs() -> None:
    before, after = brief(diff(f"{LONG})", f"{LONG}, steps_per_execution=20)"))
    assert before != after
    assert before.startswith("- … ")
    assert before.endswith('"metric_39"])')
    assert after.startswith("+ … ")
    assert after.endswith('"metric_39"], steps_per_execution=20)')


def test_a_change_in_the_middle_of_a_long_line_is_seen() -> None:
    before, after = brief(diff(LONG, LONG.replace("metric_20", "measure_of_20")))
    assert '"metric_20"' in before
    assert '"measure_of_20"' in after
    assert before[2:4] == after[2:4] == "… "
    assert before.endswith(" …")


def test_a_change_longer_than_the_room_begins_where_it_begins() -> None:
    _, after = brief(diff("x = 1", f"x = {LONG}"))
    assert after.startswith("+ ")
    assert 'model.compile("sgd"' in after
    assert after.endswith("]")


def test_a_change_after_many_lines_is_not_left_out() -> None:
    old = "\n".join(["model.compile(", *(f"    a{n}=1," for n in range(12)), ")"])
    new = old.replace("a11=1,", "a11=1,\n    jit_compile=True,")
    shown = brief(diff(old, new))
    assert "+     jit_compile=True," in shown
    assert shown[0] == "      a11=1,"


def test_what_is_left_out_is_counted() -> None:
    new = "\n".join(f"line {n}" for n in range(11))
    shown = brief(diff("one = 1", new))
    assert len(shown) == LINES + 1
    assert shown[-1] == "  … four more lines"


LINE = st.text("ab (,", min_size=1, max_size=400).map(lambda text: f"x{text}y")


@given(st.lists(LINE, min_size=1, max_size=3), st.lists(LINE, min_size=1, max_size=3))
def test_no_line_is_longer_than_its_room_nor_lost(old: list[str], new: list[str]) -> None:
    whole = diff("\n".join(old), "\n".join(new))
    shown = brief(whole)
    assert all(len(line) <= WIDEST for line in shown)
    assert [line[:1] for line in shown[:LINES]] == [line[:1] for line in whole.splitlines()][:LINES]


@given(LINE, LINE)
def test_lines_that_differ_never_look_alike(old: str, new: str) -> None:
    shown = brief(diff(old, new))
    if old.rstrip() != new.rstrip():
        before, after = shown
        assert before[2:] != after[2:]
