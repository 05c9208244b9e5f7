"""Several processes that train: which are shown, under which names, and that none is lost."""

import errno
import multiprocessing
from unittest.mock import Mock

from tests.capture.kit import *
from tfdoctor.capture import Plan, folder, manifest
from tfdoctor.capture.agent.process.rank import rank, unreadable
from tfdoctor.recording import Recording, folders
from tfdoctor.recording.manifest import Manifest
from tfdoctor.terms.errors import OutputError

XSPACE = b"\x0a\x10\x08\x01\x12\x0c/host:python" + bytes(8)

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def cluster(kind: str, index: int, tasks: object = CLUSTER) -> str:
    return json.dumps({"cluster": tasks, "task": {"type": kind, "index": index}})


# Who am I


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, None),
        ({"RANK": "3", "WORLD_SIZE": "8"}, ("worker-3", 3, 8)),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),  # a job of one
        ({"RANK": "1"}, ("worker-1", 1, None)),  # nobody said how many there are
        ({"RANK": "gold"}, None),
        ({"RANK": "²"}, None),
        ({"RANK": "0", "WORLD_SIZE": "0"}, None),
        ({"SLURM_PROCID": "1", "SLURM_STEP_ID": "0"}, ("worker-1", 1, None)),
        ({"SLURM_PROCID": "0"}, None),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, ("worker-1", 1, 2)),
        ({"OMPI_COMM_WORLD_RANK": "1"}, ("worker-1", 1, None)),  # a launcher that says no more
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, None),
        ({"RANK": "1", "WORLD_SIZE": "many"}, ("worker-1", 1, None)),
        ({"PMI_RANK": "1", "PMI_SIZE": "4"}, ("worker-1", 1, 4)),
        ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}, ("worker-2", 2, 4)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),  # the batch script that starts them
        ({"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"}, ("worker-1", 1, 2)),
        ({"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}, ("worker-1", 1, 2)),
        ({"SM_HOSTS": '["algo-1"]', "SM_CURRENT_HOST": "algo-1"}, None),
        ({"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-3"}, None),
        ({"SM_HOSTS": '{"algo-1": 0}', "SM_CURRENT_HOST": "algo-1"}, None),
        ({"SM_HOSTS": "algo-1", "SM_CURRENT_HOST": "algo-1"}, None),
        ({"JOB_COMPLETION_INDEX": "1"}, ("worker-1", 1, None)),  # of an Indexed Job
        (  # one of two processes of a pod
            {"JOB_COMPLETION_INDEX": "1", "RANK": "3", "WORLD_SIZE": "4"},
            ("worker-3", 3, 4),
        ),
        ({"TF_CONFIG": cluster("chief", 0)}, ("chief-0", 0, 4)),
        ({"TF_CONFIG": cluster("worker", 1)}, ("worker-1", 2, 4)),
        ({"TF_CONFIG": cluster("ps", 0)}, ("ps-0", 3, 4)),
        ({"TF_CONFIG": cluster("evaluator", 0)}, ("evaluator-0", 4, 4)),
        ({"TF_CONFIG": cluster("worker", 0, {"worker": ["a:1"]})}, None),
        ({"TF_CONFIG": cluster("../etc", 0)}, (".._etc-0", 4, 4)),
        # A TFJob with enableDynamicWorker.
        ({"TF_CONFIG": cluster("worker", 1, {"worker": {"1": "b:1"}, "ps": None})}, ("worker-1", 1, None)),
        ({"TF_CONFIG": cluster("ps", 0, {"worker": {}, "ps": ["d:1"]})}, ("ps-0", None, None)),
        ({"CLUSTER_SPEC": cluster("worker", 0)}, ("worker-0", 1, 4)),
        (  # Vertex AI
            {"CLUSTER_SPEC": cluster("workerpool1", 0, {"workerpool0": ["a"], "workerpool1": ["b"]})},
            ("workerpool1-0", 1, 2),
        ),
        ({"TF_CONFIG": "{", "RANK": "1", "WORLD_SIZE": "2"}, ("worker-1", 1, 2)),
        ({"TF_CONFIG": "[1]"}, None),
        ({"TF_CONFIG": "[" * 9000, "RANK": "1"}, ("worker-1", 1, None)),
        ({"CLUSTER_SPEC": 9000 * '{"a":' + "1" + 9000 * "}"}, None),
        ({"TF_CONFIG": cluster("worker", 10**20)}, None),
        ({"TF_CONFIG": cluster("w" * 5000, 0)}, None),
        ({"TF_CONFIG": cluster("worker", 0, {"worker": "a:1,b:1"})}, None),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a", "b"]}, "task": {"index": 1e999}}'}, None),
        ({"RANK": "9" * 5000, "WORLD_SIZE": "2"}, None),
        ({"RANK": "1", "WORLD_SIZE": "9" * 5000}, ("worker-1", 1, None)),
        ({"SM_HOSTS": "[" * 9000, "SM_CURRENT_HOST": "a"}, None),
        ({"TF_CONFIG": '{"cluster": {}}'}, None),
    ],
)
def test_launchers_name_a_worker(given: dict[str, str], found: tuple[str, int, int] | None) -> None:
    expected = dict(zip(("name", "rank", "size"), found, strict=True)) if found else None
    assert rank(given) == expected


