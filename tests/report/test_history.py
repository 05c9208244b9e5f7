"""The history in each format."""

from tests.history.made import regressed, report
from tests.report.kit import *
from tfdoctor.report import history_words as words
from tfdoctor.report.history import render, sections


def few() -> History:
    """Return a history of three runs of a program, without a gate, and of one of another."""
    other = report(5, command=("python", "<img src=x>.py", "--flag=</script>"))
    return followed([*noisy([50.0, 51.0, 49.0]), other])


KINDS = {"regressed": regressed, "few": few}


@each(*KINDS)
def test_files_and_terminal(kind: str, golden: Compare) -> None:
    made = KINDS[kind]()
    golden(f"history-{kind}.html", history_page(made, drawn=False))
    golden(f"history-{kind}.txt", capture(sections, made, width=80, color=False))
    for file_format in ("md", "json"):
        golden(f"history-{kind}.{file_format}", render(file_format, made))


def test_a_narrow_terminal_breaks_no_word_and_no_number_from_its_unit() -> None:
    shown = capture(sections, regressed(), width=60, color=False)
    for word in ("metric", "interval", "memory", "regression", "release-1", "021abcdef", "76.8 ms"):
        assert re.search(rf"(?<!\S){word}(?!\S)", shown)
    assert not re.search(r"^ *(ms|s|%)\b", shown, re.MULTILINE)


def compared(change: float, low: float, high: float) -> tuple[str, ...]:
    check = RegressionCheck(limit=None, state=None, runs=9, change=change, low=low, high=high)
    metric = MetricHistory(metric=RunMetric.STEP, what="", values=(), changes=(), why_no_changes="", check=check)
    return words.compared(metric)


texts = Told()
# An interval is positive in the direction of its change.
changes_of_steps = {"longer": (0.27, 0.19, 0.36), "shorter": (-0.2, -0.25, -0.15), "unclear": (-0.02, -0.06, 0.02)}
texts[compared] = changes_of_steps
days = {f"without git, minute {at}": HistoryRun(place="a", recorded=f"2026-11-28T12:{at}:31Z") for at in (50, 51)}
texts[words.commit] = days
test_words_of_a_history = texts.test("history-words")


def test_a_history_without_git_has_runs_and_no_commits() -> None:
    written = render("md", followed([report(day, commit="", committed="") for day in (0, 1)]))
    said = ("The newest run, 2026-03-02 09:00, and the runs before it", "| recorded | day |", "commit")
    assert [one in written for one in said] == [True, True, False]


def test_every_field_of_the_json_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "json-history.md").read_text()

    def names(value: object) -> set[str]:
        if isinstance(value, dict):
            inner = set().union(*map(names, value.values()))
            free = {"findings", "values"}  # by the names of rules and metrics
            own = {key for key in value if not free & {key}} | (free & set(value))
            return own | inner
        return set().union(*map(names, value)) if isinstance(value, list) else set()

    rules = {one.rule for series in regressed().series for one in series.findings}
    found = names(json.loads(render("json", regressed()))) - rules
    assert not {name for name in found if not re.search(rf"[`.]{name}(\[\])?`", text)}


def test_a_column_that_is_empty_in_all_rows_is_not_shown() -> None:
    grid = Grid(("what", "day", "n"), ("text", "text", "number"), (("a", "", "1"), ("b", "", "")))
    assert grid.told() == Grid(("what", "n"), ("text", "number"), (("a", "1"), ("b", "")))
