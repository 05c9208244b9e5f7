"""The program reads its files changed without a layer: imports, open, inspect, children and the main script."""

from tests.trial.kit import *

NAMES = sorted(set(os.environ) - {"PYTHONDONTWRITEBYTECODE"})
STORING = {name: os.environ[name] for name in NAMES}  # The environment of a Python that stores bytecode


class Project:
    """A script and a module, each with another text elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder / "project", folder / "processes"
        self.folder.mkdir()
        self.processes.mkdir()
        self.script, self.module = self.folder / "train.py", self.folder / "helper.py"
        self.changed: dict[str, str] = {}
        self.write(self.module, "def value():\n    return 'old'\n")

    def write(self, path: Path, text: str) -> None:
        """Write a file, whose changed text says 'new' where it says 'old'."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        other = self.folder.parent / f"changed-{path.name}"
        other.write_text(text.replace("'old'", "'new'"))
        self.changed[str(path.resolve())] = str(other)

    def run(self, *words: str) -> str:
        plan = {"processes": str(self.processes), "changed": self.changed}
        return shown(self.folder, *words, environment=agent_environment(STORING, plan, hidden=True))


def shown(folder: Path, *words: str, environment: dict[str, str] = STORING) -> str:
    """Return what Python prints."""
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True, text=True, check=False, cwd=folder, env=environment, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_main_script_is_what_it_would_be(project: Project) -> None:
    text = (
        "TEXT = 'old'\n"
        "import sys, os, json, inspect, helper\n"
        "print(json.dumps([TEXT, __name__, __file__, sys.argv, sys.path[0], os.getcwd(),"
        " helper.value(), inspect.getsource(helper.value), open(__file__).read()[:12],"
        " __spec__ is None, sorted(vars())[:3]]))\n"
    )
    project.write(project.script, text)
    values = json.loads(project.run("train.py", "--epochs", "3"))
    folder, argv = str(project.folder), ["train.py", "--epochs", "3"]
    assert values[:6] == ["new", "__main__", str(project.script), argv, folder, folder]
    assert values[6:10] == ["new", "def value():\n    return 'new'\n", "TEXT = 'new'", True]


def test_without_a_change_the_namespace_is_the_interpreters(project: Project) -> None:
    """The same script, run by Python and by us, sees the same names."""
    text = "names = sorted(vars())\nprint(names, __builtins__.__name__, type(__loader__).__name__)\n"
    project.write(project.script, text)
    assert project.run("train.py") == shown(project.folder, "train.py")


@each(
    ["-O", "-X", "utf8", "./train.py", "a b", "-m"], ["-P", "train.py"], ["-u", "../project/train.py"], ["link.py"]
)
def test_the_interpreter_has_its_options_and_the_script_its_path(words: list[str], project: Project) -> None:
    """Whatever the command is, Python with the changed file in place prints the same."""
    text = "import sys; print('old', __file__, sys.argv, sys.path, sys.flags, sys._xoptions, sys.executable)\n"
    (project.folder / "link.py").symlink_to("train.py")
    project.write(project.script, text)
    changed = project.run(*words)
    project.script.write_text(text.replace("old", "new"))
    project.changed.clear()
    assert project.run(*words) == changed


# Launchers start themselves with their workers, and some scripts to set a variable for the libraries.
STARTS_ITSELF = """TEXT = 'old'
import os, subprocess, sys
print(TEXT, sys.argv[1:], flush=True)
if not sys.argv[1:]:
    subprocess.run([sys.executable, '-B', __file__, 'child'], check=True)
    os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])
"""
SPAWNS = """TEXT = 'old'
import multiprocessing, helper
def work(_):
    return TEXT, helper.value()
if __name__ == '__main__':
    with multiprocessing.get_context('spawn').Pool(1) as pool:
        print(pool.map(work, [0]))
"""
PICKLES = """import pickle
class Source:
    read = open
print(Source().read('helper.py').read()[-6:-1], pickle.loads(pickle.dumps(open)) is open)
"""
FAILS = """import traceback
def fail():
    raise ValueError('old')
try:
    fail()
except ValueError:
    print(*traceback.format_exc().splitlines()[-2:], sep='')
"""


@cases(
    (["train.py"], STARTS_ITSELF, "new []\nnew ['child']\nnew ['again']\n"),
    (["train.py"], SPAWNS, "[('new', 'new')]\n"),
    (["train.py"], PICKLES, "'new' True\n"),  # open stays what it is in a class and in a pickle
    (["train.py"], FAILS, "    raise ValueError('new')ValueError: new\n"),  # a traceback shows the changed line
    (["-m", "package"], "print('old', __name__, __package__)\n", "new __main__ package\n"),
)
def test_the_changed_text_is_seen(words: list[str], text: str, printed: str, project: Project) -> None:
    project.write(project.folder / "package" / "__main__.py" if words[0] == "-m" else project.script, text)
    assert project.run(*words) == printed


def test_stored_bytecode_is_not_used_and_none_is_stored(project: Project) -> None:
    shown(project.folder, "-c", "import helper; print(helper.value())")
    stored = {path: path.read_bytes() for path in project.folder.rglob("*.pyc")}
    assert stored
    project.write(project.script, "import helper; print(helper.value())\n")
    assert project.run("train.py") == "new\n"
    assert {path: path.read_bytes() for path in project.folder.rglob("*.pyc")} == stored


def test_writing_goes_to_the_file_itself(project: Project) -> None:
    project.write(project.script, "open('helper.py', 'a').write('# mine')\n")
    project.run("train.py")
    assert project.module.read_text().endswith("# mine")
    assert "# mine" not in Path(project.changed[str(project.module)]).read_text()
