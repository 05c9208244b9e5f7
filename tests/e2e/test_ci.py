"""A change of a repository, reviewed as the recipes do it: real git, real TensorFlow, the steps of action.yml."""

from tests.ci.composite import Runner, inputs, job_path
from tests.e2e.kit import *

pytestmark = pytest.mark.tensorflow

TRAIN = """import statistics, time
import tensorflow as tf

weights = tf.Variable(tf.zeros((4, 1)))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - 1.0) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))

took = [0.0]
for x in tf.data.Dataset.from_tensor_slices(tf.ones((640, 4))).batch(8):
    began = time.perf_counter()
    step(x)
    took.append(time.perf_counter() - began)
    time.sleep(WAIT)
"""

FAST, SLOW = "0.002", "min(1.0, max(0.03, 20 * statistics.median(took[-20:])))"
"""So far apart, by the time that a step takes at the load of the machine, that none makes one of the other."""


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, wait: str) -> str:
    (folder / "model" / "train.py").write_text(TRAIN.replace("WAIT", wait))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", f"Wait {wait} s")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Return a job for a change that makes steps slower, of which the steps until both are recorded have passed."""
    folder = tmp_path_factory.mktemp("ci")
    repository, temporary = folder / "repository", folder / "temp"
    repository.mkdir()
    git(repository, "init", "-q")
    (repository / "model").mkdir()
    (repository / "model" / "quick.py").write_text("print('no training')\n")
    base = commit(repository, FAST)
    commit(repository, SLOW)
    given = inputs(command="'model/train.py'", base="record", max_regression="10%", steps="40")
    words = given | {
        "runner.temp": str(temporary),
        "github.token": "token",
        "github.event.pull_request.base.sha || github.event.before": base,
        "github.base_ref || github.event.repository.default_branch": "main",
        "github.event.pull_request.number": "7",
    }
    job = Runner(repository, folder / "runner", words, job_path(folder))
    assert job.run("Profile the change") == 0, job.printed
    assert job.outputs["steps.profile.outputs.code"] == "0", job.printed
    assert job.outputs["steps.profile.outputs.traced"] == "true"
    assert job.run("Get the run to compare with") == 0, job.printed
    return job


def test_a_slower_change_is_compared_with_its_base_and_refused(job: Runner) -> None:
    assert job.run("Compare") == 0, job.printed
    assert job.outputs["steps.diff.outputs.code"] == "3", job.printed
    assert job.run("Write the job summary") == 0
    assert "slower per step" in job.summary()
    assert job.run("Comment on the pull request") == 0
    assert job.run("Pass or fail") == 3
    for name in ("report.html", "report.json", "report.sarif", "tfdoctor-diff.html"):
        assert (Path(job.outputs["steps.profile.outputs.folder"]) / name).is_file()


def test_the_base_is_recorded_in_the_folder_of_the_change(job: Runner, tmp_path: Path) -> None:
    words = job.words | {"runner.temp": str(tmp_path), "inputs.command": "'quick.py'"}
    below = Runner(job.folder / "model", tmp_path / "runner", words, job.path)
    assert below.run("Get the run to compare with") == 0, below.printed
    found = Recording.open(Path(below.outputs["steps.base.outputs.path"])).manifest
    assert found
    assert (found.outcome.exit_code, Path(found.cwd).name, found.command[1:]) == (0, "model", ("quick.py",))


def test_a_push_that_makes_the_step_slower_is_refused(job: Runner, tmp_path: Path) -> None:
    """The first push trains nothing, and is recorded alone; then a recording of the base takes its place."""
    repository, remote = job.folder, tmp_path / "remote.git"
    git(repository, "init", "-q", "--bare", str(remote))
    hook, kept = (repository / ".git" / name for name in ("hooks/pre-push", "tfdoctor/before"))
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes((ROOT / "examples" / "ci" / "pre-push").read_bytes())
    hook.chmod(0o755)

    def push(revision: str, script: str, **more: str) -> subprocess.CompletedProcess[str]:
        words = ["git", "push", "-q", str(remote), f"{revision}:refs/heads/main"]
        return ended(words, repository, env={**os.environ, "PATH": job.path, "TFDOCTOR_COMMAND": script, **more})

    first = push("HEAD~", "model/quick.py")
    assert first.returncode == 0, first.stderr
    assert Recording.open(kept).run is not None
    shutil.rmtree(kept)
    shutil.copytree(job.outputs["steps.base.outputs.path"], kept)
    refused = push("HEAD", "model/train.py")
    assert refused.returncode != 0
    assert "Regression gate: failed" in refused.stderr
    slower = git(repository, "rev-parse", "HEAD")
    assert git(remote, "rev-parse", "main") == git(repository, "rev-parse", "HEAD~") != slower
    accepted = push("HEAD", "model/quick.py", TFDOCTOR_ACCEPT="1")
    assert accepted.returncode == 0, accepted.stderr
    assert git(remote, "rev-parse", "main") == slower
