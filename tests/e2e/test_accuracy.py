"""The accuracy corpus: its pairs, what is kept of them, and the page."""

import difflib
import zipfile

from benchmarks.accuracy import __main__ as accuracy
from benchmarks.accuracy import corpus, results
from benchmarks.accuracy.corpus import Pair
from benchmarks.accuracy.runs import Promise, Report
from benchmarks.accuracy.scores import Measured, Origin
from scripts import document
from tests.e2e.kit import *
from tfdoctor.rules import all_rules


def test_the_corpus_is_large_enough_and_declared_in_full() -> None:
    with zipfile.ZipFile(corpus.PAIRS) as archive:
        scripts = {name for name in archive.namelist() if name.endswith(".py")}
    assert scripts == {f"{pair.name}/{twin}.py" for pair in corpus.CORPUS for twin in corpus.TWINS}
    assert len(scripts) >= 40
    assert sum(bool(pair.trap) for pair in corpus.CORPUS) >= 6


def test_declarations_name_rules_that_exist() -> None:
    rules = {rule.name for rule in all_rules()}
    for pair in corpus.CORPUS:
        named = {*pair.fault, *pair.fixed, *pair.undecided, *filter(None, [pair.remedy])}
        assert named <= rules
        assert pair.exists == (pair.family in rules) or pair.trap


@each(*corpus.CORPUS, ids=[pair.name for pair in corpus.CORPUS])
def test_twins_differ_in_little(pair: Pair) -> None:
    fault, fixed = map(pair.text, corpus.TWINS)
    assert ast.get_docstring(ast.parse(fault)) == ast.get_docstring(ast.parse(fixed))
    same = difflib.SequenceMatcher(None, fault.splitlines(), fixed.splitlines()).ratio()
    assert 0.5 < same < 1.0


def made(name: str, rounds: list[tuple[float, float]], found: set[str], day: str) -> Measured:
    """A pair of the corpus with these rules found in its faulty twin, the remedy's saving promised as 30 %."""
    pair = next(pair for pair in corpus.CORPUS if pair.name == name)
    promises = {pair.remedy: Promise(0.3, at_most=True)} if pair.remedy else {}
    reports = {
        "fault": Report(10.0, frozenset(found), promises, "high"),
        "fixed": Report(5.0, frozenset(), {}, "high"),
    }
    origin = Origin(day, "two cores")
    return Measured(pair, reports, rounds, origin, origin)


FIRST = made("wide_mlp", [(10.0, 5.0), (10.0, 5.2)], {"float32-matmul"}, "2026-11-21")
SECOND = made("tiny_batches", [(2.0, 1.5)], {"small-batch", "idle-device"}, "2026-11-24")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Stored results."""
    results.save([FIRST, SECOND], tmp_path / "results.json")
    return tmp_path / "results.json"


def test_results_are_read_as_they_were_and_those_of_some_pairs_leave_the_others(path: Path) -> None:
    assert results.load(path) == [FIRST, SECOND]
    before = json.loads(path.read_text())
    path.write_text(json.dumps({**before, "rules": ["idle-device"]}))
    again = made("wide_mlp", [(10.0, 4.0)], set(), "2026-11-25")
    results.save([again], path)
    assert results.load(path) == [again, SECOND]
    assert results.judged_by(path) == {"idle-device"}  # not all were judged by the others
    results.save([FIRST, SECOND], path)
    assert results.judged_by(path) == {rule.name for rule in all_rules()}


def test_the_page_is_computed_from_the_stored_results(path: Path) -> None:
    rules = [rule.name for rule in all_rules() if rule.name != "hot-operation"]
    path.write_text(json.dumps({**json.loads(path.read_text()), "rules": rules}))
    (page,) = document.accuracy(path)
    for words in (
        "Timed 2026-11-21 to 2026-11-24 on two cores, up to 2 rounds.",
        "did not judge these recordings: hot-operation.",
        "- precision: 0.667",
        "(idle-device), so that it is unknown whether they are true: 1 of 1",
        "more than 5 % of the step: 1 of 2 (wide_mlp)",
        "| wide_mlp | float32-matmul | yes | 10.0 ms | 5.0 ms | 49% |",
    ):
        assert words in page


def test_the_published_figures_are_those_of_the_stored_results() -> None:
    page = (ROOT / "docs" / "explanation" / "accuracy.md").read_text("utf-8")
    published = re.search(r"<!-- accuracy -->\n(.*)\n<!-- /accuracy -->", page, re.DOTALL)
    assert published
    assert [published[1]] == list(document.accuracy())
    elsewhere = page.replace(published[0], "")
    assert not re.search(r"(recall|precision)[^.]{0,20}\d\.\d\d\d", elsewhere)


def test_what_was_kept_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str] = []

    def step_ms(script: str) -> float:
        runs.append(script)
        return 5.0

    monkeypatch.setattr(accuracy, "step_ms", step_ms)
    pair, file = FIRST.pair, tmp_path / "wide_mlp.json"
    file.write_text("[[10.0, 5.0]]")
    for _ in range(2):
        assert accuracy.kept_times(pair, 2, file) == [(10.0, 5.0), (5.0, 5.0)]
        assert runs == [str(pair.script(twin, tmp_path)) for twin in corpus.TWINS]
        assert json.loads(file.read_text()) == [[10.0, 5.0], [5.0, 5.0]]
