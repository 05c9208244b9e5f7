"""Recordings are opened wherever they come from, and never written to."""

from tests.kit import *
from tfdoctor.capture import manifest
from tfdoctor.capture.folder import Folder, assemble
from tfdoctor.capture.plan import Plan
from tfdoctor.recording import Recording, folders
from tfdoctor.recording.agent import AgentState, Missing, StepsSeen
from tfdoctor.recording.files import Notes, fold, run_log
from tfdoctor.recording.manifest import Manifest, RunTimes, program_of
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.recording.run_log import RUN_LOG, RunLog
from tfdoctor.recording.typed import read

SAMPLES = Path(__file__).parents[2] / "sample_traces"

XSPACE = b"\x0a\x10\x08\x01\x12\x0c/host:python" + bytes(8)
"""The first bytes of a trace: a plane (field 1) with an id and a name."""

PROGRAM = {"schema": 1, "graphs": [], "layers": [], "datasets": []}


def trace(folder: Path, host: str = "vm") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{host}.xplane.pb"
    path.write_bytes(XSPACE)
    return path


def recorded(root: Path, **manifest: Any) -> Path:
    trace(root / "plugins" / "profile" / "2026_01_01_10_00_00")
    written = {"schema": 1, "finished": True, **manifest}
    (root / "tfdoctor.json").write_text(json.dumps(written))
    (root / "program.json.gz").write_bytes(gzip.compress(json.dumps(PROGRAM).encode()))
    (root / "samples.jsonl").write_text('{"unix_ns":1,"host":{}}\n{"unix_ns":2,"host":{}}\n')
    return root


