"""The program reads its files changed without a layer: imports, open, inspect, children and the main script."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdoctor.capture.plan import agent_environment


def storing() -> dict[str, str]:
    """Return the environment of a Python that stores bytecode."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Project:
    """A script and a module, each with another text elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.script, self.module = self.folder / "train.py", self.folder / "helper.py"
        self.changed: dict[str, str] = {}
        self.processes = folder / "processes"
        self.processes.mkdir()

    def write(self, path: Path, text: str, changed: str) -> None:
        path.write_text(text)
        other = path.parent.parent / f"changed-{path.name}"
        other.write_text(changed)
        self.changed[str(path.resolve())] = str(other)

    def run(self, *words: str) -> str:
        plan = {"processes": str(self.processes), "changed": self.changed}
        environment = agent_environment(storing(), plan, hidden=True)
        done = subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=environment,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write(made.module, "def value():\n    return 'old'\n", "def value():\n    return 'new'\n")
    return made


def test_a_main_script_is_what_it_would_be(project: Project) -> None:
    tail = (
        "import sys, os, json, inspect, helper\n"
        "print(json.dumps([TEXT, __name__, __file__, sys.argv, sys.path[0], os.getcwd(),"
        " helper.value(), inspect.getsource(helper.value), open(__file__).read()[:12],"
        " __spec__ is None, sorted(vars())[:3]]))\n"
    )
    project.write(project.script, "TEXT = 'old'\n" + tail, "TEXT = 'new'\n" + tail)
    values = json.loads(project.run("train.py", "--epochs", "3"))
    assert values[:2] == ["new", "__main__"]
    assert values[2:6] == [
        str(project.script),
        ["train.py", "--epochs", "3"],
        str(project.folder),
        str(project.folder),
    ]
    assert values[6:10] == ["new", "def value():\n    return 'new'\n", "TEXT = 'new'", True]


def test_without_a_change_the_namespace_is_the_interpreters(project: Project) -> None:
    """The same script, run by Python and by us, sees the same names."""
    text = "names = sorted(vars())\nprint(names, __builtins__.__name__, type(__loader__).__name__)\n"
    project.write(project.script, text, text)
    plain = subprocess.run(
        [sys.executable, "train.py"], capture_output=True, text=True, check=True, cwd=project.folder
    )
    assert project.run("train.py") == plain.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["-O", "-X", "utf8", "./train.py", "a b", "-m"],
        ["-P", "train.py"],
        ["-u", "../project/train.py"],
        ["link.py"],
    ],
)
def test_the_interpreter_has_its_options_and_the_script_its_path(project: Project, words: list[str]) -> None:
    """Whatever the command is, Python with the changed file in place prints the same."""
    text = "import sys; print(__file__, sys.argv, sys.path, sys.flags, sys._xoptions, sys.executable)\n"
    (project.folder / "link.py").symlink_to("train.py")
    project.write(project.script, "print('old')\n", text)
    shown = project.run(*words)
    project.script.write_text(text)
    project.changed.clear()
    assert project.run(*words) == shown


def test_a_script_that_starts_itself_is_changed_there_too(project: Project) -> None:
    """Launchers do so with their workers, and some scripts to set a variable for the libraries."""
    tail = (
        "import os, subprocess, sys\n"
        "print(TEXT, sys.argv[1:], flush=True)\n"
        "if not sys.argv[1:]:\n"
        "    subprocess.run([sys.executable, '-B', __file__, 'child'], check=True)\n"
        "    os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])\n"
    )
    project.write(project.script, "TEXT = 'old'\n" + tail, "TEXT = 'new'\n" + tail)
    assert project.run("train.py") == "new []\nnew ['child']\nnew ['again']\n"


def test_open_stays_what_it_is_in_a_class_and_in_a_pickle(project: Project) -> None:
    text = (
        "import pickle\n"
        "class Source:\n"
        "    read = open\n"
        "print(Source().read('helper.py').read()[-6:-1], pickle.loads(pickle.dumps(open)) is open)\n"
    )
    project.write(project.script, text, text)
    assert project.run("train.py") == "'new' True\n"


def test_a_module_is_run_as_python_m_does(project: Project) -> None:
    (project.folder / "package").mkdir()
    project.write(
        project.folder / "package" / "__main__.py",
        "print('old', __name__, __package__)\n",
        "print('new', __name__, __package__)\n",
    )
    other = project.folder / "changed-__main__.py"
    assert other.exists()
    assert project.run("-m", "package") == "new __main__ package\n"


def test_a_spawned_child_reads_the_changed_files(project: Project) -> None:
    tail = (
        "import multiprocessing, helper\n"
        "def work(_):\n"
        "    return TEXT, helper.value()\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(work, [0]))\n"
    )
    project.write(project.script, "TEXT = 'old'\n" + tail, "TEXT = 'new'\n" + tail)
    assert project.run("train.py") == "[('new', 'new')]\n"


def test_stored_bytecode_is_not_used_and_none_is_stored(project: Project) -> None:
    plain = [sys.executable, "-c", "import helper; print(helper.value())"]
    subprocess.run(plain, check=True, cwd=project.folder, capture_output=True, env=storing())
    stored = {path: path.read_bytes() for path in project.folder.rglob("*.pyc")}
    assert stored
    text = "import helper; print(helper.value())\n"
    project.write(project.script, text, text)
    assert project.run("train.py") == "new\n"
    assert {path: path.read_bytes() for path in project.folder.rglob("*.pyc")} == stored


def test_a_traceback_shows_the_changed_line(project: Project) -> None:
    text = (
        "import helper, traceback\ntry:\n    helper.fail()\nexcept ValueError:\n    print(traceback.format_exc())\n"
    )
    project.write(project.script, text, text)
    project.write(
        project.module,
        "def fail():\n    raise ValueError('old')\n",
        "X = 1\ndef fail():\n    raise ValueError('new')\n",
    )
    shown = project.run("train.py")
    assert "line 3, in fail" in shown
    assert "raise ValueError('new')" in shown


def test_writing_goes_to_the_file_itself(project: Project) -> None:
    text = "open('helper.py', 'a').write('# mine')\n"
    project.write(project.script, text, text)
    project.run("train.py")
    assert project.module.read_text().endswith("# mine")
    assert "# mine" not in Path(project.changed[str(project.module)]).read_text()
