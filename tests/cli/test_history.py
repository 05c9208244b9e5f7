"""`tfdoctor history` on the command line: stored reports of a sample with other commits, and what is refused."""

import fsspec

from tests.cli.kit import *
from tests.history.made import commit, moment

SAMPLE = SAMPLES / "cpu-outside-steps"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of a sample."""
    out = tmp_path_factory.mktemp("report")
    rules = "slow-preparation,retracing,input-bound"
    assert run("report", SAMPLE, "--out", out, "--format", "json", "--select", rules)[0] == 0
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


Runs = Callable[..., None]


@pytest.fixture(autouse=True)
def runs(stored: dict[str, Any], alone: Path) -> Runs:
    def write(*levels: float, program: str = "train.py") -> None:
        """Write a report for each level, with the commit of a day of its own and noise of 1 %."""
        draw = random.Random(0)
        for day, level in enumerate(levels):
            subject = {"command": ["python", program], "commit": commit(day)}
            subject |= dict.fromkeys(("committed", "recorded"), moment(day))
            conditions = {"untraced_ms": 20 * level * draw.lognormvariate(0, 0.01)}
            folder = alone / "runs" / program / f"{day:02}"
            folder.mkdir(parents=True)
            changed = {"subject": stored["subject"] | subject, "conditions": stored["conditions"] | conditions}
            (folder / "report.json").write_text(json.dumps(stored | changed))

    return write


def history(*words: str) -> tuple[int, str]:
    return run("history", *words)


def test_a_regression_fails_until_it_is_accepted(runs: Runs) -> None:
    runs(*[1.0] * 12, *[1.3] * 12)
    gate = ("runs", "--max-regression", "5%")
    code, output = history(*gate, "--format", "json,md,html")
    assert code == 3
    assert "24 runs of one program: one regression (step of train.py " in output
    made = json.loads(Path("tfdoctor-history-report.json").read_text())
    (series,) = made["series"]
    step = next(one for one in series["metrics"] if one["metric"] == "step-ms")
    assert [series["runs"][change["at"]]["commit"] for change in step["changes"]] == [commit(12)]
    assert (made["failed"], step["check"]["state"]) == (True, "exceeded")

    code, output = history(*gate, "--accept", f"step-ms@{commit(12)[:9]}", "--why", "larger crops", "--by", "Ann")
    assert (code, "accepted by Ann" in output) == (0, True)
    assert history(*gate)[0] == 0
    kept = json.loads(Path("tfdoctor-history.json").read_text())
    assert [(one["what"], one["commit"]) for one in kept["accepted"]] == [("step-ms", commit(12))]


def test_runs_in_a_bucket_are_read(runs: Runs) -> None:
    """The file system in memory stands for a bucket; a recording is fetched with all its files."""
    runs(1.0, 1.1)
    bucket = fsspec.filesystem("memory")
    for source, target in (("runs", "/ci"), (str(SAMPLE), "/ci/recording")):
        bucket.put(source, target, recursive=True)
    try:
        code, output = history("memory://ci", "--select", "input-bound", "--format", "md", "--out", "pages")
    finally:
        bucket.rm("/ci", recursive=True)
    assert (code, output.startswith("three runs of two programs")) == (0, True)
    assert "///ci/train.py/00/report.json" in Path("pages/tfdoctor-history-report.md").read_text()


def test_a_baseline_gets_a_name_and_the_settings_name_the_file(runs: Runs) -> None:
    runs(1.0, 1.0, 1.2)
    Path("ci").mkdir()
    Path("tfdoctor.toml").write_text('history = "ci/kept.json"')
    code, output = history("runs", "--name-baseline", "release-1=runs/train.py/00/report.json")
    assert (code, "release-1" in output, Path("ci/kept.json").is_file()) == (0, True, True)
    assert "release-1" in history("runs")[1]


def test_few_runs_are_undecided_by_an_exit_code_of_their_own(runs: Runs) -> None:
    runs(1.0, 1.0, 1.5)
    code, output = history("runs", "--max-regression", "5%")
    assert code == 4
    assert output.startswith("three runs of one program: 3 of 3 checks undecided train.py")
    assert "undecided, because there are two runs to compare with" in output


def test_what_is_read_and_what_cannot_be(runs: Runs) -> None:
    runs(1.0, 1.0)
    runs(1.0, program="evaluate.py")
    for words, said in (((), "three runs of two programs"), (("--program", "train.py"), "two runs of one program")):
        code, output = history("runs", *words)
        assert (code, output.startswith(said)) == (0, True)
    # A recording knows no commit, so it stands at the time of its recording:
    code, output = history("runs/evaluate.py", str(SAMPLE), "--select", "input-bound")
    assert (code, output.startswith("two runs of two programs")) == (0, True)
    Path("runs/bad").mkdir()
    Path("runs/bad/report.json").write_text("{")
    code, output = history("runs", "--program", "train.py")
    assert (code, "two runs of one program" in output, "is not JSON" in output) == (0, True, True)


HISTORIES = Names(__file__, "histories")


def of_history(line: str) -> str:
    return refused(f"history {line}")


@pytest.fixture
def bad(runs: Runs) -> None:
    """Have two runs, two that cannot be read, and a folder of none."""
    runs(1.0, 1.0)
    Path("empty").mkdir()
    for name in ("bad", "bad2"):
        Path(name).mkdir()
        Path(name, "report.json").write_text("{")


@pytest.mark.usefixtures("bad")
def test_bad_input_gets_one_sentence_and_nothing_is_written(golden: Callable[[str, str], None]) -> None:
    HISTORIES.test({"histories": of_history})(golden)