def state(root: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


# What can be opened


def made(root: Path, unix_s: int, **more: Any) -> Path:
    root.mkdir(parents=True)
    return recorded(root, clock=[{"unix_ns": unix_s * 10**9}], **more)


def manifest_of(path: Path | Recording) -> Manifest:
    found = (path if isinstance(path, Recording) else Recording.open(path)).manifest
    assert found
    return found


def run_of(path: Path) -> RunLog:
    found = Recording.open(path).run
    assert found
    return found


def test_of_several_recordings_the_newest_is_opened_and_said(tmp_path: Path) -> None:
    """Trap: neither names nor the times of files say which is newest; a copy has other times."""
    old, new = made(tmp_path / "z", 1), made(tmp_path / "jobs" / "a", 2)
    os.utime(old / "tfdoctor.json")
    recording = Recording.open(tmp_path)
    assert (recording.root, recording.title(tmp_path)) == (new, "a")
    assert None not in (recording.manifest, recording.program)
    note = f"2 recordings found: the newest recording, jobs/a, is shown; to see another, name it: {old}"
    assert recording.notes == (note,)


@cases(("2025_01_01_10_00_00", False), ("2027_01_01_10_00_00", True))
def test_a_recording_precedes_runs_of_tensorboard(run: str, *, newer: bool, tmp_path: Path) -> None:
    mine = made(tmp_path / "mine", 1)
    bare = trace(tmp_path / "plugins" / "profile" / run).parent
    recording = Recording.open(tmp_path)
    shown = "1 recording and 1 TensorBoard run found: the newest recording, mine, is shown; "
    than = f"plugins/profile/{run} is newer and is only a trace; " if newer else ""
    assert (recording.root, recording.notes) == (mine, (f"{shown}{than}to see another, name it: {bare}",))


def test_what_a_recording_contains_is_no_other_recording(tmp_path: Path) -> None:
    """Workers and copies inside a recording belong to it; one recording alone needs no note."""
    job = tmp_path / "job"
    for n in (0, 1):
        made(job / "workers" / f"worker-{n}", 1 + n)
    made(job / "workers" / "worker-1" / "copy", 9)
    recording = Recording.open(tmp_path)
    assert [path.name for path in recording.workers] == ["worker-0", "worker-1"]
    assert recording.root == job
    assert [note for note in recording.notes if "found" in note] == []
    assert Recording.open(job).workers == recording.workers


@cases((True,), (False,))
def test_recordings_and_runs_are_looked_for_two_folders_down(*, has_manifest: bool, tmp_path: Path) -> None:
    deep = made(tmp_path / "a" / "b" / "c", 1)
    if not has_manifest:
        (deep / "tfdoctor.json").unlink()
    found = Recording.open(tmp_path / "a")
    assert (found.root, found.traces) == (deep if has_manifest else None, tuple(deep.glob("plugins/profile/*/*")))
    with pytest.raises(InputError, match="No trace"):
        Recording.open(tmp_path)


def test_a_recording_and_a_log_directory_of_tensorboard(tmp_path: Path) -> None:
    recording = Recording.open(recorded(tmp_path / "own"))
    assert (recording.root, recording.notes) == (tmp_path / "own", ())
    assert [path.name for path in recording.traces] == ["vm.xplane.pb"]
    assert (manifest_of(recording).finished, recording.program) == (True, ProgramRecord(layers=()))
    assert [sample.unix_ns for sample in recording.samples] == [1, 2]
    trace(tmp_path / "logs" / "train" / "plugins" / "profile" / "2026_01_01_10_00_00")
    bare = Recording.open(tmp_path / "logs")
    assert (len(bare.traces), bare.root, bare.manifest, bare.program, bare.samples) == (1, None, None, None, ())


@each("", "plugins", "plugins/profile")
def test_the_newest_run_is_shown_and_said(start: str, tmp_path: Path) -> None:
    for run in ("2026_01_01_10_00_00", "2026_01_03_10_00_00", "2026_01_02_10_00_00"):
        trace(tmp_path / "plugins" / "profile" / run)
    recording = Recording.open(tmp_path / start)
    assert recording.traces[0].parent.name == "2026_01_03_10_00_00"
    assert recording.notes == ("3 runs found: the newest, 2026_01_03_10_00_00, is shown",)


def test_a_run_folder_with_two_hosts_and_one_file_of_it(tmp_path: Path) -> None:
    paths = trace(tmp_path, "b"), trace(tmp_path, "a")
    assert (Recording.open(str(tmp_path)).traces, Recording.open(paths[0]).traces) == (paths[::-1], paths[:1])


def test_a_recording_without_a_trace_still_says_what_happened(tmp_path: Path) -> None:
    missing = [{"what": "trace", "why": "the run ended after 7 steps"}]
    (tmp_path / "tfdoctor.json").write_text(json.dumps({"finished": True, "missing": missing}))
    recording = Recording.open(tmp_path)
    assert (recording.traces, manifest_of(recording).missing) == ((), (Missing(**missing[0]),))


def test_opening_writes_nothing(tmp_path: Path) -> None:
    before = state(recorded(tmp_path))
    assert Recording.open(tmp_path).program is not None
    assert state(tmp_path) == before


# What cannot


@cases(
    (b"", "empty"),
    (gzip.compress(XSPACE, mtime=0), "compressed"),
    (b"<!DOCTYPE html><html></html>", "a web page"),
    (b"  <HTML>", "a web page"),
    (b'{"traceEvents": []}', "JSON"),
    (b"[1, 2]", "JSON"),
    (b"\nname: vm\nplane: 3\n", "text"),
    (b"\x08\x96\x01", "no XSpace"),
    (b"\x80\x04\x95", "no XSpace"),
)
def test_a_file_that_is_no_trace(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        Recording.open(path)
    assert str(path) in str(caught.value)


@cases(("nowhere", "There is nothing at"), ("", "No trace under"))
def test_a_place_without_a_trace(where: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        Recording.open(tmp_path / where)


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the system reports it: root may read everything."""
    path = trace(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(InputError, match="permissions"):
        Recording.open(path)


# What is damaged is left out, and said


@cases(
    *(("tfdoctor.json", content) for content in (b"", b"{", b"\xff\xfe", b"[]", b"null", b"[" * 100_000)),
    *(("program.json.gz", content) for content in (b"", b"no gzip", gzip.compress(b"{}", mtime=0)[:9])),
    *(("program.json.gz", gzip.compress(content, mtime=0)) for content in (b"{", b"[]")),
    ids=range(11),
)
def test_a_damaged_file_is_left_out(name: str, content: bytes, tmp_path: Path) -> None:
    (recorded(tmp_path) / name).write_bytes(content)
    found = Recording.open(tmp_path)
    assert (found.manifest is None, found.program is None) == (name == "tfdoctor.json", name != "tfdoctor.json")
    assert (len(found.traces), found.notes) == (1, (f"{name} is damaged and was left out",))


def test_damaged_lines(tmp_path: Path) -> None:
    recorded(tmp_path)
    lines = b'{"pid":1,"unix_ns":1,"ms":9}\n{"pid":\n\xff\n[]\n{"unix_ns":"late"}\n{"pid":2,"unix_ns":2,"ms":0}\n{"'
    (tmp_path / "samples.jsonl").write_bytes(lines)
    (tmp_path / "workers.jsonl").write_bytes(lines + b'\n{"pid":3,"ms":9,"waiting_ms":6e3}\n{"pid":4,"ms":1e15}')
    recording = Recording.open(tmp_path)
    assert ([one.unix_ns for one in recording.samples], [one.pid for one in recording.parts]) == ([1, 2], [1, 2])
    damaged = "5 damaged lines were left out of {}.jsonl"
    left = "two workers left out of workers.jsonl: they tell of more time than passed"
    assert recording.notes == (damaged.format("samples"), damaged.format("workers"), left)


def test_an_unfinished_recording_takes_the_agents_word(tmp_path: Path) -> None:
    recorded(tmp_path, finished=False, versions={"python": "3.11"})
    agent = {
        "window": {"first_step": 10, "steps": 20},
        "steps": {"source": "keras-fit", "seen": 33},
        "versions": {"tensorflow": "2.21.0"},
        "errors": [{"where": "layer", "error": "ValueError: x"}],
        "missing": [],
    }
    (tmp_path / "agent.json").write_text(json.dumps(agent))
    recording = Recording.open(tmp_path)
    found = manifest_of(recording)
    assert (found.window and found.window.first_step, found.steps.seen, found.agent_errors[0].where) == (
        10,
        33,
        "layer",
    )
    assert found.versions == {"python": "3.11", "tensorflow": "2.21.0"}
    assert "unfinished" in " ".join(recording.notes)


@cases(
    ({"schema": 2}, "later tfdoctor (schema 2)"),
    ({"schema": 0}, "schema 0"),
    ({"schema": "x"}, "schema 'x'"),
    ({"schema": 1}, ""),
    ({"schema": None}, "None"),
    ({}, ""),  # of an old tfdoctor
)
def test_another_schema_is_said(schema: dict[str, object], note: str, tmp_path: Path) -> None:
    path = recorded(tmp_path) / "program.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"graphs": [], **schema}).encode()))
    notes = Recording.open(tmp_path).notes
    assert ["program.json.gz" in text and note in text for text in notes] == ([True] if note else [])
    later = Recording.open(recorded(tmp_path / "later", schema=2))
    assert any("later tfdoctor" in text for text in later.notes)


# Manifest


def test_a_manifest_survives_the_round_trip() -> None:
    data = {
        "schema": 1,
        "tfdoctor": "0.1.0",
        "finished": True,
        "command": ["python", "train.py"],
        "host": {"name": "vm", "cpu_flags": ["avx2"], "cores_usable": 1.5, "cores_logical": 2},
        "window": {"first_step": 10, "steps": 20, "calls": 5, "stopped_unix_ns": None},
        "outcome": {"exit_code": 130, "signal": 2},
        "clock": [{"unix_ns": 5, "monotonic_ns": 3}],
        "samplers": [{"name": "host", "status": "on", "count": 3, "cost_ms": 1}],
    }
    manifest = read(Manifest, data, [])
    figures = manifest.command, manifest.host.cores_usable, manifest.window and manifest.window.calls
    assert (*figures, manifest.outcome.exit_code) == (("python", "train.py"), 1.5, 5, 130)
    assert read(Manifest, json.loads(json.dumps(asdict(manifest))), []) == manifest


@cases(
    ("script", "jobs/train.py", "python jobs/train.py --lr 0.1 'a b'", "train.py --lr 0.1 'a b'"),
    ("module", "pkg.train", "python -m pkg.train --lr 0.1", "pkg.train --lr 0.1"),
    ("command", "bash", "bash run.sh", ""),
    ("", "", "", ""),
)
def test_a_report_has_the_programs_name(kind: str, script: str, command: str, program: str, tmp_path: Path) -> None:
    recorded(tmp_path, command=shlex.split(command), plan={"kind": kind, "script": script})
    assert Recording.open(tmp_path).invocation == program


@cases(
    ("python jobs/train.py --lr 0.1", "jobs/train.py", "--lr 0.1"),
    ("python train.py -m 3", "train.py", "-m 3"),
    ("python -u -W ignore -m pkg.train data.py", "pkg.train", "data.py"),
    ("numactl -m 0 python3.12 train.py", "train.py", ""),
    ("mpirun -n 2 /usr/bin/python3 -m pkg.train", "pkg.train", ""),
    ("torchrun --nnodes 2 -m pkg.train 3", "pkg.train", "3"),
    *((command, "", "") for command in ("python train -m 3", "bash run.sh", "python -m", "tool -m", "")),
)
def test_the_program_of_a_command(command: str, program: str, arguments: str) -> None:
    """Trap: `-m` may be an argument of the script, or of what starts Python."""
    assert program_of(command.split()) == (program, arguments.split())


@cases((True, "steps", True), (True, "time", True), (True, "end", False), (False, "steps", False))
def test_a_run_is_ended_early_where_its_window_was_full(*, stop_after: bool, stopped_by: str, early: bool) -> None:
    data = {"schema": 1, "plan": {"stop_after": stop_after}}
    assert read(Manifest, {**data, "window": {"stopped_by": stopped_by}}, []).ended_early is early
    assert not read(Manifest, data, []).ended_early


@each(
    {},
    {"window": 3, "host": [], "clock": {}, "samplers": [1, None], "steps": "many"},
    {"finished": "yes", "schema": True, "command": "python", "unheard": 1},
)
def test_what_does_not_fit_keeps_its_default(data: object) -> None:
    assert read(Manifest, data, []) == Manifest()


def test_folding_adds_to_what_is_missing() -> None:
    manifest = Manifest(missing=(Missing("samples", "off"),), steps=StepsSeen(seen=3))
    folded = fold(manifest, AgentState(missing=(Missing("trace", "gone"),)))
    assert [entry.what for entry in folded.missing] == ["samples", "trace"]
    assert folded.steps.seen == 3


def test_the_first_gap_that_concerns_the_trace_says_why_nothing_was_traced() -> None:
    samples, steps, trace = (Missing("samples", "off"), Missing("steps", "no"), Missing("trace", "gone"))
    assert Manifest(missing=(samples, steps, trace)).trace_gap == steps
    assert Manifest(missing=(samples, Missing("trace of vm-5:6009", "busy"))).trace_gap is None


def test_what_is_no_regular_file_is_no_trace(tmp_path: Path) -> None:
    run = tmp_path / "plugins" / "profile" / "run"
    (run / "folder.xplane.pb").mkdir(parents=True)
    os.mkfifo(run / "pipe.xplane.pb")
    (run / "loop.xplane.pb").symlink_to(run / "loop.xplane.pb")
    with pytest.raises(InputError, match="No trace"):
        Recording.open(tmp_path)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES / "cpu-outside-steps", tmp_path / "recording"))


def linked(recording: Path, name: str) -> Recording:
    """Move a part of a recording elsewhere, and leave a link to it."""
    elsewhere = recording.parent / "elsewhere"
    (recording / name).rename(elsewhere)
    (recording / name).symlink_to(elsewhere)
    return Recording.open(recording)


@each("tfdoctor.json", "program.json.gz", "samples.jsonl", "run.jsonl")
def test_what_a_link_brings_from_elsewhere_or_a_pipe_is_no_part_of_a_recording(name: str, sample: Path) -> None:
    opened = linked(sample, name)
    read = opened.manifest, opened.program, opened.samples, opened.run
    parts = dict(zip(("tfdoctor.json", "program.json.gz", "samples.jsonl", "run.jsonl"), read, strict=True))
    assert [part for part, value in parts.items() if not value] == [name]
    assert any(name in note for note in opened.damage)
    (sample / name).unlink()
    os.mkfifo(sample / name)
    assert Recording.open(sample).traces


def test_a_trace_behind_a_link_out_of_the_recording_is_left_out(sample: Path) -> None:
    opened = linked(sample, "plugins")
    assert opened.traces == ()
    assert any("a link leads" in note for note in opened.damage)
    # Of a link that the user names, what it names is the recording.
    (sample.parent / "latest").symlink_to(SAMPLES / "cpu-outside-steps")
    assert Recording.open(sample.parent / "latest").traces


@each("workers", "processes")
def test_a_worker_or_a_process_elsewhere_is_none_of_the_run(below: str, sample: Path) -> None:
    other = Path(shutil.copytree(SAMPLES / "cpu-input-bound", sample.parent / "other"))
    (other / "agent.json").write_text('{"pid": 1, "finished": true, "steps": {"seen": 9}}')
    before = Recording.open(sample)
    (sample / below).mkdir()
    (sample / below / "0").symlink_to(other)
    after = Recording.open(sample)
    assert replace(after, notes=before.notes) == before  # but for a note on runs that lie below


# Which process of a run its recording is about, and an unfinished recording that is read in place.


def log(pid: int, buckets: int = 1) -> str:
    """Return the account of a process; the longer, the more buckets it has."""
    lines: list[dict[str, object]] = [
        {"kind": "process", "pid": pid, "started_unix_ns": 1, "started_monotonic_ns": 1},
        {"kind": "call", "id": 0, "call": "script"},
        *({"kind": "bucket", "start": n, "end": n + 1.0, "calls": {"0": 9.0}} for n in range(buckets)),
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def process(out: Path, pid: int, buckets: int, *, seen: int = 0, name: str = "", **state: object) -> Path:
    folder = out / "processes" / (name or f"vm.{pid}")
    folder.mkdir(parents=True)
    steps = {"steps": {"seen": seen, "source": "keras-fit"}} if seen else {}
    (folder / "agent.json").write_text(json.dumps({"pid": pid, "finished": True, **steps, **state}))
    (folder / "run.jsonl").write_text(log(pid, buckets))
    return folder


def begun(out: Path, pid: int | None) -> Manifest:
    state = asdict(manifest.begin(Plan("predict.py"), ["python3", "predict.py"]))
    begun = read(Manifest, state | ({"times": {"pid": pid, "started_ns": 1}} if pid else {}), [])
    manifest.write(out, begun)
    return begun


def ended(out: Path, state: Manifest) -> Manifest:
    recorded = folders.processes(out)
    return assemble(Folder(out), manifest.end(state, 0, (), recorded), recorded)


def shown(out: Path) -> int:
    return run_of(out).process.pid


@pytest.mark.parametrize("finished", [False, True])
@cases(
    (21, {21: 1, 22: 9}, {}, 21),  # what tfdoctor started, though another has the longer account
    (20, {21: 1, 22: 9}, {}, 22),  # a shell started them: the longest
    (None, {21: 1, 22: 9}, {}, 22),  # a recording without times
    (21, {21: 9, 22: 1}, {22: 40}, 22),  # the trainer
)
def test_the_account_of_the_process_that_matters_is_shown(
    started: int | None, buckets: dict[int, int], seen: dict[int, int], pid: int, *, finished: bool, tmp_path: Path
) -> None:
    state = begun(tmp_path, started)
    for number, count in buckets.items():
        process(tmp_path, number, count, seen=seen.get(number, 0))
    if finished:
        assert {one.pid for one in ended(tmp_path, state).processes} == set(buckets)
        assert not (tmp_path / "processes").exists()
    assert shown(tmp_path) == pid
    assert manifest_of(tmp_path).command


def test_what_workers_did_belongs_to_the_process_that_has_them(tmp_path: Path) -> None:
    """A worker has the longest account, a server of forks has none, and workers have workers."""
    state = begun(tmp_path, None)
    process(tmp_path, 21, 1, seen=40)
    for pid, parent, how in ((22, 21, "fork"), (30, 21, "server"), (32, 31, "spawn"), (33, 32, "fork")):
        process(tmp_path, pid, 9, worker=how, parent=parent)
    assert [one.pid for one in Recording.open(tmp_path).parts] == [22, 32, 33]
    process(tmp_path, 31, 1, seen=50)
    assert [one.pid for one in ended(tmp_path, state).processes] == [31, 21]
    parts = [Recording.open(tmp_path / "workers" / f"vm-{pid}").parts for pid in (21, 31)]
    assert [[(one.pid, one.how, one.ms) for one in of] for of in parts] == [
        [(22, "fork", 9000.0)], [(32, "spawn", 9000.0), (33, "fork", 9000.0)]
    ]  # fmt: skip


def test_what_runs_keras_on_another_backend_is_shown_before_what_started_it(tmp_path: Path) -> None:
    begun(tmp_path, 21)
    process(tmp_path, 21, 9)
    agent = process(tmp_path, 22, 2) / "agent.json"
    agent.write_text(json.dumps({"pid": 22, "backend": "jax", "finished": True}))
    assert shown(tmp_path) == 22


@each(0, 5)
def test_what_goes_on_in_the_background_is_read_where_it_writes(seen: int, tmp_path: Path) -> None:
    state = replace(begun(tmp_path, 21), background=(22,))
    process(tmp_path, 21, 1)
    ended(tmp_path, state)
    assert shown(tmp_path) == 21
    process(tmp_path, 22, 4, seen=seen)
    assert shown(tmp_path) == 22
    assert (manifest_of(tmp_path).steps.seen, manifest_of(tmp_path).background) == (seen, (22,))


def test_a_process_that_replaced_itself_shows_its_longer_account(tmp_path: Path) -> None:
    begun(tmp_path, 21)
    process(tmp_path, 21, 2)
    process(tmp_path, 21, 9, name="vm.21.1")
    assert len(run_of(tmp_path).buckets) == 9


def test_each_worker_has_its_own_account(tmp_path: Path) -> None:
    state = begun(tmp_path, 20)
    for pid in (21, 22):
        (process(tmp_path, pid, pid, seen=40) / "run-now.json").write_text("")
    ended(tmp_path, state)
    workers = list((tmp_path / "workers").iterdir())
    assert sorted(map(shown, workers)) == [21, 22]
    assert all((path / "run-now.json").is_file() for path in workers)


def test_an_account_without_the_state_of_its_agent_is_read(tmp_path: Path) -> None:
    """The disk was full when the agent wrote its state."""
    begun(tmp_path, 21)
    (process(tmp_path, 21, 3) / "agent.json").unlink()
    assert shown(tmp_path) == 21


@each("run.jsonl", "program.json.gz", "plugins")
def test_what_was_not_moved_is_read_in_place(moved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may fill up at any file: the manifest is complete then, and the others lie in two places."""
    state = begun(tmp_path, 21)
    folder = process(tmp_path, 21, 3, seen=40)
    (folder / "program.json.gz").write_bytes(b"")
    trace(folder / "plugins" / "profile" / "now")
    rename = Path.replace

    def full(path: Path, target: Path) -> Path:
        if path.name == moved:
            raise OSError(28, "No space left on device")
        return rename(path, target)

    recorded = folders.processes(tmp_path)
    done = manifest.end(state, 0, (), recorded)
    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        assemble(Folder(tmp_path), done, recorded)
    assert (shown(tmp_path), len(Recording.open(tmp_path).traces)) == (21, 1)
    assert (manifest_of(tmp_path).finished, manifest_of(tmp_path).steps.seen) == (True, 40)


# A log that tells of more time than passed is left out, and a note says so.

S = 1_000_000_000


def read_times(folder: Path, end: float, told_ms: float, manifest: Manifest | None, notes: Notes) -> RunLog | None:
    lines = [{"kind": "process", "pid": 7}, {"kind": "bucket", "start": 0.0, "end": end, "calls": {"0": told_ms}}]
    (folder / RUN_LOG).write_text("\n".join(map(json.dumps, lines)))
    return run_log(folder, notes, manifest)


def lived(seconds: int | None, pid: int = 7) -> Manifest:
    ended = None if seconds is None else (100 + seconds) * S
    return Manifest(times=RunTimes(started_ns=100 * S, ended_ns=ended, pid=pid))


@cases(
    (5.0, 5000.0, lived(6), True),
    (5.0, 5000.0, None, True),
    (9e5, 9e8, lived(None), True),  # it is running
    (9e5, 9e8, lived(6, pid=8), True),  # a process that went on without tfdoctor
    (2e9, 2e12, lived(6), False),
    (5.0, 2e12, lived(6), False),
)
def test_times_that_cannot_be_are_left_out(
    end: float, told_ms: float, manifest: Manifest | None, *, kept: bool, tmp_path: Path
) -> None:
    notes = Notes()
    assert bool(read_times(tmp_path, end, told_ms, manifest, notes)) is kept
    assert len(notes.texts) == (not kept)
    assert all(re.search(r"2,000,000,000 s.*the clock of the process was changed", note) for note in notes.texts)
