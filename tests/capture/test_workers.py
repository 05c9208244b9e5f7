"""Several processes that train: which are shown, under which names, and that none is lost."""

import errno
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

from tests.capture.kit import *
from tests.capture.running import cli
from tests.facts.kit import Told, in_words
from tfdoctor.capture import Plan, folder, manifest
from tfdoctor.capture.agent.process.rank import rank, unreadable
from tfdoctor.recording import Recording, folders
from tfdoctor.recording.manifest import Manifest

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
for variables in GIVEN:
    name = ", ".join(f"{key}={value if len(value) < 200 else f'{value[:9]}…'}" for key, value in variables.items())
    LAUNCHERS[lambda of: {"worker": rank(of), "ignored": unreadable(of)}] = {name or "nothing": (variables,)}
test_launchers_name_a_worker = LAUNCHERS.test("workers")


# What is left is arranged


def leave(out: Path, name: str, steps: int = 0, *, trace: bool = True, damaged: bool = False, **state: Any) -> None:
    """Make what a process leaves: a trace where it took steps, unless it has none."""
    own = out / "processes" / name
    own.mkdir(parents=True)
    said = {"pid": int(name.rpartition(".")[2]), "argv": ["python", "train.py", name], "finished": True}
    said |= {"versions": {"tensorflow": "2.21.0"}, "steps": {"seen": steps, "source": "keras-fit"}, **state}
    (own / "agent.json").write_text("{" if damaged else json.dumps(said))
    if steps and trace:
        run = own / "plugins" / "profile" / "2026_01_01_10_00_00"  # all in the same second
        run.mkdir(parents=True)
        (run / "vm.xplane.pb").write_bytes(XSPACE + name.encode())


def begin(out: Path) -> Manifest:
    begun = manifest.begin(Plan("train.py"), ["python", "train.py"])
    manifest.write(out, begun)
    (out / "samples.jsonl").write_text('{"unix_ns":1}\n')
    return begun


def end(out: Path, begun: Manifest) -> Manifest:
    """End a run as tfdoctor does."""
    left = folders.processes(out)
    return folder.assemble(folder.Folder(out), manifest.end(begun, 0, (), left), left)


def recorded(path: Path, root: Path) -> Iterator[str]:
    """Yield what is in a recording, and then in those of its other workers."""
    recording = Recording.open(path)
    known = recording.manifest
    assert known is not None
    written = [trace.read_bytes().removeprefix(XSPACE).decode() for trace in recording.traces]
    yield f"{recording.root}: {known.steps.seen} steps; {in_words(known.worker)}"
    yield f"  command: {' '.join(known.command)}; traces of: {', '.join(written) or 'none'}"
    yield f"  {len(recording.samples)} samples; workers: {in_words([one.name for one in recording.workers])}"
    yield from (f"  lacks {one.what}: {one.why}" for one in known.missing)
    yield from (f"  {note}" for note in recording.notes)
    if path == root:
        for worker in recording.workers[1:]:
            yield from recorded(worker, root)


def ranked(number: int, size: int) -> dict[str, Any]:
    return {"rank": {"name": f"worker-{number}", "rank": number, "size": size}}


LEFT: dict[str, list[tuple[str, int, dict[str, Any]]]] = {
    "one that trained": [("vm.7", 0, {}), ("vm.8", 30, {}), ("vm.9", 0, {"versions": {}})],
    "traces of one second, of another machine": [
        (f"vm.{number}", 40, {**ranked(worker, 3), "host": "elsewhere"})
        for number, worker in ((5, 1), (6, 0), (7, 2))
    ],
    "a rank that is given twice": [("vm.5", 40, ranked(0, 2)), ("vm.6", 30, ranked(0, 2))],
    "no ranks: the most steps come first, of those with a trace": [
        *(("vm.5", 90, {"trace": False}), ("vm.6", 30, {}), ("vm.10", 40, {}), ("vm.11", 0, {"damaged": True}))
    ],
    "a killed tfdoctor": [("vm.5", 0, {"versions": {}}), ("vm.6", 30, {})],
    "a killed tfdoctor of two that trained": [("vm.5", 20, {}), ("vm.6", 30, {})],
    "one that cannot write at the end": [("vm.5", 0, {"versions": {}}), ("vm.6", 30, {})],
    "a worker that has workers": [("vm.5", 20, {}), ("vm.6", 30, {})],
}


def test_what_processes_leave_is_arranged_and_none_is_lost(
    tmp_path: Path, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What tfdoctor could not assemble is read as it lies."""
    lines = []
    for name, left in LEFT.items():
        root = tmp_path / name.replace(" ", "-")
        out = root / "workers" / "worker-0" if name == "a worker that has workers" else root
        for process, steps, state in left:
            leave(out, process, steps, **state)
        begun = begin(out)
        if "write" in name:
            with monkeypatch.context() as full, pytest.raises(OSError, match="full"):
                full.setattr("tempfile.mkstemp", Mock(side_effect=OSError(errno.ENOSPC, "full")))
                end(out, begun)
        elif "killed" not in name:
            begun = end(out, begun)
        told = [f"process {one.pid}{', which trained' * one.trained}: {one.why}" for one in begun.processes]
        told.append(f"workers by their names: {in_words(begun.workers)}")
        for path in (root, *sorted(root.glob("processes/*"))):
            told += [line.replace(str(root), "…") for line in recorded(path, root)]
        files = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
        lines += [f"## {name}", *(re.sub(r"profile/\w+", "profile/NOW", file) for file in files), *told, ""]
    golden("workers.recordings.txt", "\n".join(lines))


# A folder that the workers of a job share


def test_workers_that_end_together_agree_on_a_run(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        found = pool.map(folder.run_folder, [tmp_path] * 16, chunksize=1)
    assert (len(set(found)), [path.name for path in tmp_path.iterdir()]) == (1, ["plugins"])


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
    told = "\n".join(recorded(tmp_path / "run", tmp_path / "run"))
    assert re.findall("name worker-., rank .", told) == ["name worker-0, rank 0", "name worker-1, rank 1"]
    assert "workers were recorded" in told
