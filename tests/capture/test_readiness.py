"""What could be recorded here: the interpreter, TensorFlow, permissions."""

from typer.testing import CliRunner

from tests.capture.kit import *
from tfdoctor.capture.readiness import abilities, gpu_kernels
from tfdoctor.cli import app


def interpreter(folder: Path, answer: str, code: int = 0) -> str:
    """Return a program that answers as the script's Python does."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\nexit {code}\n")
    path.chmod(0o755)
    return str(path)


PACKAGES: list[dict[str, str]] = [
    *(
        {"tensorflow": "2.21.0", "keras": "3.15.1"},
        {"tensorflow-cpu": "2.9.0"},
        {"tf-nightly": "2.22.0.dev20261101"},
    ),
    *({"tensorflow": "2.8.4"}, {"tensorflow": "1.15.5"}, {"jax": "0.11.0"}),
]


def test_what_the_scripts_python_can_is_said(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """Where it is not there or does not run, this as well."""
    answers = {f"{has}": (json.dumps({"python": "3.12.1", "packages": has}), 0) for has in PACKAGES}
    answers |= {"no answer": ("no json", 0), "it fails": ('{"python": "3.12", "packages": {}}', 1)}
    lines = []
    for name, answer in {"no python": None, **answers}.items():
        python = interpreter(tmp_path, *answer) if answer else str(tmp_path / "none")
        found = [one for one in abilities(python) if one.name in {"Python", "TensorFlow"}]
        lines += [f"## {name}", *(f"{one}".replace(str(tmp_path), "…") for one in found), ""]
    golden("readiness.txt", "\n".join(lines))


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
    assert (done.exit_code, "has no TensorFlow: install it there" in done.output) == (2, True)
