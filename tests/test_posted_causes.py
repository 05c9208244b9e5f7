"""The page of causes that people post: each is named by a rule that exists, and was tested where the page says."""

from tests.kit import *
from tests.synthetic.test_catalogue import PAIRS
from tfdoctor.rules import all_rules

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "causes-that-people-post.md"
CAUSES = 38
"""How many were collected; none is dropped because no rule names it."""

ROWS = {
    int(cells[0]): cells[1:]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if (cells := [cell.strip() for cell in line.strip("|").split(" | ")])[0].strip().isdigit()
}
TESTED = [number for number, cells in ROWS.items() if not cells[2].startswith("none: ")]
"""Those that a rule finds; of the others, a rule's page says why none can."""

RULES = {rule.name for rule in all_rules()}


def test_every_cause_has_a_row_with_its_threads() -> None:
    assert list(ROWS) == list(range(1, CAUSES + 1))
    for cells in ROWS.values():
        assert all(cells)
        threads = cells[1]
        assert re.search(r"\]\(https://github\.com/[\w-]+/[\w-]+/(?:issues|pull)/\d+\)", threads)


@each(*ROWS)
def test_a_rule_names_the_cause_or_its_page_says_why_none_can(number: int) -> None:
    named = re.findall(r"\]\(\.\./rules/([\w-]+)\.md\)", ROWS[number][2])
    assert named
    assert set(named) <= RULES


@each(*TESTED)
def test_the_cause_was_tested_where_the_page_says(number: int) -> None:
    """By a test of one of its rules, which names it, or by a pair of runs of that name."""
    rules, tested = ROWS[number][2:]
    texts = [(PAGE.parent / path).read_text() for path in re.findall(r"\]\(([^)]+)\)", tested)]
    assert texts
    names = re.findall(r"/rules/([\w-]+)\.md", rules)
    assert any(name in text or name.replace("-", "_") in text for name in names for text in texts)
    for run in re.findall(r"`([\w ]+)`", tested):
        assert run in PAIRS or any(f'"{run}"' in text for text in texts)
