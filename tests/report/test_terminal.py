"""The terminal: the summary, its tables, and comparisons."""

from tests.report.kit import *


@each(40, 80, 200)
def test_no_line_is_wider_than_asked(width: int) -> None:
    for kind, diagnosis in diagnoses.ALL.items():
        lines = terminal.render(diagnosis(), width=width, color=False).splitlines()
        assert max(map(cell_len, lines)) <= min(width, terminal.WIDEST), kind


@each(*diagnoses.ALL)
def test_without_colour_there_is_no_escape(kind: str) -> None:
    shown = terminal.render(diagnoses.ALL[kind](), width=80, color=False)
    assert all(char.isprintable() or char == "\n" for char in shown)


@each("full", "run", "hostile")
def test_colour_changes_no_word_and_is_the_only_escape(kind: str) -> None:
    coloured, plain = (terminal.render(diagnoses.ALL[kind](), width=80, color=color) for color in (True, False))
    bare = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert bare != coloured
    assert [line.rstrip() for line in bare.splitlines()] == plain.splitlines()


@cases(("", False), ("1", True))
def test_a_pipe_and_no_color_get_none(variable: str, *, is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("NO_COLOR", variable)
    assert "\x1b" not in terminal.render(diagnoses.full(), width=80)


def test_many_findings_are_counted() -> None:
    assert "… 39 more in the report" in terminal.render(diagnoses.huge(), width=80, color=False)


# Widths of columns on a terminal, and words that no line ends within


NAME = "fused-batch-norm.diff"
LONG = "losses differ by up to 1.6 %, those of two unchanged runs are equal"


@cases(
    ((4, 6), (4, 6), 80, [4, 6]),  # no wider than the text
    ((21, 8, 9), (21, 14, 85), 54, [21, 8, 25]),  # the name is whole, the longest cell low
    ((25, 8, 9), (25, 14, 85), 35, [11, 8, 16]),  # one name does not take the width
    ((60, 8, 9), (60, 14, 85), 90, [34, 8, 48]),
    ((9, 4, 8), (9, 4, 8), 18, [7, 4, 7]),  # no room for all words: the longest are broken
    ((0, 3), (0, 3), 2, [1, 1]),
    ((), (), 40, []),
)
def test_words_stay_whole_and_rows_low(
    least: tuple[int, ...], most: tuple[int, ...], room: int, found: list[int]
) -> None:
    assert widths(least, most, room) == found


@cases((48, False), (60, True), (100, True))
def test_a_name_is_broken_only_without_room_beside_the_words_of_the_others(width: int, *, whole: bool) -> None:
    cells = [Text(NAME, "bold"), Text("28.7 ms (15 %)"), Text(LONG), Text(LONG)]
    header = ("change", "promised", "measured", "trains the same?")
    shown = capture(lambda columns: [fitted([cells], columns, header=header)], width=width, color=False)
    assert (NAME in shown, "promised" in shown) == (whole, True)
    assert max(map(len, shown.splitlines())) <= width


def test_no_line_ends_between_a_number_and_its_unit() -> None:
    for width in range(40, 60):
        shown = capture(lambda _: [Text(f"{LONG} (5 to 40 %) in 9.1 s")], width=width, color=False)
        assert " ".join(shown.split()) == f"{LONG} (5 to 40 %) in 9.1 s"
        assert all(part in shown for part in ("1.6 %", "40 %)", "9.1 s"))


# What changes in the user's lines is seen on a terminal, however long they are


LONG_LINES = 'model.compile("sgd", "mse", metrics=[' + ", ".join(f'"metric_{n}"' for n in range(40)) + "]"


def diff(old: str, new: str) -> str:
    lines = ndiff(old.splitlines(), new.splitlines())
    return "\n".join(line.rstrip() for line in lines if not line.startswith("? "))


MANY_LINES = "\n".join(["model.compile(", *(f"    a{n}=1," for n in range(12)), ")"])
texts = Told()
texts[lambda old, new: [*brief(diff(old, new))]] = {
    "a long line is cut around what differs": (f"{LONG_LINES})", f"{LONG_LINES}, steps_per_execution=20)"),
    "in the middle of a long line": (LONG_LINES, LONG_LINES.replace("metric_20", "measure_of_20")),
    "a change longer than the room begins where it begins": ("x = 1", f"x = {LONG_LINES}"),
    "after many lines": (MANY_LINES, MANY_LINES.replace("a11=1,", "a11=1,\n    jit_compile=True,")),
    "what is left out is counted": ("one = 1", "\n".join(f"line {n}" for n in range(11))),
}
test_changes_in_long_lines_and_after_many_are_seen = texts.test("changes")


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
