"""Texts of a recording command neither a terminal nor a CI runner, stand on a line and have an end."""

from tests.kit import *
from tfdoctor.terms import text

ESCAPES = "\x1b]0;PWNED\x07\x9b2J\x00\x7f"
MARKS = "\u202e\u2066\u200f\u2028\ufeff\ud800"


@each(*ESCAPES, *MARKS, "\r")
def test_what_hides_is_printed_as_an_escape(hidden: str) -> None:
    shown = text.harmless(f"a{hidden}b\n\tc\r\n")
    assert shown == f"a{hidden.encode('unicode_escape', 'surrogatepass').decode()}b\n\tc\r\n"
    assert text.legible(f"a{hidden}b") == shown.partition("\n")[0]


@cases(
    ("::error::x", r"\::error::x"),
    ("\u3000 \t::stop-commands::x", "\u3000 \t" + r"\::stop-commands::x"),
    ("a ##[group]x", r"a #\#[group]x"),
    ("##vso[task.complete]", r"#\#vso[task.complete]"),
    ("####teamcity[x]", r"###\#teamcity[x]"),
    ("a::b", "a::b"),
    ("## [title](address)", "## [title](address)"),
)
def test_no_line_commands_a_runner(line: str, shown: str) -> None:
    assert text.harmless(f"first\n{line}\n") == f"first\n{shown}\n"


def test_colors_of_ours_stay_and_hide_no_command() -> None:
    assert text.harmless("\x1b[1;31ma\x1b[0m\x1b[2J", colored=True) == "\x1b[1;31ma\x1b[0m\\x1b[2J"
    assert text.harmless("\x1b[1m ::error::a", colored=True) == "\x1b[1m \\::error::a"
    assert text.harmless("\x1b[1ma") == "\\x1b[1ma"


def test_json_without_signs_is_the_same_json() -> None:
    assert text.uncommanding_json('["##vso[x]", "# [a]"]') == '["#\\u0023vso[x]", "# [a]"]'


def test_a_name_is_read_on_a_line_and_with_an_end() -> None:
    assert text.as_read("a \n\n::error::b\tc") == "a ::error::b c"
    assert text.as_read("/home/\udcff/train.py") == "/home/\udcff/train.py"
    read = text.as_read(f"begin{'x' * 1_000_000}end")
    assert (len(read) <= text.LONGEST + 1, read[:5], read[-3:]) == (True, "begin", "end")
    assert int("1" * text.LONGEST)  # Python converts no more than 4,300 digits


def test_an_error_about_a_name_hides_nothing() -> None:
    assert str(InputError("\x1b]0;PWNED\x07 was not found.")) == r"\x1b]0;PWNED\x07 was not found."


LONG: tuple[Callable[[str], object], ...] = (
    text.name, text.prose, text.sentence, text.block, text.legible, text.harmless, text.as_read,
    text.unbroken, text.uncommanding_json, lambda one: text.harmless(one, colored=True),
)  # fmt: skip


@each(" ", "/", "a/", ".", "1", " 1", "#", "##a", ":", "\n", " \n", "\x1b[", "\u202e", "a b")
def test_a_long_text_takes_time_by_its_length(unit: str) -> None:
    """Of the square of these 100,000 characters, 25 seconds would be the least."""
    began = time.process_time()
    for shown in LONG:
        shown(unit * (100_000 // len(unit)) + "!")
    assert time.process_time() - began < 10
