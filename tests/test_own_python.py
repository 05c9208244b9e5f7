"""What is set for the script's Python does not reach tfdoctor's own, and the script gets it as it was."""

from tests.capture.running import SOURCES, environment
from tests.kit import *
from tfdoctor.own_python import HOME, MARK, own, users

SHOW = "import json, os, sys; print(json.dumps([dict(os.environ), sys.flags.optimize, sys.path[0]]))"
SHADOWS = ("json", "numpy", "profile", "typer", "re", "enum", "typing", "psutil")

GUIDE = Path(__file__).parents[1] / "docs" / "how-to" / "write-a-rule.md"
RULE, _ = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)

LOAD = """
from pathlib import Path
from tfdoctor.rulebook.own_rules import load
from tfdoctor.rules import all_rules
for rule in (*load([Path()], ()), all_rules()[0]):
    print(bool(rule.doc.title and rule.doc.sections))
"""


def tfdoctor(*words: str, cwd: Path, flags: Iterable[str] = (), **variables: Any) -> str:
    """Run `python -m tfdoctor` where it is found by itself; return its standard output."""
    command = (sys.executable, *flags, "-m", "tfdoctor", *words)
    done = ran_command(*command, cwd=cwd, env=environment(**variables), stdin=subprocess.DEVNULL, timeout=60)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout


@pytest.fixture
def shadows(tmp_path: Path) -> Path:
    """Return a folder of modules that must not be imported."""
    folder = tmp_path / "modules"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"raise ImportError('{name} of another')\n")
    return folder


@each(
    {},
    {"PYTHONPATH": ""},
    {"PYTHONPATH": "/a:/b", "PYTHONOPTIMIZE": "2", "PYTHONINSPECT": "1", "PYTHONUTF8": "1"},
    {"PYTHONSAFEPATH": "1", "PYTHON_VERSION": "3.11"},
)
def test_the_settings_of_the_script_wait_for_it(variables: dict[str, str]) -> None:
    ours = own(variables)
    assert ours["PYTHONSAFEPATH"] == "1"
    assert ours.get("PYTHONPATH", HOME) == HOME
    assert {"PYTHONOPTIMIZE", "PYTHONINSPECT"}.isdisjoint(ours)
    assert ours.get("PYTHONUTF8") == variables.get("PYTHONUTF8")
    assert own(ours) == ours
    assert users(ours) == users(variables) == variables


def test_the_folder_of_tfdoctor_stays_on_the_path() -> None:
    assert own({"PYTHONPATH": f"/other:{HOME}"})["PYTHONPATH"] == HOME


def test_packages_that_are_only_on_the_path_stay_on_it() -> None:
    """As Bazel has them: a folder each."""
    needed = [folder for folder in sys.path if Path(folder, "typer").is_dir()]
    given = os.pathsep.join([HOME, *needed])
    assert own({"PYTHONPATH": given})["PYTHONPATH"] == given
    assert MARK in own({"PYTHONPATH": given})


@each((), ("-OO",))
def test_an_optimized_python_has_the_pages_of_rules(flags: tuple[str, ...], tmp_path: Path) -> None:
    shown = tfdoctor("explain", "zero-factor", cwd=tmp_path, flags=flags, PYTHONOPTIMIZE="2")
    assert "What it checks" in shown


def test_a_rule_has_its_page_in_an_optimized_process(tmp_path: Path) -> None:
    """Where `tfdoctor.record` reports in the process of the user: the docstring of an own rule is gone there."""
    (tmp_path / "slow_callbacks.py").write_text(RULE)
    assert ran_command("-OO", "-c", LOAD, cwd=tmp_path, check=True).stdout.split() == ["True", "True"]


@each("PYTHONPATH", "cwd")
def test_modules_of_the_script_are_not_imported(where: str, shadows: Path, tmp_path: Path) -> None:
    """Nor anything else of a shell's settings; tfdoctor itself may be on PYTHONPATH."""
    settings = {"PYTHONINSPECT": "1", "PYTHONWARNINGS": "error", "PYTHONPROFILEIMPORTTIME": "1"}
    path = os.pathsep.join([str(SOURCES), str(shadows)]) if where == "PYTHONPATH" else str(SOURCES)
    cwd = shadows if where == "cwd" else tmp_path
    assert "zero-factor" in tfdoctor("rules", cwd=cwd, PYTHONPATH=path, **settings)


def test_the_script_has_its_settings(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text(SHOW)
    given = {"PYTHONOPTIMIZE": "2", "PYTHONPATH": str(tmp_path), "PYTHONWARNINGS": "error"}
    words = ("profile", "--no-report", "--out", "rec", str(script))
    seen, level, first = json.loads(tfdoctor(*words, cwd=tmp_path, **given))
    bare = ran_command(sys.executable, script, env=environment(**given), check=True)
    assert ([seen, level, first], level) == (json.loads(bare.stdout), 2)
    recorded = json.loads((tmp_path / "rec" / "tfdoctor.json").read_text())["environment"]
    assert recorded["PYTHONOPTIMIZE"] == "2"
