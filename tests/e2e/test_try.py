"""Real TensorFlow under ``tfdoctor try``: a patch whose effect is known; the program writes, and reads itself."""

import json
import subprocess
import sys
import time
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import environment
from tfdoctor.capture.plan import Kind
from tfdoctor.trial.program import RecordedProgram
from tfdoctor.trial.run_length import Enough
from tfdoctor.trial.running import Runner, layer_possible
from tfdoctor.trial.times import TrialTimes
from tfdoctor.trial.variants import ORIGINAL, Variant

pytestmark = [pytest.mark.tensorflow, pytest.mark.alone]

SCRIPT = Path(__file__).with_name("scripts") / "repeats.py"

MANY, FEW = "REPEATS = 40\n", "REPEATS = 4\n"


EMPTY_PROMISE = '''
"""The time between steps is long.

## What it checks

The time between steps.

## Why it matters

It is long.

## How to fix

Compile the step, which does not help.

## Holds for

This script.

## Sources

- [Nothing](https://example.org)
"""

from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Effect, Finding, Healthy, Measure, Remedy, Stage, Verdict

TOPIC = Topic.EXECUTION


def check(breakdown: Breakdown) -> Verdict:
    """Promise all of the time between steps."""
    between = breakdown["between"]
    if between < 1.0:
        return Healthy(summary="the time between steps is short")
    return Finding(
        summary="the time between steps is long",
        evidence=(Measure("time between steps", ms(between)),),
        remedies=(Remedy("Compile the step", edit_id="jit-compile"),),
        effects=(Effect(Stage.BETWEEN, scales=0.0),),
    )


def sick() -> Verdict:
    """10 ms between steps."""
    return check(Breakdown.of(between=10.0, device=20.0))


def healthy() -> Verdict:
    """Next to nothing between steps."""
    return check(Breakdown.of(between=0.1, device=20.0))
'''
"""A rule whose edit does not save what it promises."""


PARALLEL = '''
"""A map runs on one thread.

## What it checks

Whether the pipeline has a map.

## Why it matters

It could run on more.

## How to fix

Let it run in parallel.

## Holds for

This script.

## Sources

- [Nothing](https://example.org)
"""

from tfdoctor.facts.run.program import Program
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Finding, Healthy, Location, Measure, Remedy, Verdict

TOPIC = Topic.INPUT


def check(program: Program) -> Verdict:
    """Advise threads for each map that draws random numbers."""
    maps = [dataset for dataset in program.datasets if dataset.stateful and dataset.at]
    return _of([dataset.at for dataset in maps])


def _of(lines: list[Location]) -> Verdict:
    if not lines:
        return Healthy(summary="no map draws random numbers")
    remedy = Remedy("Run the map in parallel", at=lines[0], edit_id="parallel-map")
    return Finding(
        summary="a map runs on one thread", evidence=(Measure("time", ms(1.0)),), remedies=(remedy,)
    )


def sick() -> Verdict:
    """A map in line 24."""
    return _of([Location("train.py", 24)])


def healthy() -> Verdict:
    """No map."""
    return _of([])
'''
"""A rule whose edit draws random numbers in another order, however much or little time it saves here."""


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


def minutes_for_rounds(project: Path) -> float:
    """Return the minutes that three rounds of two changes take here: twelve runs, each about two plain ones."""
    began = time.monotonic()
    plain = [sys.executable, "train.py", "150"]
    subprocess.run(plain, cwd=project, env=environment(), capture_output=True, check=True)
    (project / "checkpoint.txt").unlink()
    return max(2.0, 25 * (time.monotonic() - began) / 60)


def test_a_patch_and_a_promise_are_measured_and_nothing_is_written(
    project: Path, tmp_path: Path
) -> None:
    if layer_possible(project):
        pytest.skip("this kernel allows no layer")
    patch = tmp_path / "less.diff"
    patch.write_text(diff())
    out = tmp_path / "recording"
    before = content(project)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "empty_promise.py").write_text(EMPTY_PROMISE)
    minutes = minutes_for_rounds(project)
    command = [sys.executable, "-m", "tfdoctor", "try", "--minutes", f"{minutes:.1f}"]
    options = [
        "--out",
        str(out),
        "--rules",
        str(tmp_path / "rules"),
        "--only",
        "empty-promise",
        "--fail-on-promise",
        "10%",
    ]
    done = subprocess.run(
        [*command, *options, "--patch", str(patch), "--format", "json,html,md", "train.py", "150"],
        capture_output=True,
        text=True,
        cwd=project,
        env=environment(),
        timeout=minutes * 60 + 180,
        check=False,
    )
    assert done.returncode == 3, done.stderr  # by the promise, which is not kept
    assert content(project) == before
    trials: dict[str, Any] = json.loads((out / "report.json").read_text())["trials"]
    row, promised = (
        next(row for row in trials["variants"] if row["name"] == name)
        for name in ("less.diff", "empty-promise")
    )
    assert promised["promised"]["share"] > 0.5
    assert promised["measured"]["high"] < promised["promised"]["share"] - 0.1
    assert trials["writes_thrown_away"]
    assert 0.5 < row["measured"]["share"] < 0.95
    assert row["training"]["state"] == "equal"
    assert "Measured" in done.stdout
    assert "Measured by running the changes" in (out / "report.html").read_text()


def test_a_parallel_map_that_draws_random_numbers_is_timed_to_the_end(tmp_path: Path) -> None:
    """The script repeats bit by bit, the change does not: that is its order of random numbers, and no fault."""
    script = SCRIPT.with_name("random_flips.py").read_text()
    (tmp_path / "train.py").write_text(script)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "parallel.py").write_text(PARALLEL)
    began = time.monotonic()
    plain = [sys.executable, "train.py", "200"]
    subprocess.run(plain, cwd=tmp_path, env=environment(), capture_output=True, check=True)
    minutes = max(
        1.0, 20 * (time.monotonic() - began) / 60
    )  # two rounds are six runs and a first one
    command = [sys.executable, "-m", "tfdoctor", "try", "--yes", "--minutes", f"{minutes:.1f}"]
    options = ["--rules", "rules", "--only", "parallel", "--out", "recording", "--format", "json"]
    done = subprocess.run(
        [*command, *options, "train.py", "200"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=minutes * 60 + 180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trials = json.loads((tmp_path / "recording" / "report.json").read_text())["trials"]
    (row,) = trials["variants"]
    assert row["training"]["state"] == "reordered"
    assert len(row["measured"]["rounds"]) == trials["rounds"] >= 2


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
        assert isinstance(run.times, TrialTimes)
        assert run.finite
    first, second = (run.times for run in runs)
    assert isinstance(first, TrialTimes)
    assert isinstance(second, TrialTimes)
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
