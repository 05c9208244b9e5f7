"""What cannot be recorded is refused in one sentence, before anything is created."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import profiled
from tfdoctor.capture import Kind, Plan, profile
from tfdoctor.capture.folder import claim
from tfdoctor.capture.interpreter import RECEIPTS, UVX, notice
from tfdoctor.own_python import MARK
from tfdoctor.terms.errors import CaptureError, OutputError


def refuse(script: Path, tmp_path: Path, **options: Any) -> str:
    out = tmp_path / "out"
    with pytest.raises(CaptureError) as caught:
        profile(Plan(script=str(script), out=out, **options))
    assert not out.exists()
    return str(caught.value)


def test_missing_script(tmp_path: Path) -> None:
    assert "not found: check the path" in refuse(tmp_path / "train.py", tmp_path)


def test_folder(tmp_path: Path) -> None:
    assert "is a folder" in refuse(tmp_path, tmp_path)


def test_notebook(tmp_path: Path) -> None:
    notebook = tmp_path / "train.ipynb"
    notebook.write_text("{}")
    assert "nbconvert" in refuse(notebook, tmp_path)


@pytest.mark.parametrize("head", [b"#!/bin/bash\necho hi\n", b"\x7fELF\x02\x01\x01\x00\x00"])
def test_not_python(tmp_path: Path, head: bytes) -> None:
    script = tmp_path / "train"
    script.write_bytes(head)
    assert "not a Python script" in refuse(script, tmp_path)


def test_python_with_a_shebang_is_python(tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text("#!/usr/bin/env python3\n")
    Plan(script=str(script)).check()


def test_missing_interpreter(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    assert "Python interpreter" in refuse(script, tmp_path, python=str(tmp_path / "python9"))


@pytest.mark.parametrize(
    "options", [{"steps": 0}, {"warmup": -1}, {"sample_every_ms": -1}, {"seconds": 0}, {"seconds": float("inf")}]
)
def test_senseless_numbers(options: dict[str, Any]) -> None:
    with pytest.raises(CaptureError):
        Plan(script="train.py", **options)


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('ran')")
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("data")
    with pytest.raises(OutputError, match="not empty"):
        profile(Plan(script=str(script), out=out))
    assert (out / "precious").read_text() == "data"


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('ran')")
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OutputError):
            profile(Plan(script=str(script), out=out))


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('ran')")
    (tmp_path / "out").mkdir()
    assert profiled(script, tmp_path / "out", sample_every_ms=0).code == 0


def test_the_default_folder_is_named_after_the_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text("")
    monkeypatch.chdir(tmp_path)
    outcome = profile(Plan(script=str(script), sample_every_ms=0))
    assert outcome.recording.root is not None
    assert outcome.recording.root.parent == tmp_path / "runs"
    assert outcome.recording.root.name.startswith("train-2")


def test_runs_of_one_second_have_folders_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("time.strftime", lambda _: "20261129-040000")
    plan = Plan(script=f"{'long' * 99}.py")
    with ThreadPoolExecutor(4) as at_once:
        made = {claimed.out.name for claimed in at_once.map(claim, [plan] * 4)}
    first = f"{'long' * 12}lo-20261129-040000"
    assert made == {first, *(f"{first}-{number}" for number in (2, 3, 4))}


def test_a_link_to_nowhere_in_the_place_of_runs_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="cannot be written"):
        claim(Plan(script="train.py"))


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    assert "check its path" in refuse(tmp_path / "run", tmp_path, kind=Kind.COMMAND)
    assert "remove the --" in refuse(tmp_path / "run.py", tmp_path, kind=Kind.COMMAND)


def test_a_command_brings_its_own_python(tmp_path: Path) -> None:
    assert "--python" in refuse(Path("sh"), tmp_path, kind=Kind.COMMAND, python=sys.executable)


def test_a_path_is_no_module(tmp_path: Path) -> None:
    assert "is not a module name" in refuse(Path("package/train.py"), tmp_path, kind=Kind.MODULE)


@pytest.mark.parametrize(
    ("plan", "command", "name"),
    [
        (Plan("a/train.py", ("--x",), python=sys.executable), ["a/train.py", "--x"], "train"),
        (Plan("pkg.train", ("x",), python=sys.executable, kind=Kind.MODULE), ["-m", "pkg.train", "x"], "pkg.train"),
        (
            Plan("mpirun", ("-n", "2", "python", "a/train.py"), kind=Kind.COMMAND),
            ["mpirun", "-n", "2", "python", "a/train.py"],
            "train",
        ),
        (Plan("/opt/start", kind=Kind.COMMAND), ["/opt/start"], "start"),
    ],
    ids=["script", "module", "command", "program"],
)
def test_what_is_started_and_what_it_is_called(plan: Plan, command: list[str], name: str) -> None:
    assert plan.command()[-len(command) :] == command
    assert plan.name == name


def fake_python(folder: Path, name: str = "python", code: int = 0) -> str:
    """Write a program that answers whether TensorFlow is there by its exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\nexit {code}\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


