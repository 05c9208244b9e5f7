"""Runs the shell steps of action.yml as a runner does: in order, with the environment that each one states."""

from dataclasses import field

from ruamel.yaml import YAML

from tests.kit import *

ROOT = Path(__file__).parents[2]
ACTION: Mapping[str, Any] = YAML(typ="safe").load((ROOT / "action.yml").read_text())
STEPS: list[Mapping[str, Any]] = ACTION["runs"]["steps"]

FAKE_GH = Path(__file__).with_name("fake_gh")
"""A program `gh` that notes its calls and answers from the files of a folder."""


@dataclass
class Runner:
    """A job on a runner: a folder to work in, the words of the expressions, and what the steps wrote."""

    folder: Path  # the checkout
    state: Path  # of the runner
    words: dict[str, str]
    path: str  # PATH of the job, without `gh`
    outputs: dict[str, str] = field(default_factory=dict)
    printed: str = ""

    def __post_init__(self) -> None:
        self.state.mkdir(exist_ok=True)
        (self.state / "bin").mkdir(exist_ok=True)
        shutil.copy(FAKE_GH, self.state / "bin" / "gh")

    def run(self, name: str) -> int:
        """Run the shell step of this name; return its exit code."""
        step = next(step for step in STEPS if step["name"] == name)
        output = self.state / "output"
        output.write_text("")
        done = subprocess.run(
            ["bash", "-c", step["run"]],
            cwd=self.folder,
            env=self._environment(step, output),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        self.printed = done.stdout + done.stderr
        for line in output.read_text().splitlines():
            key, _, value = line.partition("=")
            self.outputs[f"steps.{step['id']}.outputs.{key}"] = value
        return done.returncode

    def _environment(self, step: Mapping[str, Any], output: Path) -> dict[str, str]:
        known = {
            "PATH": f"{self.state / 'bin'}:{self.path}",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.state / "summary"),
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_WORKFLOW": "training speed",
            "GH_STATE": str(self.state),
        }
        stated = {key: self._resolved(value) for key, value in step.get("env", {}).items()}
        return os.environ | known | stated

    def _resolved(self, text: str) -> str:
        """Return a text with its expressions replaced by the runner's words; an unknown one is an error."""
        values = self.words | self.outputs
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: values[match[1]], text)

    def summary(self) -> str:
        """Return the job summary."""
        return (self.state / "summary").read_text()


def job_path(folder: Path) -> str:
    """Return a PATH on which `tfdoctor` and `python` are those of the tests."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / "tfdoctor").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tfdoctor "$@"\n')
    (tools / "tfdoctor").chmod(0o755)
    (tools / "python").symlink_to(sys.executable)
    return f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"


def inputs(**given: str) -> dict[str, str]:
    """Return the inputs of the action as words of expressions: these, and the defaults of the others."""
    stated = {name.replace("_", "-"): value for name, value in given.items()}
    assert stated.keys() <= ACTION["inputs"].keys()
    defaults = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()}
    return {f"inputs.{name}": value for name, value in (defaults | stated).items()}