@pytest.mark.parametrize(
    ("given", "ignored"),
    [
        ({"TF_CONFIG": "[" * 9000, "RANK": "gold"}, ["TF_CONFIG", "RANK"]),
        ({"CLUSTER_SPEC": cluster("worker", 0, {"worker": "a:1,b:1"})}, ["CLUSTER_SPEC"]),
        ({"SM_HOSTS": "a,b", "WORLD_SIZE": "9" * 5000}, ["SM_HOSTS", "WORLD_SIZE"]),
        ({"TF_CONFIG": "{}", "RANK": "", "SLURM_PROCID": "3"}, []),
        ({"TF_CONFIG": cluster("worker", 0), "SM_HOSTS": '["a"]'}, []),
    ],
)
def test_what_no_launcher_sets_is_ignored_with_a_note(given: dict[str, str], ignored: list[str]) -> None:
    assert unreadable(given) == ignored


# What is left is arranged


def leave(out: Path, name: str, steps: int = 0, *, trace: bool = False, **state: Any) -> None:
    """Make what a process leaves."""
    own = out / "processes" / name
    own.mkdir(parents=True)
    said = {
        "pid": int(name.rpartition(".")[2]),
        "argv": ["python", "train.py", name],
        "versions": {"tensorflow": "2.21.0"},
        "steps": {"seen": steps, "source": "keras-fit"},
        "finished": True,
        **state,
    }
    (own / "agent.json").write_text(json.dumps(said))
    if trace:
        run = own / "plugins" / "profile" / "2026_01_01_10_00_00"  # all in the same second
        run.mkdir(parents=True)
        (run / "vm.xplane.pb").write_bytes(XSPACE + name.encode())


def end(out: Path, *, finish: bool = True) -> Manifest:
    """End a run as tfdoctor does, or as when it is killed."""
    begun = manifest.begin(Plan("train.py"), ["python", "train.py"])
    manifest.write(out, begun)
    (out / "samples.jsonl").write_text('{"unix_ns":1}\n')
    if not finish:
        return begun
    left = folders.processes(out)
    return folder.assemble(folder.Folder(out), manifest.end(begun, 0, (), left), left)


def said(recording: Recording) -> Any:
    assert recording.manifest is not None
    return recording.manifest


