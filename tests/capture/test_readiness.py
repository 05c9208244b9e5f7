"""What could be recorded here: the interpreter, TensorFlow, permissions."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cases import cases
from tfdoctor.capture.readiness import Ability, abilities, gpu_kernels
from tfdoctor.cli import app


def interpreter(folder: Path, answer: str, code: int = 0) -> str:
    """Return a program that answers as the script's Python does."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def found(python: str, name: str) -> Ability:
    return next(ability for ability in abilities(python) if ability.name == name)


@cases(
    ({"tensorflow": "2.21.0", "keras": "3.15.1"}, "2.21.0, keras 3.15.1", ""),
    ({"tensorflow-cpu": "2.9.0"}, "2.9.0", ""),
    ({"tf-nightly": "2.22.0.dev20261101"}, "2.22.0.dev20261101", ""),
    ({"tensorflow": "2.8.4"}, "2.8.4", "install"),
    ({"tensorflow": "1.15.5"}, "1.15.5", "install"),
    ({"jax": "0.11.0"}, "has no TensorFlow", "install"),
)
def test_the_tensorflow_of_the_scripts_python_counts(
    packages: dict[str, str], words: str, remedy: str, tmp_path: Path
) -> None:
    ability = found(interpreter(tmp_path, json.dumps({"python": "3.12.1", "packages": packages})), "TensorFlow")
    assert words in ability.what
    assert (ability.works, bool(ability.remedy)) == (not remedy, bool(remedy))


def test_a_python_that_is_not_there_or_does_not_run_is_said(tmp_path: Path) -> None:
    missing = found(str(tmp_path / "none"), "Python")
    assert (missing.works, missing.needed, "was not found" in missing.what) == (False, True, True)
    for answer, code in (("no json", 0), ('{"python": "3.12", "packages": {}}', 1)):
        broken = found(interpreter(tmp_path, answer, code), "Python")
        assert (broken.works, "does not run" in broken.what) == (False, True)


def test_a_driver_that_reserves_its_counters_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = tmp_path / "params"
    assert gpu_kernels(params) is None
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    for reserved in (True, False):
        params.write_text(f"ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: {int(reserved)}\n")
        said = gpu_kernels(params)
        told = said and (said.works, "NVreg_RestrictProfilingToAdminUsers=0" in said.remedy)
        assert told == (not reserved, reserved)


def test_the_command_says_what_is_here_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = interpreter(tmp_path, json.dumps({"python": "3.12.1", "packages": {}}))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    done = CliRunner().invoke(app, ["check"])
    assert done.exit_code == 0
    for name in ("TensorFlow", "CPU", "host samples"):
        assert f"\nok      {name}" in f"\n{done.output}"
    assert list(Path().iterdir()) == []
    done = CliRunner().invoke(app, ["check", "--python", python])
    assert done.exit_code == 2
    assert "has no TensorFlow: install it there" in done.output
