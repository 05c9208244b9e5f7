"""`tfdoctor diff` as a user runs it, on the sample traces."""

from tests.cli.kit import *
from tests.compare.made import report
from tfdoctor.diagnosis import Conditions, Subject
from tfdoctor.report.formats.json import contract


def diff(*words: object) -> tuple[int, str]:
    return run("diff", *words)


def test_a_run_and_its_report_are_the_same(tmp_path: Path) -> None:
    assert run("report", SLOW, "--format", "json", "--out", tmp_path)[0] == 0
    code, output = diff(SLOW, str(tmp_path / "report.json"), "--max-regression", "1%")
    assert code == 4
    assert "24 %): the 95 % interval is wider than ±15 %; record" in output
    assert "Regression gate: undecided (exit code 4). It is unknown whether" in output


def test_unlike_runs_are_refused_with_what_differs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, output = diff(SLOW, FIXED, "--format", "json", "--out", str(out))
    assert code != 0
    assert "command: python input_bound.py → python input_bound_fixed.py" in output
    assert "--anyway" in output
    assert not out.exists()


def test_unlike_runs_are_compared_where_the_user_wants_it(tmp_path: Path) -> None:
    code, output = diff(SLOW, FIXED, "--anyway", "--format", "html,json,md", "--out", str(tmp_path))
    assert code == 0
    assert "faster per step" in output
    assert "no longer found: python-input" in output
    content = json.loads((tmp_path / "tfdoctor-diff.json").read_text())
    assert content["step"]["direction"] == "faster"
    assert content["step"]["high"] < -0.5
    page = (tmp_path / "tfdoctor-diff.html").read_text()
    assert "input wait gone" in page
    assert len(page) < 100_000
    comment = (tmp_path / "tfdoctor-diff.md").read_text()
    assert comment.startswith("## tfdoctor: ")
    assert "<!-- tfdoctor-report diff" in comment.splitlines()[0]


def test_shares_are_compared_without_times() -> None:
    code, output = diff(SLOW, FIXED, "--shares")
    assert code == 0
    assert "faster per step" not in output
    assert "input wait 66 % 3.4 % yes" in output


def test_a_regression_exits_with_3() -> None:
    code, output = diff(FIXED, SLOW, "--anyway", "--max-regression", "5%")
    assert code == 3
    assert "Regression gate: failed" in output


def test_several_recordings_of_each_side(tmp_path: Path) -> None:
    for name, sample in (("slow", SLOW), ("fixed", FIXED)):
        shutil.copytree(sample, tmp_path / name)
    again = ("--before", str(tmp_path / "slow"), "--after", str(tmp_path / "fixed"))
    code, output = diff(SLOW, FIXED, *again, "--anyway")
    assert code == 0
    assert "of two recordings" in output
    assert "With one recording of each" not in output


def test_a_gate_that_cannot_be_checked_does_not_pass(tmp_path: Path) -> None:
    empty = tmp_path / "report.json"
    unknown = report([], conditions=Conditions(), subject=Subject(title=""))
    empty.write_text(json.dumps(contract(unknown)))
    code, output = diff(SLOW, str(empty), "--max-regression", "5%")
    assert code != 0
    assert "--max-regression cannot be checked" in output


def test_a_run_on_another_kind_of_program_compares_by_shares() -> None:
    code, output = diff(SLOW, CONVNET, "--shares")
    assert code == 0
    assert "The runs differ in" in output


def test_rules_that_are_not_applied_are_not_called_fixed(tmp_path: Path) -> None:
    """A stored report has the results of all rules."""
    run("report", SLOW, "--format", "json", "--out", tmp_path)
    stored = tmp_path / "report.json"
    for sides in ((stored, SLOW), (SLOW, stored)):
        code, output = diff(*sides, "--ignore", "float32-matmul")
        assert code == 0
        assert "float32-matmul" not in output
