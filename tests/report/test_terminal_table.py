"""Widths of columns on a terminal, and words that no line ends within."""

import pytest
from rich.text import Text

from tfdoctor.report.terminal import capture
from tfdoctor.report.terminal_table import fitted, widths

NAME = "fused-batch-norm.diff"
LONG = "losses differ by up to 1.6 %, those of two unchanged runs are equal"


@pytest.mark.parametrize(
    ("least", "most", "room", "found"),
    [
        ((4, 6), (4, 6), 80, [4, 6]),  # no wider than the text
        ((21, 8, 9), (21, 14, 85), 54, [21, 8, 25]),  # the name is whole, the longest cell low
        ((25, 8, 9), (25, 14, 85), 35, [11, 8, 16]),  # one name does not take the width
        ((60, 8, 9), (60, 14, 85), 90, [34, 8, 48]),
        ((9, 4, 8), (9, 4, 8), 18, [7, 4, 7]),  # no room for all words: the longest are broken
        ((0, 3), (0, 3), 2, [1, 1]),
        ((), (), 40, []),
    ],
)
def test_words_stay_whole_and_rows_low(
    least: tuple[int, ...], most: tuple[int, ...], room: int, found: list[int]
) -> None:
    assert widths(least, most, room) == found


@pytest.mark.parametrize(("width", "whole"), [(48, False), (60, True), (100, True)])
def test_a_name_is_broken_only_without_room_beside_the_words_of_the_others(width: int, *, whole: bool) -> None:
    cells = [Text(NAME, "bold"), Text("28.7 ms (15 %)"), Text(LONG), Text(LONG)]
    header = ("change", "promised", "measured", "trains the same?")
    shown = capture(lambda columns: [fitted([cells], columns, header=header)], width=width, color=False)
    assert (NAME in shown) is whole
    assert max(map(len, shown.splitlines())) <= width
    assert "promised" in shown


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    for width in range(40, 60):
        shown = capture(lambda _: [Text(f"{LONG} (5 to 40 %) in 9.1 s")], width=width, color=False)
        assert " ".join(shown.split()) == f"{LONG} (5 to 40 %) in 9.1 s"
        assert all(part in shown for part in ("1.6 %", "40 %)", "9.1 s"))
