"""Real TensorFlow under ``tfdoctor try``: a patch whose effect is known; the program writes, and reads itself."""

import json
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import environment
from tfdoctor.capture.plan import Kind
from tfdoctor.trial.enough import Enough
from tfdoctor.trial.program import RecordedProgram
from tfdoctor.trial.running import Runner, layer_possible
from tfdoctor.trial.times import RunTimes
from tfdoctor.trial.variants import ORIGINAL, Variant

pytestmark = pytest.mark.tensorflow

SCRIPT = Path(__file__).with_name("scripts") / "repeats.py"

MANY, FEW = "REPEATS = 40\n", "REPEATS = 4\n"


def diff() -> str:
    """Return a patch after which the loop does a tenth of its work."""
    before = SCRIPT.read_text().splitlines(keepends=True)
    after = [FEW if line == MANY else line for line in before]
    return "".join(unified_diff(before, after, "a/train.py", "b/train.py"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT.read_text())
    return folder


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in folder.iterdir() if path.is_file()]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_patch_is_measured_and_nothing_is_written(project: Path, tmp_path: Path) -> None:
    if layer_possible(project):
        pytest.skip("this kernel allows no layer")
    patch = tmp_path / "less.diff"
    patch.write_text(diff())
    out = tmp_path / "recording"
    before = content(project)
    command = [sys.executable, "-m", "tfdoctor", "try", "--minutes", "1.3", "--out", str(out)]
    done = subprocess.run(
        [*command, "--patch", str(patch), "--format", "json,html,md", "train.py", "100000"],
        capture_output=True,
        text=True,
        cwd=project,
        env=environment(),
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert content(project) == before
    trials: dict[str, Any] = json.loads((out / "report.json").read_text())["trials"]
    (row,) = [row for row in trials["variants"] if row["name"] == "less.diff"]
    assert trials["writes_thrown_away"]
    assert 0.5 < row["measured"]["share"] < 0.95
    assert row["training"]["state"] == "equal"
    assert "Measured" in done.stdout
    assert "Measured by running the changes" in (out / "report.html").read_text()


@pytest.mark.parametrize("layer", [True, False])
def test_a_run_sees_its_changed_file_either_way(project: Path, *, layer: bool) -> None:
    if layer and layer_possible(project):
        pytest.skip("this kernel allows no layer")
    script = project / "train.py"
    program = RecordedProgram((sys.executable, "train.py", "150"), project, Kind.SCRIPT)
    changed = Variant("less", {script: SCRIPT.read_bytes().replace(MANY.encode(), FEW.encode())})
    with Runner.of(program, layer=layer) as stage:
        runs = [stage.run(variant, Enough(), n) for n, variant in enumerate((ORIGINAL, changed))]
    for run in runs:
        assert run.exit_code == 0, run.error
        assert isinstance(run.times, RunTimes)
        assert run.finite
    first, second = (run.times for run in runs)
    assert isinstance(first, RunTimes)
    assert isinstance(second, RunTimes)
    assert second.step_ms < 0.6 * first.step_ms
    states = [run.state for run in runs]
    assert states[0] is not None
    assert states[1] is not None
    assert states[0].digest == states[1].digest
    written = project / "checkpoint.txt"
    assert written.exists() is not layer
    if not layer:
        assert FEW in written.read_text()
    assert script.read_text() == SCRIPT.read_text()
