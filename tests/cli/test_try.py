"""``tfdoctor try``: what it takes, and how it refuses."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tfdoctor import cli

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, ["try", *arguments])
    return result.exit_code, " ".join((result.output + str(result.exception or "")).split())


def test_help_names_what_can_be_tried() -> None:
    code, output = run("--help")
    assert code == 0
    assert "RECORDING | SCRIPT" in output
    assert "--patch" in output


def test_options_may_follow_a_recording(tmp_path: Path) -> None:
    recording = shutil.copytree(SAMPLES / "cpu-float32-convnet", tmp_path / "run")
    _, output = run(str(recording), "--only", "no-such-rule")
    assert "No such option" not in output


@pytest.mark.parametrize("sample", ["synthetic-gpu-a100-fp32", "cpu-float32-convnet"])
def test_a_recording_that_cannot_be_run_again_is_one_sentence(tmp_path: Path, sample: str) -> None:
    recording = shutil.copytree(SAMPLES / sample, tmp_path / "run")
    before = sorted(path.name for path in recording.rglob("*"))
    code, output = run(str(recording))
    assert code != 0
    assert "does not say which command to run" in output
    assert sorted(path.name for path in recording.rglob("*")) == before


@pytest.mark.parametrize("percent", ["ten", "0%", "120%"])
def test_a_limit_that_is_no_percentage_is_refused(percent: str) -> None:
    code, output = run("--fail-on-promise", percent, str(SAMPLES))
    assert code == 2
    assert "is not a percentage" in output


def test_a_file_to_keep_that_is_no_patch_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("mine")
    code, output = run("--keep", str(target), str(SAMPLES / "cpu-float32-convnet"))
    assert code != 0
    assert "is not a patch" in output
    assert target.read_text() == "mine"


def test_a_script_that_is_missing_is_refused(tmp_path: Path) -> None:
    code, output = run(str(tmp_path / "none.py"))
    assert code != 0
    assert "not found" in output


def test_nothing_named_is_refused() -> None:
    code, output = run()
    assert code == 2
    assert "SCRIPT" in output
