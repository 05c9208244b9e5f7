"""`tfdoctor history` on the command line: stored reports of a sample with other commits, and what is refused."""

import random

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


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def runs(stored: dict[str, Any], levels: list[float], program: str = "train.py") -> None:
    """Write a report for each level, with the commit of a day of its own and noise of 1 %."""
    draw = random.Random(0)
    for day, level in enumerate(levels):
        factor = level * draw.lognormvariate(0, 0.01)
        subject = stored["subject"] | {
            "command": ["python", program],
            "commit": commit(day),
            "committed": moment(day),
            "recorded": moment(day),
        }
        conditions = stored["conditions"] | {"untraced_ms": 20 * factor}
        folder = Path("runs", program, f"{day:02}")
        folder.mkdir(parents=True)
        changed = stored | {"subject": subject, "conditions": conditions}
        (folder / "report.json").write_text(json.dumps(changed))


def history(*words: str) -> tuple[int, str]:
    return run("history", *words)


def test_a_regression_fails_until_it_is_accepted(stored: dict[str, Any]) -> None:
    runs(stored, [1.0] * 12 + [1.3] * 12)
    code, output = history("runs", "--max-regression", "5%", "--format", "json,md,html")
    assert code == 3
    assert "24 runs of one program: one regression (step of train.py " in output
    made = json.loads(Path("tfdoctor-history-report.json").read_text())
    (series,) = made["series"]
    step = next(one for one in series["metrics"] if one["metric"] == "step-ms")
    assert [series["runs"][change["at"]]["commit"] for change in step["changes"]] == [commit(12)]
    assert (made["failed"], step["check"]["state"]) == (True, "exceeded")

    accept = ("--accept", f"step-ms@{commit(12)[:9]}", "--why", "larger crops", "--by", "Ann")
    code, output = history("runs", "--max-regression", "5%", *accept)
    assert (code, "accepted by Ann" in output) == (0, True)
    assert history("runs", "--max-regression", "5%")[0] == 0
    kept = json.loads(Path("tfdoctor-history.json").read_text())
    assert [(one["what"], one["commit"]) for one in kept["accepted"]] == [("step-ms", commit(12))]


def test_runs_in_a_bucket_are_read(stored: dict[str, Any]) -> None:
    """The file system in memory stands for a bucket; a recording is fetched with all its files."""
    runs(stored, [1.0, 1.1])
    bucket = fsspec.filesystem("memory")
    bucket.put("runs", "/ci", recursive=True)
    bucket.put(str(SAMPLE), "/ci/recording", recursive=True)
    try:
        code, output = history("memory://ci", "--select", "input-bound", "--format", "md", "--out", "pages")
        assert code == 0
        assert output.startswith("three runs of two programs")
        assert "///ci/train.py/00/report.json" in Path("pages/tfdoctor-history-report.md").read_text()
    finally:
        bucket.rm("/ci", recursive=True)


def test_a_baseline_gets_a_name_and_the_settings_name_the_file(stored: dict[str, Any]) -> None:
    runs(stored, [1.0, 1.0, 1.2])
    Path("ci").mkdir()
    Path("tfdoctor.toml").write_text('history = "ci/kept.json"')
    named = "release-1=runs/train.py/00/report.json"
    code, output = history("runs", "--name-baseline", named)
    assert (code, "release-1" in output, Path("ci/kept.json").is_file()) == (0, True, True)
    assert "release-1" in history("runs")[1]


def test_few_runs_are_undecided_by_an_exit_code_of_their_own(stored: dict[str, Any]) -> None:
    runs(stored, [1.0, 1.0, 1.5])
    code, output = history("runs", "--max-regression", "5%")
    assert code == 4
    assert output.startswith("three runs of one program: 3 of 3 checks undecided train.py")
    assert "undecided, because there are two runs to compare with" in output


def test_a_recording_is_read_beside_reports(stored: dict[str, Any]) -> None:
    """It knows no commit, so it stands at the time of its recording."""
    runs(stored, [1.0])
    code, output = history("runs", str(SAMPLE), "--select", "input-bound")
    assert code == 0
    assert output.startswith("two runs of two programs")


def test_a_report_that_cannot_be_read_is_told_and_the_others_are_shown(stored: dict[str, Any]) -> None:
    runs(stored, [1.0, 1.0])
    Path("runs/bad").mkdir()
    Path("runs/bad/report.json").write_text("{")
    code, output = history("runs")
    assert code == 0
    assert "two runs of one program" in output
    assert "is not JSON" in output


def test_programs_are_apart_and_one_can_be_chosen(stored: dict[str, Any]) -> None:
    runs(stored, [1.0, 1.0])
    runs(stored, [1.0], program="evaluate.py")
    assert history("runs")[1].startswith("three runs of two programs")
    assert history("runs", "--program", "train.py")[1].startswith("two runs of one program")
    code, output = history("runs", "--program", "trian.py")
    assert (code, output) == (2, "no run of 'trian.py': did you mean 'train.py'?")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("empty",), "No recording at empty"),
        (("nowhere",), "There is nothing at nowhere"),
        (("bad/report.json",), "is not JSON"),
        (("bad", "bad2"), "None of 2 runs can be read"),
        (("runs", "--accept", "step-ms@1"), "--accept needs a reason"),
        (("runs", "--accept", "step-ms", "--why", "x"), "is not WHAT@COMMIT"),
        (("runs", "--why", "x"), "add --accept WHAT@COMMIT"),
        (("runs", "--accept", "step-ms@fff", "--why", "x", "--by", "y"), "no run is of commit"),
        (("runs", "--name-baseline", "release-1"), "is not NAME=RUN"),
        (("runs", "--name-baseline", "release-1=runs"), "has 2 runs"),
        (("runs", "--last", "2"), "decides nothing"),
        (("runs", "--max-regression", "0.1"), "may mean 0.1% or 10%"),
        (("runs", "--format", "pdf"), "'pdf' is not one of"),
        (("runs", "--history", "bad/report.json"), "is not JSON"),
    ],
)
def test_bad_input_gets_one_sentence_and_nothing_is_written(
    arguments: tuple[str, ...], message: str, stored: dict[str, Any]
) -> None:
    runs(stored, [1.0, 1.0])
    Path("empty").mkdir()
    for name in ("bad", "bad2"):
        Path(name).mkdir()
        Path(name, "report.json").write_text("{")
    code, output = history(*arguments)
    assert code == 2
    assert message in output
    assert not Path("tfdoctor-history.json").exists()
