"""`tfdoctor diff` as a user runs it, on the sample traces."""

from tests.cli.kit import *
from tests.compare.made import report
from tfdoctor.diagnosis import Conditions, Subject
from tfdoctor.report.formats.json import contract


@pytest.fixture(autouse=True)
def folder(alone: Path) -> None:
    """Have reports of samples and of a run that says nothing of itself, and copies of two samples."""
    for name, sample in (("report", SLOW), ("after", FIXED), ("convnet", CONVNET)):
        (alone / f"{name}.json").write_text(report_of(sample))
    unknown = report([], conditions=Conditions(), subject=Subject(title=""))
    (alone / "empty.json").write_text(json.dumps(contract(unknown)))
    for name, sample in (("slow", SLOW), ("fixed", FIXED)):
        shutil.copytree(sample, alone / name)


told = Told()
told[lambda *words: printed("diff", *words)] = {
    "a run and its report": (SLOW, "report.json", "--max-regression", "1%"),
    "unlike runs are refused with what differs": ("report.json", "after.json", "--format", "json", "--out", "out"),
    "shares are compared without times": ("report.json", "after.json", "--shares"),
    "a regression": ("after.json", "report.json", "--anyway", "--max-regression", "5%"),
    "several recordings": (SLOW, FIXED, "--before", "slow", "--after", "fixed", "--anyway"),
    "a gate that cannot be checked does not pass": ("report.json", "empty.json", "--max-regression", "5%"),
    "another kind of program is compared by shares": ("report.json", "convnet.json", "--shares"),
}


@told
def nothing_is_written_of_unlike_runs() -> object:
    return Path("out").exists()


test_what_a_comparison_prints = told.test("diff")


def test_unlike_runs_are_compared_where_the_user_wants_it() -> None:
    code, output = run("diff", SLOW, FIXED, "--anyway", "--format", "html,json,md", "--out", ".")
    assert code == 0
    assert "faster per step" in output
    assert "no longer found: python-input" in output
    step = json.loads(Path("tfdoctor-diff.json").read_text())["step"]
    assert (step["direction"], step["high"] < -0.5) == ("faster", True)
    page, comment = (Path(f"tfdoctor-diff.{name}").read_text() for name in ("html", "md"))
    assert "input wait gone" in page
    assert len(page) < 100_000
    assert comment.startswith("## tfdoctor: ")
    assert "<!-- tfdoctor-report diff" in comment.splitlines()[0]


@cases(("report.json", SLOW), (SLOW, "report.json"))
def test_rules_that_are_not_applied_are_not_called_fixed(one: object, other: object) -> None:
    """A stored report has the results of all rules."""
    code, output = run("diff", one, other, "--ignore", "float32-matmul")
    assert (code, "float32-matmul" in output) == (0, False)
