"""Several processes that train: which are shown, under which names, and that none is lost."""

import errno
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

from tests.capture.kit import *
from tests.capture.running import cli
from tests.facts.kit import Told
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


DEEP, LARGE = "[" * 9000, "9" * 5000
OF_ALGO_1 = {"SM_CURRENT_HOST": "algo-1"}
VERTEX = {"workerpool0": ["a"], "workerpool1": ["b"]}
GIVEN: list[dict[str, str]] = [
    *({}, {"RANK": "3", "WORLD_SIZE": "8"}, {"RANK": "0", "WORLD_SIZE": "1"}),  # a job of one
    *({"RANK": "1"}, {"RANK": "gold"}, {"RANK": "²"}, {"RANK": "0", "WORLD_SIZE": "0"}),
    *({"RANK": "1", "WORLD_SIZE": "many"}, {"RANK": LARGE, "WORLD_SIZE": "2"}, {"RANK": "1", "WORLD_SIZE": LARGE}),
    *({"SLURM_PROCID": "1", "SLURM_STEP_ID": "0"}, {"SLURM_PROCID": "0"}),
    {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"},
    {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"},  # the batch script that starts them
    {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
    {"OMPI_COMM_WORLD_RANK": "1"},  # a launcher that says no more
    *({"PMI_RANK": "0", "PMI_SIZE": "1"}, {"PMI_RANK": "1", "PMI_SIZE": "4"}),
    {"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2"},
    *({"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": f"algo-{number}"} for number in (2, 3)),
    *({"SM_HOSTS": hosts} | OF_ALGO_1 for hosts in ('["algo-1"]', '{"algo-1": 0}', "algo-1", DEEP)),
    {"SM_HOSTS": "a,b", "WORLD_SIZE": LARGE},
    {"JOB_COMPLETION_INDEX": "1"},  # of an Indexed Job
    {"JOB_COMPLETION_INDEX": "1", "RANK": "3", "WORLD_SIZE": "4"},  # one of two processes of a pod
    *({"TF_CONFIG": cluster(kind, 0)} for kind in ("chief", "ps", "evaluator", "../etc", "w" * 5000)),
    *({"TF_CONFIG": cluster("worker", number)} for number in (1, 10**20)),
    *({"TF_CONFIG": cluster("worker", 0, {"worker": tasks})} for tasks in (["a:1"], "a:1,b:1")),
    # TFJobs with enableDynamicWorker
    {"TF_CONFIG": cluster("worker", 1, {"worker": {"1": "b:1"}, "ps": None})},
    {"TF_CONFIG": cluster("ps", 0, {"worker": {}, "ps": ["d:1"]})},
    {"CLUSTER_SPEC": cluster("worker", 0)},
    {"CLUSTER_SPEC": cluster("workerpool1", 0, VERTEX)},  # Vertex AI
    {"CLUSTER_SPEC": 9000 * '{"a":' + "1" + 9000 * "}"},
    {"CLUSTER_SPEC": cluster("worker", 0, {"worker": "a:1,b:1"})},
    *({"TF_CONFIG": "{", "RANK": "1", "WORLD_SIZE": "2"}, {"TF_CONFIG": "[1]"}, {"TF_CONFIG": '{"cluster": {}}'}),
    *({"TF_CONFIG": DEEP, "RANK": "1"}, {"TF_CONFIG": DEEP, "RANK": "gold"}),
    {"TF_CONFIG": '{"cluster": {"worker": ["a", "b"]}, "task": {"index": 1e999}}'},
    {"TF_CONFIG": "{}", "RANK": "", "SLURM_PROCID": "3"},
    {"TF_CONFIG": cluster("worker", 0), "SM_HOSTS": '["a"]'},
]
LAUNCHERS = Told()
for given in GIVEN:
    name = ", ".join(f"{key}={value if len(value) < 200 else f'{value[:9]}…'}" for key, value in given.items())
    LAUNCHERS.rows(lambda of: {"worker": rank(of), "ignored": unreadable(of)}, {name or "nothing": (given,)})
test_launchers_name_a_worker = LAUNCHERS.test("workers")


# What is left is arranged


def leave(out: Path, name: str, steps: int = 0, *, trace: bool = False, **state: Any) -> None:
    """Make what a process leaves."""
    own = out / "processes" / name
    own.mkdir(parents=True)
    said = {"pid": int(name.rpartition(".")[2]), "argv": ["python", "train.py", name], "finished": True}
    said |= {"versions": {"tensorflow": "2.21.0"}, "steps": {"seen": steps, "source": "keras-fit"}, **state}
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


def shown(recording: Recording) -> tuple[bytes, int]:
    """Return which process wrote the trace of a recording, and its steps."""
    return recording.traces[0].read_bytes().removeprefix(XSPACE), said(recording).steps.seen


def test_the_one_that_trained_is_the_recording(tmp_path: Path) -> None:
    leave(tmp_path, "vm.7")
    leave(tmp_path, "vm.8", 30, trace=True)
    leave(tmp_path, "vm.9", versions={})
    end(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plugins", "samples.jsonl", "tfdoctor.json"]
    recording = Recording.open(tmp_path)
    assert (shown(recording), recording.workers) == ((b"vm.8", 30), ())
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
    assert (recording.root, said(recording).worker.rank) == (tmp_path, 0)
    assert [path.name for path in recording.workers] == ["worker-0", "worker-1", "worker-2"]
    (note,) = recording.notes
    assert note.startswith("3 workers were recorded and are compared; to report on one worker:")
    assert f"`tfdoctor report {tmp_path / 'workers' / 'worker-1'}`" in note
    second = Recording.open(recording.workers[1])
    assert shown(second) == (b"vm.5", 40)
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
    assert (recording.root, shown(recording), said(recording).worker.name) == (tmp_path, (b"vm.6", 30), "vm-6")


# What tfdoctor could not assemble is read as it lies


@each("killed", "full")
def test_a_killed_tfdoctor_leaves_what_opens(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So does one that cannot write at the end."""
    leave(tmp_path, "vm.5", versions={})
    leave(tmp_path, "vm.6", 30, trace=True)
    begun = end(tmp_path, finish=False)
    before = sorted(tmp_path.rglob("*"))
    if how == "full":
        left = folders.processes(tmp_path)
        monkeypatch.setattr("tempfile.mkstemp", Mock(side_effect=OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            folder.assemble(folder.Folder(tmp_path), manifest.end(begun, 0, (), left), left)
    recording = Recording.open(tmp_path)
    assert (shown(recording), len(recording.samples)) == ((b"vm.6", 30), 1)
    (note,) = recording.notes
    assert "unfinished" in note
    assert sorted(tmp_path.rglob("*")) == before


def test_a_killed_tfdoctor_leaves_all_workers(tmp_path: Path) -> None:
    leave(tmp_path, "vm.5", 20, trace=True)
    leave(tmp_path, "vm.6", 30, trace=True)
    end(tmp_path, finish=False)
    recording = Recording.open(tmp_path)
    assert shown(recording) == (b"vm.6", 30)
    assert "2 processes trained and vm.6 is shown" in recording.notes[0]
    assert shown(Recording.open(tmp_path / "processes" / "vm.5")) == (b"vm.5", 20)


# A folder that the workers of a job share


def test_workers_that_end_together_agree_on_a_run(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        found = pool.map(folder.run_folder, [tmp_path] * 16, chunksize=1)
    assert len(set(found)) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["plugins"]


def test_a_worker_has_a_place_of_its_own_and_not_in_another_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, other = tmp_path / "shared" / "run", tmp_path / "other"
    monkeypatch.setenv("WORLD_SIZE", "2")
    for number in "01":
        monkeypatch.setenv("RANK", number)
        assert folder.claim(Plan("train.py", out=out)).out == out.resolve() / "workers" / f"worker-{number}"
    other.mkdir()
    (other / "tfdoctor.json").write_text("{}")
    for taken, why in ((out, "worker-1 is not empty"), (other, "other is not empty")):
        with pytest.raises(OutputError, match=why):
            folder.claim(Plan("train.py", out=taken))
    assert [path.name for path in other.iterdir()] == ["tfdoctor.json"]


@each({"WORLD_SIZE": "2"}, {}, ids=["size known", "size unknown"])
def test_both_may_start_in_the_same_moment(size: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')\n")
    words = "profile", "--no-report", "--sample-every", "0", "--out", "run", "train.py"
    with ThreadPoolExecutor() as both:
        runs = [both.submit(cli, *words, folder=tmp_path, RANK=str(number), **size) for number in range(2)]
    assert [(run.result().stdout, run.result().returncode) for run in runs] == [("ran\n", 0)] * 2
    recording = Recording.open(tmp_path / "run")
    assert [said(Recording.open(path)).worker.rank for path in recording.workers] == [0, 1]
    assert "workers were recorded" in recording.notes[-1]
