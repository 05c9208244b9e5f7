"""Real TensorFlow under ``tfdoctor try``: a promise that is not kept; the program writes, and reads itself.

The script repeats bit by bit, the change does not: that is its order of random numbers, and no fault.
"""

from tests.e2e.kit import *
from tfdoctor.trial.layer import why_not

pytestmark = pytest.mark.tensorflow

EMPTY_PROMISE = (SCRIPTS / "empty_promise.txt").read_text("utf-8")
"""A rule whose edit does not save what it promises."""


TWO_ROUNDS = """
from tfdoctor import cli
from tfdoctor.trial import schedule

schedule.LEAST_ROUNDS, schedule.NARROW = 2, 1.0
cli.main()
"""
"""The command line; a figure of two rounds tells whether a promise of most of the step was kept."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text((SCRIPTS / "random_flips.py").read_text())
    return folder


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.iterdir() if path.is_file()]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_promise_is_measured_and_nothing_is_written(project: Path, tmp_path: Path) -> None:
    if why_not(project):
        pytest.skip("this kernel allows no layer")
    out = tmp_path / "recording"
    before = content(project)
    (tmp_path / "rules").mkdir()
    line = (project / "train.py").read_text().splitlines().index("    dataset = dataset.map(augment)") + 1
    (tmp_path / "rules" / "empty_promise.py").write_text(EMPTY_PROMISE.replace("LINE", str(line)))
    options = ["--minutes", "15", "--out", str(out), "--rules", str(tmp_path / "rules")]  # it ends after two rounds
    options += ["--only", "empty-promise", "--fail-on-promise", "10%", "--format", "json,html,md"]
    words = [sys.executable, "-c", TWO_ROUNDS, "try", *options, "train.py", "60"]
    done = ended(words, project, timeout_s=1200)
    assert done.returncode == 3, done.stderr  # by the promise, which is not kept
    assert content(project) == before
    trials: dict[str, Any] = json.loads((out / "report.json").read_text())["trials"]
    (promised,) = trials["variants"]
    assert promised["promised"]["share"] > 0.5
    assert promised["training"]["state"] == "reordered", promised
    assert promised["measured"]["high"] < promised["promised"]["share"] - 0.1
    assert trials["writes_thrown_away"]
    assert "Measured" in done.stdout
    assert "Measured by running the changes" in (out / "report.html").read_text()