def test_the_one_that_trained_is_the_recording(tmp_path: Path) -> None:
    leave(tmp_path, "vm.7")
    leave(tmp_path, "vm.8", 30, trace=True)
    leave(tmp_path, "vm.9", versions={})
    end(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plugins", "samples.jsonl", "tfdoctor.json"]
    recording = Recording.open(tmp_path)
    assert recording.traces[0].read_bytes() == XSPACE + b"vm.8"
    assert recording.workers == ()
    assert said(recording).steps.seen == 30
    assert [(each.pid, each.trained, each.why) for each in said(recording).processes] == [
        (8, True, ""),
        (7, False, "it ran no training step"),
        (9, False, "it did not import TensorFlow"),
    ]


def test_traces_of_one_second_are_all_kept(tmp_path: Path) -> None:
    for number, worker in ((5, 1), (6, 0), (7, 2)):
        launcher = {"name": f"worker-{worker}", "rank": worker, "size": 3}
        leave(tmp_path, f"vm.{number}", 40, trace=True, rank=launcher, host="elsewhere")
    assert end(tmp_path).workers == ("worker-0", "worker-1", "worker-2")
    assert sorted(path.read_bytes() for path in tmp_path.glob("plugins/profile/*/*")) == [
        XSPACE + name for name in (b"vm.5", b"vm.6", b"vm.7")
    ]
    recording = Recording.open(tmp_path)
    assert recording.root == tmp_path
    assert [path.name for path in recording.workers] == ["worker-0", "worker-1", "worker-2"]
    assert said(recording).worker.rank == 0
    (note,) = recording.notes
    assert note.startswith("3 workers were recorded and are compared; to report on one worker:")
    assert f"`tfdoctor report {tmp_path / 'workers' / 'worker-1'}`" in note
    second = Recording.open(recording.workers[1])
    assert second.traces[0].read_bytes() == XSPACE + b"vm.5"
    assert said(second).command == ("python", "train.py", "vm.5")
    assert "another machine" in {each.what: each.why for each in said(second).missing}["samples"]


def test_ranks_that_are_given_twice_do_not_share_a_name(tmp_path: Path) -> None:
    launcher = {"name": "worker-0", "rank": 0, "size": 2}
    leave(tmp_path, "vm.5", 40, trace=True, rank=launcher)
    leave(tmp_path, "vm.6", 30, trace=True, rank=launcher)
    assert end(tmp_path).workers == ("worker-0", "worker-0-vm-6")
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 2


def test_without_ranks_the_most_steps_come_first(tmp_path: Path) -> None:
    """A damaged state is a process that is counted."""
    leave(tmp_path, "vm.5", 90)
    leave(tmp_path, "vm.6", 30, trace=True)
    leave(tmp_path, "vm.10", 40, trace=True)
    leave(tmp_path, "vm.11")
    (tmp_path / "processes" / "vm.11" / "agent.json").write_text("{")
    done = end(tmp_path)
    assert done.workers == ("vm-10", "vm-6", "vm-5")
    assert done.processes[-1].why == "agent.json is damaged and was left out"
    assert said(Recording.open(tmp_path)).steps.seen == 40
    assert "trace" in {each.what for each in said(Recording.open(tmp_path / "workers/vm-5")).missing}


def test_a_worker_may_have_workers(tmp_path: Path) -> None:
    out = tmp_path / "workers" / "worker-0"
    leave(out, "vm.5", 20, trace=True)
    leave(out, "vm.6", 30, trace=True)
    end(out)
    recording = Recording.open(tmp_path)
    assert recording.root == tmp_path
    assert recording.traces[0].read_bytes() == XSPACE + b"vm.6"
    assert said(recording).worker.name == "vm-6"


# What tfdoctor could not assemble is read as it lies


@pytest.mark.parametrize("full", [False, True])
def test_a_killed_tfdoctor_leaves_what_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    """So does one that cannot write at the end."""
    leave(tmp_path, "vm.5", versions={})
    leave(tmp_path, "vm.6", 30, trace=True)
    begun = end(tmp_path, finish=False)
    before = sorted(tmp_path.rglob("*"))
    if full:
        left = folders.processes(tmp_path)
        monkeypatch.setattr("tempfile.mkstemp", Mock(side_effect=OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            folder.assemble(folder.Folder(tmp_path), manifest.end(begun, 0, (), left), left)
    recording = Recording.open(tmp_path)
    assert recording.traces[0].read_bytes() == XSPACE + b"vm.6"
    assert said(recording).steps.seen == 30
    assert len(recording.samples) == 1
    (note,) = recording.notes
    assert "unfinished" in note
    assert sorted(tmp_path.rglob("*")) == before


def test_a_killed_tfdoctor_leaves_all_workers(tmp_path: Path) -> None:
    leave(tmp_path, "vm.5", 20, trace=True)
    leave(tmp_path, "vm.6", 30, trace=True)
    end(tmp_path, finish=False)
    recording = Recording.open(tmp_path)
    assert recording.traces[0].read_bytes() == XSPACE + b"vm.6"
    assert "2 processes trained and vm.6 is shown" in recording.notes[0]
    other = Recording.open(tmp_path / "processes" / "vm.5")
    assert other.traces[0].read_bytes() == XSPACE + b"vm.5"
    assert said(other).steps.seen == 20


# A folder that the workers of a job share


def test_workers_that_end_together_agree_on_a_run(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        found = pool.map(folder.run_folder, [tmp_path] * 16, chunksize=1)
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["plugins"]


def claim(out: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> folder.Folder:
    monkeypatch.setenv("RANK", str(number))
    monkeypatch.setenv("WORLD_SIZE", "2")
    return folder.claim(Plan("train.py", out=out))


def test_a_worker_has_a_place_of_its_own_and_not_in_another_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "shared" / "run"
    for number in range(2):
        assert claim(out, monkeypatch, number).out == out.resolve() / "workers" / f"worker-{number}"
    with pytest.raises(OutputError, match="worker-1 is not empty"):
        claim(out, monkeypatch, 1)
    other = tmp_path / "other"
    other.mkdir()
    (other / "tfdoctor.json").write_text("{}")
    with pytest.raises(OutputError, match="other is not empty"):
        claim(other, monkeypatch, 0)
    assert [path.name for path in other.iterdir()] == ["tfdoctor.json"]


@pytest.mark.parametrize("size", [{"WORLD_SIZE": "2"}, {}], ids=["size known", "size unknown"])
def test_both_may_start_in_the_same_moment(tmp_path: Path, size: dict[str, str]) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('ran')\n")
    words = [sys.executable, "-m", "tfdoctor", "profile", "--no-report", "--sample-every", "0"]
    runs = [
        subprocess.Popen(
            [*words, "--out", "run", "train.py"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment(PYTHONPATH=str(SOURCES), RANK=str(number), **size),
        )
        for number in range(2)
    ]
    assert [(run.communicate()[0], run.returncode) for run in runs] == [("ran\n", 0)] * 2
    recording = Recording.open(tmp_path / "run")
    assert [said(Recording.open(path)).worker.rank for path in recording.workers] == [0, 1]
    assert "workers were recorded" in recording.notes[-1]