@pytest.mark.parametrize("code", [0, 1], ids=["with TensorFlow", "without"])
def test_a_tfdoctor_of_the_path_takes_the_python_of_the_path(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `python train.py` would; whatever that has, no other one runs the script."""
    users, own = tmp_path / "users", tmp_path / "own"
    python, program = fake_python(users, code=code), fake_python(own, "tfdoctor")
    monkeypatch.setenv("PATH", os.pathsep.join([str(users), str(own)]))
    monkeypatch.setenv(MARK, program)
    assert Plan("train.py").interpreter() == python
    lacks = ", which has no TensorFlow," if code else ""
    assert notice(python) == f"runs it with {python}{lacks} (choose with --python)"
    assert Plan("train.py", python=sys.executable).interpreter() == sys.executable


@pytest.mark.parametrize("called", ["elsewhere/tfdoctor", "tfdoctor/__main__.py", ""])
def test_a_tfdoctor_that_is_named_takes_the_python_beside_it(
    called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path, by `python -m` or inside of the user's process: the user has chosen its environment."""
    fake_python(tmp_path)
    fake_python(tmp_path, "tfdoctor")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(MARK, called)
    assert Plan("train.py").interpreter() == sys.executable
    assert bool(notice(sys.executable)) == called.endswith("tfdoctor")  # said where PATH has another


@pytest.mark.parametrize(("mark", "takes"), [("pyvenv.cfg", True), ("conda-meta", False)])
def test_a_tfdoctor_that_is_named_by_its_path_takes_the_python_of_an_activated_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str, *, takes: bool
) -> None:
    """Conda's base is on PATH in every shell, and nobody's choice."""
    python = fake_python(tmp_path / "env" / "bin")
    (tmp_path / "env" / mark).touch()
    monkeypatch.setenv("PATH", str(tmp_path / "env" / "bin"))
    monkeypatch.setenv(MARK, "elsewhere/tfdoctor")
    assert Plan("train.py").interpreter() == (python if takes else sys.executable)


def test_the_python_of_the_same_environment_is_not_worth_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = fake_python(tmp_path, "tfdoctor")
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), str(tmp_path)]))
    monkeypatch.setenv(MARK, program)
    python = Plan("train.py").interpreter()
    assert Path(python).parent == Path(sys.executable).parent
    assert notice(python) == ""


@pytest.mark.parametrize("made", [*RECEIPTS, UVX])
def test_a_tfdoctor_of_its_own_takes_the_python_of_the_path(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the tool has TensorFlow, but none of the packages of the script; uvx puts it first."""
    own = tmp_path / UVX / "own" if made == UVX else tmp_path / "own"
    fake_python(own / "bin")
    (own / made).touch()
    python = fake_python(tmp_path / "users", "python3")
    monkeypatch.setenv("PATH", os.pathsep.join([str(own / "bin"), str(tmp_path / "users")]))
    monkeypatch.setattr("tfdoctor.capture.interpreter.PREFIX", str(own))
    assert Plan("train.py").interpreter() == python
    assert notice(python) == f"runs it with {python} (choose with --python)"
    monkeypatch.setenv("PATH", str(own / "bin"))
    with pytest.raises(CaptureError, match="no python on PATH"):
        Plan("train.py").interpreter()
