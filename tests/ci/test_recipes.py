"""The recipes for CI: valid by the published schemas, and their shell parts run."""

import check_jsonschema  # type: ignore[import-untyped] # it has no types
from click.testing import CliRunner

from tests.ci.composite import ACTION, ROOT, STEPS, Runner, inputs, job_path
from tests.command import tfdoctor
from tests.kit import *

SAMPLES = ROOT / "sample_traces"
SCRIPTS = [*sorted((ROOT / "scripts" / "ci").glob("*.sh")), ROOT / "examples" / "ci" / "pre-push"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return job_path(tmp_path)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reports of both examples, in folders of their names."""
    folder = tmp_path_factory.mktemp("reported")
    for name in ("cpu-input-bound", "cpu-input-bound-fixed"):
        words = ("report", str(SAMPLES / name), "--out", str(folder / name), "--format", "json,md,html")
        assert tfdoctor(*words).returncode == 0
    return folder


@pytest.fixture
def runner(tmp_path: Path, path: str, reported: Path) -> Runner:
    """A runner whose job has reports of the fixed example."""
    report = tmp_path / "report"
    shutil.copytree(reported / "cpu-input-bound-fixed", report)
    made = Runner(tmp_path, tmp_path / "runner", inputs(command="train.py"), path)
    made.outputs = {"steps.profile.outputs.folder": str(report)}
    made.words |= {"github.token": "token", "github.event.pull_request.number": "7"}
    return made


def checked(schema: str, file: Path) -> tuple[int, str]:
    """Return the exit code of the validator, and what it says."""
    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, str(file)])
    return done.exit_code, done.output


@cases(
    ("vendor.github-actions", "action.yml"),
    ("vendor.github-workflows", "examples/ci/github-workflow.yml"),
    ("vendor.github-workflows", ".github/workflows/publish.yml"),
    ("vendor.gitlab-ci", "examples/ci/gitlab-ci.yml"),
)
def test_recipes_are_valid_by_the_published_schemas(schema: str, file: str) -> None:
    code, said = checked(schema, ROOT / file)
    assert code == 0, said


def test_the_schemas_refuse_what_is_no_recipe(tmp_path: Path) -> None:
    wrong = tmp_path / "action.yml"
    wrong.write_text((ROOT / "action.yml").read_text().replace("using: composite", "using: magic"))
    assert checked("vendor.github-actions", wrong)[0] == 1


@each(*SCRIPTS, ids=lambda path: path.name)
def test_shell_parts_can_be_run(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0


def test_every_script_is_used_by_the_action_or_another() -> None:
    texts = " ".join([str(step.get("run", "")) for step in STEPS] + [one.read_text() for one in SCRIPTS])
    assert [script for script in SCRIPTS[:-1] if f"/{script.name}" not in texts] == []


def test_the_workflow_uses_inputs_that_exist() -> None:
    workflow = (ROOT / "examples/ci/github-workflow.yml").read_text()
    lines = workflow.partition("uses: ./.github/tfdoctor")[2].splitlines()[2:]
    given = {line.strip().partition(":")[0] for line in lines} - {""}
    assert set() < given <= ACTION["inputs"].keys()


def test_a_comparable_base_is_compared_and_the_gate_decides(runner: Runner) -> None:
    """The base is the same recording, of eight steps: nothing is slower, and nothing can be shown."""
    runner.words["inputs.max-regression"] = "5%"
    runner.outputs["steps.base.outputs.path"] = str(SAMPLES / "cpu-input-bound-fixed")
    assert runner.run("Compare") == 0
    assert runner.outputs["steps.diff.outputs.code"] == "0"
    assert "::warning title=tfdoctor::It is undecided whether" in runner.printed
    assert runner.run("Write the job summary") == 0
    comparison, _, report = runner.summary().partition("## tfdoctor: Each step")
    assert "Unknown whether the step changed" in comparison
    assert "Regression gate: undecided (exit code 4)." in comparison
    assert report


@cases(
    ("5%", "0", "::warning title=tfdoctor::The runs are not comparable in time"),  # it is compared by shares
    ("10 percent", "2", "is not a percentage"),  # a gate that makes no sense fails the job
    ("0", "2", "is not"),
)
def test_a_base_that_is_not_alike_and_a_gate(
    allowed: str, code: str, said: str, runner: Runner, reported: Path
) -> None:
    runner.words["inputs.max-regression"] = allowed
    runner.outputs["steps.base.outputs.path"] = str(reported / "cpu-input-bound")
    assert runner.run("Compare") == 0
    assert (runner.outputs["steps.diff.outputs.code"], "::warning" in runner.printed) == (code, code == "0")
    assert said in runner.printed


def write_faster(base: Path, report: Path) -> None:
    """Write a copy of a report whose steps took a fifth of the time."""
    content = json.loads(report.read_text())
    content["steps"]["step_ms"] /= 5
    content["steps"]["untraced_ms"] = None
    content["untraced_breakdown_ms"] = dict.fromkeys(content["breakdown_ms"])
    for row in content["steps"]["rows"]:
        row["total_ms"] /= 5
    content["conditions"]["untraced_ms"] = None
    base.write_text(json.dumps(content))


def test_a_slower_run_fails_the_job_at_its_end(runner: Runner, tmp_path: Path) -> None:
    runner.words["inputs.max-regression"] = "5%"
    write_faster(tmp_path / "base.json", tmp_path / "report" / "report.json")
    runner.outputs["steps.base.outputs.path"] = str(tmp_path / "base.json")
    assert runner.run("Compare") == 0
    assert runner.outputs["steps.diff.outputs.code"] == "3"
    assert "::error title=tfdoctor::The training step is slower" in runner.printed
    for profiled, compared, code in (("0", "3", 3), ("1", "3", 1), ("0", "", 0)):  # the last without a comparison
        runner.outputs |= {"steps.profile.outputs.code": profiled, "steps.diff.outputs.code": compared}
        assert runner.run("Pass or fail") == code


def test_an_event_without_a_base_commit_compares_nothing(base_of: Runner) -> None:
    base_of.words |= {"inputs.base": "record", "github.event.pull_request.base.sha || github.event.before": ""}
    assert base_of.run(STEP) == 0
    assert "::notice title=tfdoctor::This event has no base commit" in base_of.printed


def calls(runner: Runner) -> list[list[str]]:
    lines = (runner.state / "calls").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_the_first_report_becomes_a_comment(runner: Runner) -> None:
    assert runner.run("Comment on the pull request") == 0, runner.printed
    assert calls(runner)[-1][:4] == ["api", "--silent", "--method", "POST"]
    assert calls(runner)[-1][4] == "repos/owner/name/issues/7/comments"
    assert (runner.state / "body").read_text().startswith("## tfdoctor: Each step takes")


def test_a_later_report_takes_the_place_of_the_comment(runner: Runner) -> None:
    (runner.state / "comment").write_text("4711\n4712\n")
    assert runner.run("Comment on the pull request") == 0
    assert calls(runner)[-1][2:5] == ["--method", "PATCH", "repos/owner/name/issues/comments/4711"]


def test_a_comparison_too_long_for_a_comment_is_left_to_the_files(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "report" / "tfdoctor-diff.md").write_text("x" * 64_000)
    assert runner.run("Comment on the pull request") == 0
    assert (runner.state / "body").read_text() == (tmp_path / "report" / "report.md").read_text()


@pytest.fixture
def base_of(runner: Runner, tmp_path: Path) -> Runner:
    runner.words |= {
        "inputs.base": "artifact",
        "runner.temp": str(tmp_path / "temp"),
        "github.event.pull_request.base.sha || github.event.before": "0" * 40,
        "github.base_ref || github.event.repository.default_branch": "main",
    }
    return runner


STEP = "Get the run to compare with"


def test_the_report_of_the_base_branch_is_taken(base_of: Runner, tmp_path: Path) -> None:
    (base_of.state / "run").write_text("123")
    (base_of.state / "artifact").mkdir()
    (base_of.state / "artifact" / "report.json").write_text("{}")
    (tmp_path / "temp" / "tfdoctor").mkdir(parents=True)
    assert base_of.run(STEP) == 0, base_of.printed
    assert Path(base_of.outputs["steps.base.outputs.path"]).read_text() == "{}"
    assert calls(base_of)[-1][:3] == ["run", "download", "123"]


@cases(("", "No successful run on main yet"), ("123", "The last run on main has no report"))
def test_without_a_report_of_the_base_branch_nothing_is_compared(run: str, notice: str, base_of: Runner) -> None:
    (base_of.state / "run").write_text(run)
    assert base_of.run(STEP) == 0
    assert "steps.base.outputs.path" not in base_of.outputs
    assert f"::notice title=tfdoctor::{notice}" in base_of.printed


def test_a_path_is_taken_as_it_is(base_of: Runner, tmp_path: Path) -> None:
    base_of.words["inputs.base"] = "earlier/report.json"
    assert base_of.run(STEP) == 0
    assert base_of.outputs["steps.base.outputs.path"] == str(tmp_path / "earlier" / "report.json")


STUB = """\
#!/usr/bin/env bash
echo '{{"subject": {{"exit_code": {ended}}}}}' > "$TFDOCTOR_OUT.json"
mkdir -p "$TFDOCTOR_OUT" && mv "$TFDOCTOR_OUT.json" "$TFDOCTOR_OUT/report.json"
exit 4
"""


@cases((0, "0", True), (4, "4", False))
def test_an_undecided_budget_warns_and_an_own_4_fails(
    ended: int, code: str, *, warned: bool, tmp_path: Path
) -> None:
    stub = tmp_path / "tfdoctor"
    stub.write_text(STUB.format(ended=ended))
    stub.chmod(0o755)
    outputs = tmp_path / "outputs"
    environment = {
        "PATH": os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "TFDOCTOR_COMMAND": "train.py",
        "TFDOCTOR_STEPS": "60",
        "TFDOCTOR_OUT": str(tmp_path / "out"),
        "GITHUB_OUTPUT": str(outputs),
    }
    done = ran_command("bash", ROOT / "scripts" / "ci" / "profile.sh", env=environment, check=True)
    assert f"code={code}\n" in outputs.read_text()
    assert ("::warning title=tfdoctor::A budget is undecided" in done.stdout) == warned
