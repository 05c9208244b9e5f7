"""Figures in the prose of pages that show output: each stands in the output of its page, or is computed from it.

What ``scripts/document.py`` fills in is left out of the prose, and counts as output: `make check` compares it with
the reports.
"""

from tests.kit import *

DOCS = Path(__file__).parents[1] / "docs"

PAGES = (DOCS.parent / "README.md", DOCS / "tutorial.md", DOCS / "gallery" / "index.md")
"""Pages that explain the output that they show."""

FILLED = re.compile(r"<!-- (\w[\w-]*)(?: [^>]*)?-->.*?<!-- /\1 -->", re.DOTALL)
"""A passage that is computed from a stored report; a figure of it stands within a sentence."""

OUTPUT = re.compile(r"```.*?```|<!-- [^/][^>]*-->\n\|.*?<!-- /", re.DOTALL)
"""Commands, output of them, and tables that are computed."""

FIGURE = re.compile(r"(?<![\w.,])(\d[\d.,]*)\s?(ms|µs|s|%|\N{MULTIPLICATION SIGN}(?!\s\d)|MB|GB)(?![\w/])")
"""A number with its unit; one of two that are multiplied is a size."""


def strays(page: str) -> list[str]:
    """Return the figures of a page's prose that stand in none of its output."""
    prose = OUTPUT.sub("", FILLED.sub("", page))
    shown = {found.groups() for text in OUTPUT.findall(page) for found in FIGURE.finditer(text)}
    return [found[0] for found in FIGURE.finditer(prose) if found.groups() not in shown]


@each(*PAGES, ids=lambda page: page.stem)
def test_a_figure_in_prose_stands_in_the_output_of_its_page(page: Path) -> None:
    assert strays(page.read_text("utf-8")) == []


@cases(
    ("The patch saves 75 % of the step.", []),
    ("The patch saves 57 % of the step.", ["57 %"]),
    ("It takes about 12 ms.", ["12 ms"]),
    ("It takes <!-- figure a b ms -->12 ms<!-- /figure -->.", []),
    ("It has 40 channels.", []),
)
def test_a_figure_that_no_output_has_is_found(prose: str, found: list[str]) -> None:
    assert strays(f"{prose}\n\n```\na step is 75 % shorter\n```\n") == found


def test_the_answers_that_a_page_on_comparisons_quotes_are_some_that_a_comparison_gives() -> None:
    page = (DOCS / "how-to" / "compare-two-runs.md").read_text("utf-8")
    first, _, second = page.partition('such as "')[2].partition('." or "')
    quoted = first, " ".join(second.partition('."')[0].split())
    golden = Path(__file__).with_name("report") / "golden"
    given = " ".join(path.read_text("utf-8") for path in golden.glob("diff-*.md"))
    assert all(len(one) > 20 and one in given for one in quoted)
