"""The terminal: the summary, its tables, and comparisons."""

from tests.report.kit import *


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_asked(width: int) -> None:
    for kind, diagnosis in diagnoses.ALL.items():
        lines = terminal.render(diagnosis(), width=width, color=False).splitlines()
        assert max(map(cell_len, lines)) <= min(width, terminal.WIDEST), kind


@pytest.mark.parametrize("kind", diagnoses.ALL)
def test_without_colour_there_is_no_escape(kind: str) -> None:
    shown = terminal.render(diagnoses.ALL[kind](), width=80, color=False)
    assert all(char.isprintable() or char == "\n" for char in shown)


@pytest.mark.parametrize("kind", ["full", "run", "hostile"])
def test_colour_changes_no_word_and_is_the_only_escape(kind: str) -> None:
    coloured, plain = (terminal.render(diagnoses.ALL[kind](), width=80, color=color) for color in (True, False))
    bare = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert bare != coloured
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


def test_markup_in_names_stays_text() -> None:
    assert "[bold red]@all" in terminal.render(diagnoses.hostile(), width=100, color=False)


@pytest.mark.parametrize(("is_terminal", "variable"), [(False, ""), (True, "1")])
def test_a_pipe_and_no_color_get_none(monkeypatch: pytest.MonkeyPatch, variable: str, *, is_terminal: bool) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("NO_COLOR", variable)
    assert "\x1b" not in terminal.render(diagnoses.full(), width=80)


def test_a_part_that_exists_is_visible() -> None:
    between = next(
        line for line in terminal.render(diagnoses.full(), width=80, color=False).splitlines() if "between" in line
    )
    assert re.search(r"[▏▎▍▌▋▊▉█]$", between)


def test_many_findings_are_counted() -> None:
    assert "… 39 more in the report" in terminal.render(diagnoses.huge(), width=80, color=False)


# Widths of columns on a terminal, and words that no line ends within


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


# What changes in the user's lines is seen on a terminal, however long they are


LONG_LINES = 'model.compile("sgd", "mse", metrics=[' + ", ".join(f'"metric_{n}"' for n in range(40)) + "]"


def diff(old: str, new: str) -> str:
    return "\n".join(
        line.rstrip() for line in ndiff(old.splitlines(), new.splitlines()) if not line.startswith("? ")
    )


def test_a_long_line_is_cut_around_what_differs() -> None:
    before, after = brief(diff(f"{LONG_LINES})", f"{LONG_LINES}, steps_per_execution=20)"))
    assert before != after
    assert before.startswith("- … ")
    assert before.endswith('"metric_39"])')
    assert after.startswith("+ … ")
    assert after.endswith('"metric_39"], steps_per_execution=20)')


def test_a_change_in_the_middle_of_a_long_line_is_seen() -> None:
    before, after = brief(diff(LONG_LINES, LONG_LINES.replace("metric_20", "measure_of_20")))
    assert '"metric_20"' in before
    assert '"measure_of_20"' in after
    assert before[2:4] == after[2:4] == "… "
    assert before.endswith(" …")


def test_a_change_longer_than_the_room_begins_where_it_begins() -> None:
    _, after = brief(diff("x = 1", f"x = {LONG_LINES}"))
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


WRITTEN = st.text("ab (,", min_size=1, max_size=400).map(lambda text: f"x{text}y")


@given(st.lists(WRITTEN, min_size=1, max_size=3), st.lists(WRITTEN, min_size=1, max_size=3))
def test_no_line_is_longer_than_its_room_nor_lost(old: list[str], new: list[str]) -> None:
    whole = diff("\n".join(old), "\n".join(new))
    shown = brief(whole)
    assert all(len(line) <= WIDEST for line in shown)
    assert [line[:1] for line in shown[:LINES]] == [line[:1] for line in whole.splitlines()][:LINES]


@given(WRITTEN, WRITTEN)
def test_lines_that_differ_never_look_alike(old: str, new: str) -> None:
    shown = brief(diff(old, new))
    if old.rstrip() != new.rstrip():
        before, after = shown
        assert before[2:] != after[2:]


def test_a_long_sentence_of_our_own_is_not_cut() -> None:
    """A regression: of what a window cost, the middle was left out, with the end of its brackets."""
    why = (
        "tracing ended after seven steps, because more would have cost over 10 % of the run until then (it cost "
        "1.4 s, with slower steps and the description of the program): record a longer run for more steps, or use "
        "--no-trace, which costs none of this"
    )
    trusted = replace(diagnoses.full(), trust=Trust(level=TrustLevel.MEDIUM, reasons=(why,)))
    assert why[1:] in " ".join(terminal.render(trusted, width=80, color=False).split())
