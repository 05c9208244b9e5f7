"""Which process of a run its recording is about, and an unfinished recording that is read in place."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tfdoctor.capture import manifest
from tfdoctor.capture.folder import Folder, assemble
from tfdoctor.capture.plan import Plan
from tfdoctor.recording import Manifest, Recording, folders
from tfdoctor.recording.typed import read

PREDICTING, TRAINING = 11, 12


def log(pid: int, buckets: int = 1) -> str:
    """Return the account of a process; the longer, the more buckets it has."""
    lines: list[dict[str, object]] = [
        {"kind": "process", "pid": pid, "started_unix_ns": 1, "started_monotonic_ns": 1},
        {"kind": "call", "id": 0, "call": "script"},
        *({"kind": "bucket", "start": n, "end": n + 1.0, "calls": {"0": 9.0}} for n in range(buckets)),
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def process(out: Path, pid: int, buckets: int, *, seen: int = 0, name: str = "") -> Path:
    folder = out / "processes" / (name or f"vm.{pid}")
    folder.mkdir(parents=True)
    steps = {"steps": {"seen": seen, "source": "keras-fit"}} if seen else {}
    (folder / "agent.json").write_text(json.dumps({"pid": pid, "finished": True, **steps}))
    (folder / "run.jsonl").write_text(log(pid, buckets))
    return folder


def begun(out: Path, pid: int | None) -> Manifest:
    state = manifest.begin(Plan("predict.py"), ["python3", "predict.py"])
    times = {"times": {"pid": pid, "started_ns": 1}} if pid else {}
    state = read(Manifest, {**asdict(state), **times}, [])
    out.mkdir(exist_ok=True)
    manifest.write(out, state)
    return state


def shown(out: Path) -> int:
    run = Recording.open(out).run
    assert run is not None
    return run.process.pid


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize(
    ("started", "buckets", "seen", "pid"),
    [
        (21, {21: 1, 22: 9}, {}, 21),  # what tfdoctor started, though another has the longer account
        (20, {21: 1, 22: 9}, {}, 22),  # a shell started them: the longest
        (None, {21: 1, 22: 9}, {}, 22),  # a recording without times
        (21, {21: 9, 22: 1}, {22: 40}, 22),  # the trainer
    ],
)
def test_the_account_of_the_process_that_matters_is_shown(
    tmp_path: Path,
    started: int | None,
    buckets: dict[int, int],
    seen: dict[int, int],
    pid: int,
    finished: bool,  # noqa: FBT001 - by pytest
) -> None:
    out = tmp_path / "out"
    state = begun(out, started)
    for number, count in buckets.items():
        process(out, number, count, seen=seen.get(number, 0))
    if finished:
        recorded = folders.processes(out)
        done = assemble(Folder(out), manifest.end(state, 0, (), recorded), recorded)
        assert {one.pid for one in done.processes} == set(buckets)
        assert not (out / "processes").exists()
    assert shown(out) == pid
    assert Recording.open(out).manifest is not None


def test_what_runs_keras_on_another_backend_is_shown_before_what_started_it(tmp_path: Path) -> None:
    begun(tmp_path, 21)
    process(tmp_path, 21, 9)
    agent = process(tmp_path, 22, 2) / "agent.json"
    agent.write_text(json.dumps({"pid": 22, "backend": "jax", "finished": True}))
    assert shown(tmp_path) == 22


@pytest.mark.parametrize(("seen", "pid"), [(0, 22), (5, 22)])
def test_what_goes_on_in_the_background_is_read_where_it_writes(tmp_path: Path, seen: int, pid: int) -> None:
    out = tmp_path / "out"
    state = replace(begun(out, 21), background=(22,))
    process(out, 21, 1)
    recorded = folders.processes(out)
    assemble(Folder(out), manifest.end(state, 0, (), recorded), recorded)
    assert shown(out) == 21
    process(out, 22, 4, seen=seen)
    opened = Recording.open(out)
    assert shown(out) == pid
    assert opened.manifest is not None
    assert (opened.manifest.steps.seen, opened.manifest.background) == (seen, (22,))


def test_a_process_that_replaced_itself_shows_its_longer_account(tmp_path: Path) -> None:
    begun(tmp_path, 21)
    process(tmp_path, 21, 2)
    process(tmp_path, 21, 9, name="vm.21.1")
    run = Recording.open(tmp_path).run
    assert run is not None
    assert len(run.buckets) == 9


def test_each_worker_has_its_own_account(tmp_path: Path) -> None:
    out = tmp_path / "out"
    state = begun(out, 20)
    for pid in (21, 22):
        (process(out, pid, pid, seen=40) / "run-now.json").write_text("")
    recorded = folders.processes(out)
    assemble(Folder(out), manifest.end(state, 0, (), recorded), recorded)
    assert sorted(shown(path) for path in (out / "workers").iterdir()) == [21, 22]
    assert all((path / "run-now.json").is_file() for path in (out / "workers").iterdir())


def test_an_account_without_the_state_of_its_agent_is_read(tmp_path: Path) -> None:
    """The disk was full when the agent wrote its state."""
    begun(tmp_path, 21)
    (process(tmp_path, 21, 3) / "agent.json").unlink()
    assert shown(tmp_path) == 21


@pytest.mark.parametrize("moved", ["run.jsonl", "program.json.gz", "plugins"])
def test_what_could_not_be_moved_is_read_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: str
) -> None:
    """A disk may fill up at any file: the manifest is complete then, and the others lie in two places."""
    out = tmp_path / "out"
    state = begun(out, 21)
    folder = process(out, 21, 3, seen=40)
    (folder / "program.json.gz").write_bytes(b"")
    trace = folder / "plugins" / "profile" / "now" / "vm.xplane.pb"
    trace.parent.mkdir(parents=True)
    trace.write_bytes(b"\n\x02\x08\x01")
    rename = Path.replace

    def full(path: Path, target: Path) -> Path:
        if path.name == moved:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    recorded = folders.processes(out)
    ended = manifest.end(state, 0, (), recorded)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        assemble(Folder(out), ended, recorded)
    recording = Recording.open(out)
    assert recording.run is not None
    assert recording.run.process.pid == 21
    assert len(recording.traces) == 1
    assert recording.manifest is not None
    assert recording.manifest.finished
    assert recording.manifest.steps.seen == 40
