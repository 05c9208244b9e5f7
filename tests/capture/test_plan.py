"""What cannot be recorded is refused in one sentence, before anything is created."""

from concurrent.futures import ThreadPoolExecutor

from tests.capture.kit import *
from tfdoctor.capture import Kind, Plan, profile
from tfdoctor.capture.folder import claim
from tfdoctor.capture.interpreter import RECEIPTS, UVX, interpreter, notice
from tfdoctor.own_python import MARK
from tfdoctor.terms.errors import CaptureError


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@cases(
    ("train.py", None, {}, "not found: check the path"),
    (".", None, {}, "is a folder"),
    ("train.ipynb", b"{}", {}, "nbconvert"),
    ("train", b"#!/bin/bash\necho hi\n", {}, "not a Python script"),
    ("train", b"\x7fELF\x02\x01\x01\x00\x00", {}, "not a Python script"),
    ("train.py", b"", {"python": "./python9"}, "Python interpreter"),
    ("./run", None, {"kind": Kind.COMMAND}, "check its path"),
    ("./run.py", None, {"kind": Kind.COMMAND}, "remove the --"),
    ("sh", None, {"kind": Kind.COMMAND, "python": sys.executable}, "--python"),
    ("package/train.py", None, {"kind": Kind.MODULE}, "is not a module name"),
)
def test_what_cannot_run_is_refused(
    script: str, content: bytes | None, options: dict[str, Any], said: str, at: Path
) -> None:
    if content is not None:
        (at / script).write_bytes(content)
    with pytest.raises(CaptureError, match=said):
        profile(Plan(script, out=at / "out", **options))
    assert not (at / "out").exists()


@each({"steps": 0}, {"warmup": -1}, {"sample_every_ms": -1}, {"seconds": 0}, {"seconds": float("inf")})
def test_senseless_numbers(options: dict[str, Any]) -> None:
    with pytest.raises(CaptureError):
        Plan(script="train.py", **options)


@each("there", "train.py", "train.py/below", "/proc/nowhere/out", "/dev/null/out")
def test_a_folder_that_cannot_be_taken_is_said_before_the_run(out: str, at: Path) -> None:
    (at / "train.py").write_text("open('ran', 'x')")
    (at / "there").mkdir()
    (at / "there" / "precious").write_text("data")
    with pytest.raises(OutputError, match="choose another folder"):
        profile(Plan("train.py", out=Path(out)))
    (at / "runs").symlink_to(at / "nowhere")
    with pytest.raises(OutputError, match="cannot be written"):
        claim(Plan(script="train.py"))
    (at / "runs").unlink()
    assert sorted(str(path) for path in Path().rglob("*")) == ["there", "there/precious", "train.py"]


def test_an_empty_folder_is_used_and_the_default_one_is_named_after_the_script(at: Path) -> None:
    """What begins as a script of Python is one."""
    (at / "train").write_text("#!/usr/bin/env python3\nraise SystemExit(3)")
    (at / "out").mkdir()
    assert profile(Plan("train", out=at / "out", sample_every_ms=0)).exit_code == 3
    root = profile(Plan("train", sample_every_ms=0)).recording.root
    assert root is not None
    assert str(root).startswith(str(at / "runs" / "train-2"))


@pytest.mark.usefixtures("at")
def test_runs_of_one_second_have_folders_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.strftime", lambda _: "20261129-040000")
    plan = Plan(script=f"{'long' * 99}.py")
    with ThreadPoolExecutor(4) as at_once:
        made = {claimed.out.name for claimed in at_once.map(claim, [plan] * 4)}
    first = f"{'long' * 12}lo-20261129-040000"
    assert made == {first, *(f"{first}-{number}" for number in (2, 3, 4))}


@cases(
    (Plan("a/train.py", ("--x",), python=sys.executable), ["a/train.py", "--x"], "train"),
    (Plan("pkg.train", ("x",), python=sys.executable, kind=Kind.MODULE), ["-m", "pkg.train", "x"], "pkg.train"),
    (Plan("mpirun", ("-n", "2", "a/train.py"), kind=Kind.COMMAND), ["mpirun", "-n", "2", "a/train.py"], "train"),
    (Plan("/opt/start", kind=Kind.COMMAND), ["/opt/start"], "start"),
    ids=["script", "module", "command", "program"],
)
def test_what_is_started_and_what_it_is_called(plan: Plan, command: list[str], name: str) -> None:
    assert (plan.command()[-len(command) :], plan.name) == (command, name)


def fake_python(folder: Path, name: str = "python", code: int = 0) -> str:
    """Write a program that answers whether TensorFlow is there by its exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\nexit {code}\n")
    (folder / name).chmod(0o755)
    return str(folder / name)


def on_path(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))


@each("", ", which has no TensorFlow,")
def test_a_tfdoctor_of_the_path_takes_the_python_of_the_path(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `python train.py` would; whatever that has, no other one runs the script."""
    users, own, ours = tmp_path / "users", tmp_path / "own", Path(sys.executable).parent
    python = fake_python(users, code=int(bool(lacks)))
    monkeypatch.setenv(MARK, fake_python(own, "tfdoctor"))
    on_path(monkeypatch, users, own)
    assert (interpreter(None), interpreter(sys.executable)) == (python, sys.executable)
    assert notice(python) == f"runs it with {python}{lacks} (choose with --python)"
    on_path(monkeypatch, ours, own)
    assert (Path(same := interpreter(None)).parent, notice(same)) == (ours, "")  # not worth a word


@cases(
    *((called, None) for called in ("elsewhere/tfdoctor", "tfdoctor/__main__.py", "")),
    ("elsewhere/tfdoctor", "pyvenv.cfg"),  # of an activated environment
    ("elsewhere/tfdoctor", "conda-meta"),  # conda's base is on PATH in every shell, and nobody's choice
)
def test_a_tfdoctor_that_is_named_takes_the_python_beside_it(
    called: str, mark: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path, by `python -m` or inside of the user's process: the user has chosen its environment."""
    folder = tmp_path / "env" / "bin"
    python, _ = fake_python(folder), fake_python(folder, "tfdoctor")
    if mark:
        (folder.parent / mark).touch()
    on_path(monkeypatch, folder)
    monkeypatch.setenv(MARK, called)
    assert interpreter(None) == (python if mark == "pyvenv.cfg" else sys.executable)
    assert bool(notice(sys.executable)) == called.endswith("tfdoctor")  # said where PATH has another


@each(*RECEIPTS, UVX)
def test_a_tfdoctor_of_its_own_takes_the_python_of_the_path(
    made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the tool has TensorFlow, but none of the packages of the script; uvx puts it first."""
    own, users = tmp_path / UVX / "own" if made == UVX else tmp_path / "own", tmp_path / "users"
    python, _ = fake_python(users, "python3"), fake_python(own / "bin")
    (own / made).touch()
    monkeypatch.setattr("tfdoctor.capture.interpreter.PREFIX", str(own))
    on_path(monkeypatch, own / "bin", users)
    assert (interpreter(None), notice(python)) == (python, f"runs it with {python} (choose with --python)")
    on_path(monkeypatch, own / "bin")
    with pytest.raises(CaptureError, match="no python on PATH"):
        interpreter(None)
