"""What could be recorded here: the interpreter, TensorFlow, limits of the container, permissions."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tfdoctor.capture import cgroup
from tfdoctor.capture.readiness import Ability, abilities, gpu_kernels
from tfdoctor.capture.sampler.pci import has_nvidia_gpu
from tfdoctor.cli import app

GIB = 2**30


def interpreter(folder: Path, answer: str, code: int = 0) -> str:
    """Return a program that answers as the script's Python does."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


def found(python: str, name: str) -> Ability:
    return next(ability for ability in abilities(python) if ability.name == name)


@pytest.mark.parametrize(
    ("packages", "works", "words"),
    [
        ({"tensorflow": "2.21.0", "keras": "3.15.1"}, True, "2.21.0, keras 3.15.1"),
        ({"tensorflow-cpu": "2.9.0"}, True, "2.9.0"),
        ({"tf-nightly": "2.22.0.dev20261101"}, True, "2.22.0.dev20261101"),
        ({"tensorflow": "2.8.4"}, False, "2.8.4"),
        ({"tensorflow": "1.15.5"}, False, "1.15.5"),
        ({"jax": "0.11.0"}, False, "has no TensorFlow"),
    ],
)
def test_the_tensorflow_of_the_scripts_python_counts(
    tmp_path: Path, packages: dict[str, str], *, works: bool, words: str
) -> None:
    answer = json.dumps({"python": "3.12.1", "packages": packages})
    ability = found(interpreter(tmp_path, answer), "TensorFlow")
    assert ability.works is works
    assert words in ability.what
    assert bool(ability.remedy) is not works


def test_a_python_that_is_not_there_or_does_not_run_is_said(tmp_path: Path) -> None:
    missing = found(str(tmp_path / "none"), "Python")
    assert (missing.works, missing.needed) == (False, True)
    assert "was not found" in missing.what
    for answer, code in (("no json", 0), ('{"python": "3.12", "packages": {}}', 1)):
        broken = found(interpreter(tmp_path, answer, code), "Python")
        assert broken.works is False
        assert "does not run" in broken.what


@pytest.mark.parametrize(
    ("mounts", "own", "files", "limit"),
    [
        ("cgroup2", "0::/job", {"job/memory.max": f"{4 * GIB}"}, 4 * GIB),
        ("cgroup2", "0::/job", {"job/memory.max": "max", "memory.max": f"{GIB}"}, GIB),
        ("cgroup2", "0::/job", {"job/memory.max": "max"}, None),
        ("cgroup", "7:memory:/job", {"job/memory.limit_in_bytes": f"{2 * GIB}"}, 2 * GIB),
        ("cgroup", "7:memory:/job", {"job/memory.limit_in_bytes": "9223372036854771712"}, None),
    ],
)
def test_the_memory_limits_of_both_kinds_of_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, own: str, files: dict[str, str], limit: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    options = "rw" if mounts == "cgroup2" else "rw,memory"
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {tmp_path} rw - {mounts} cgroup {options}\n")
    (tmp_path / "cgroup").write_text(own + "\n")
    monkeypatch.setattr(cgroup, "SELF", tmp_path)
    assert cgroup.memory_limit() == limit


def test_a_gpu_is_seen_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    """Trap: NVIDIA's cards have an audio device as well."""
    for name, vendor, kind in (("a", "0x10de", "0x040300"), ("b", "0x8086", "0x030000")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor + "\n")
        (tmp_path / name / "class").write_text(kind + "\n")
    assert not has_nvidia_gpu(tmp_path)
    (tmp_path / "b" / "vendor").write_text("0x10de\n")
    assert has_nvidia_gpu(tmp_path)
    assert not has_nvidia_gpu(tmp_path / "none")


def test_a_driver_that_reserves_its_counters_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    params = tmp_path / "params"
    assert gpu_kernels(params) is None
    params.write_text("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    reserved = gpu_kernels(params)
    assert reserved
    assert not reserved.works
    assert "NVreg_RestrictProfilingToAdminUsers=0" in reserved.remedy
    params.write_text("RmProfilingAdminOnly: 0\n")
    free = gpu_kernels(params)
    assert free
    assert free.works


def test_the_command_says_what_is_here_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["check"])
    lines = done.output.splitlines()
    assert done.exit_code == 0
    assert any(line.startswith("ok      TensorFlow") for line in lines)
    assert any(line.startswith("ok      CPU") for line in lines)
    assert any(line.startswith("ok      host samples") for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_without_tensorflow_the_command_fails_and_says_what_to_do(tmp_path: Path) -> None:
    python = interpreter(tmp_path, json.dumps({"python": "3.12.1", "packages": {}}))
    done = CliRunner().invoke(app, ["check", "--python", python])
    assert done.exit_code == 2
    assert "has no TensorFlow: install it there" in done.output
