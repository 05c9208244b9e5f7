"""A change of a repository, reviewed as the recipes do it: real git, real TensorFlow, the steps of action.yml."""

from tests.ci.composite import Runner, inputs, job_path
from tests.e2e.kit import *

pytestmark = pytest.mark.tensorflow

TRAIN = """import time
import tensorflow as tf

weights = tf.Variable(tf.zeros((4, 1)))

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - 1.0) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))

for x in tf.data.Dataset.from_tensor_slices(tf.ones((640, 4))).batch(8):
    step(x)
    time.sleep(WAIT)
"""

FAST_S, SLOW_S = 0.002, 0.03
"""So far apart that no load of the machine makes one of the other."""


def git(folder: Path, *words: str) -> str:
    own = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *own, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(folder: Path, wait_s: float) -> str:
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "train.py").write_text(TRAIN.replace("WAIT", str(wait_s)))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", f"Wait {wait_s} s")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    return folder


@pytest.fixture
def path(tmp_path: Path) -> str:
    return job_path(tmp_path)


def test_a_slower_change_is_compared_with_its_base_and_refused(repository: Path, tmp_path: Path, path: str) -> None:
    base = commit(repository, FAST_S)
    commit(repository, SLOW_S)
    given = inputs(command="'train.py'", base="record", max_regression="10%", steps="40")
    words = given | {
        "runner.temp": str(tmp_path / "temp"),
        "github.token": "token",
        "github.event.pull_request.base.sha || github.event.before": base,
        "github.base_ref || github.event.repository.default_branch": "main",
        "github.event.pull_request.number": "7",
    }
    job = Runner(repository / "model", tmp_path / "runner", words, path)
    assert job.run("Profile the change") == 0, job.printed
    assert job.outputs["steps.profile.outputs.code"] == "0", job.printed
    assert job.outputs["steps.profile.outputs.traced"] == "true"
    assert job.run("Get the run to compare with") == 0, job.printed
    assert job.run("Compare") == 0, job.printed
    assert job.outputs["steps.diff.outputs.code"] == "3", job.printed
    assert job.run("Write the job summary") == 0
    assert "slower per step" in job.summary()
    assert job.run("Comment on the pull request") == 0
    assert job.run("Pass or fail") == 3
    for name in ("report.html", "report.json", "report.sarif", "tfdoctor-diff.html"):
        assert (Path(job.outputs["steps.profile.outputs.folder"]) / name).is_file()


def test_a_push_that_makes_the_step_slower_is_refused(repository: Path, tmp_path: Path, path: str) -> None:
    remote = tmp_path / "remote.git"
    git(repository, "init", "-q", "--bare", str(remote))
    hook = repository / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_bytes((ROOT / "examples" / "ci" / "pre-push").read_bytes())
    hook.chmod(0o755)
    env = os.environ | {"PATH": path, "TFDOCTOR_COMMAND": "model/train.py"}

    def push(**variables: str) -> subprocess.CompletedProcess[str]:
        words = ["git", "push", "-q", str(remote), "HEAD:refs/heads/main"]
        return ended(words, repository, env=env | variables)

    commit(repository, FAST_S)
    first = push()
    assert first.returncode == 0, first.stderr
    slower = commit(repository, SLOW_S)
    refused = push()
    assert refused.returncode != 0
    assert "Regression gate: failed" in refused.stderr
    assert git(remote, "rev-parse", "main") != slower
    (repository / "model" / "quick.py").write_text("print('no training')\n")
    accepted = push(TFDOCTOR_ACCEPT="1", TFDOCTOR_COMMAND="model/quick.py")
    assert accepted.returncode == 0, accepted.stderr
    assert git(remote, "rev-parse", "main") == slower
