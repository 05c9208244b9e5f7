"""Recipes for clusters: each command runs as printed, with its launcher's variables, and records both workers."""

from tests.capture.running import SOURCES
from tests.kit import *
from tfdoctor.recording import Recording

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "run-on-a-cluster.md"

STUBS = {
    "tfdoctor": f'PYTHONPATH={SOURCES} exec {sys.executable} -m tfdoctor "$@"',
    "pip": ":",
    "uv": 'mkdir -p "$HOME/.local/bin" && cp "$(command -v tfdoctor)" "$HOME/.local/bin/$$" '
    '&& mv "$HOME/.local/bin/$$" "$HOME/.local/bin/tfdoctor"',  # at once: the other worker may run it
    # What srun adds to the variables of the batch script; sh has no other way to wait for both.
    "srun": """export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2
SLURM_PROCID=0 "$@" & first=$!
SLURM_PROCID=1 "$@" && wait $first""",
}

TRAIN = "import os, sys\nassert 'TFDOCTOR_PLAN' not in os.environ\nprint('ran', *sys.argv[1:])\n"


def block(title: str) -> str:
    """Return the first listing of a section."""
    section = PAGE.read_text("utf-8").split(f"\n## {title}\n")[1]
    found = re.search(r"```\w+\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]


def words(title: str) -> list[str]:
    """Return the command of a container."""
    commands = set(re.findall(r"command: \[(.*)\](?:\n +args: \['(.*)'\])?", block(title)))
    assert len(commands) == 1  # each worker's is the same
    command, arguments = commands.pop()
    return [*command.split(", "), *([arguments] if arguments else [])]


def cluster(kind: str, index: int, *kinds: str) -> str:
    tasks = {name: [f"{name}-{n}:2222" for n in range(kinds.count(name))] for name in kinds}
    return json.dumps({"cluster": tasks, "task": {"type": kind, "index": index}})


RECIPES: Mapping[str, tuple[list[str], list[dict[str, str]], tuple[str, ...]]] = {
    "Slurm": (
        ["sh", "-c", block("Slurm")],
        [{"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_NTASKS": "2"}],
        ("worker-0", "worker-1"),
    ),
    "Indexed Job": (
        words("Kubernetes: an Indexed Job"),
        [{"JOB_COMPLETION_INDEX": str(n)} for n in range(2)],
        ("worker-0", "worker-1"),
    ),
    "TFJob": (
        words("Kubernetes: a TFJob of Kubeflow"),
        [{"TF_CONFIG": cluster("worker", n, "worker", "worker")} for n in range(2)],
        ("worker-0", "worker-1"),
    ),
    "Vertex AI": (
        words("Vertex AI"),
        [
            {
                "AIP_TENSORBOARD_LOG_DIR": "gs://BUCKET/logs/",
                "CLUSTER_SPEC": cluster(kind, 0, "workerpool0", "workerpool1"),
            }
            for kind in ("workerpool0", "workerpool1")
        ],
        ("workerpool0-0", "workerpool1-0"),
    ),
    "SageMaker": (
        ["sh", "-c", block("SageMaker"), "profile.sh", "--epochs", "2"],
        [
            {"TRAINING_JOB_NAME": "job", "SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": f"algo-{n}"}
            for n in (1, 2)
        ],
        ("worker-0", "worker-1"),
    ),
}


@each(*RECIPES)
def test_both_workers_are_recorded(recipe: str, tmp_path: Path) -> None:
    command, environments, names = RECIPES[recipe]
    (tmp_path / "bin").mkdir()
    for name, text in STUBS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "train.py").write_text(TRAIN)
    fixed = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HOME": str(tmp_path)}
    workers = [
        subprocess.Popen(
            [_local(word, tmp_path) for word in command],
            env=fixed | {name: _local(value, tmp_path) for name, value in variables.items()},
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for variables in environments
    ]
    said = [worker.communicate(timeout=300)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers), said
    ran = "ran --epochs 2\n" if recipe == "SageMaker" else "ran\n"
    assert "".join(said).count(ran) == 2
    (job,) = {path.parent.parent for path in tmp_path.rglob("workers/*")}
    assert tuple(path.name for path in Recording.open(job).workers) == names


def _local(text: str, folder: Path) -> str:
    """Return a text of a recipe with a folder in place of a bucket."""
    return re.sub(r"(s3|gs)://BUCKET", f"file://{folder}/bucket", text)
