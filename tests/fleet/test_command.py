"""`tfdoctor fleet` as users run it: with workers of this machine, and on a cluster of real processes."""

import pickle
import socket
from threading import Event

import fsspec
from pyarrow import parquet

from benchmarks.fleet import rows, scheduler_alone, start_process, until, worker_command
from benchmarks.fleet_recordings import SAMPLES, recordings, slower
from tests.cases import sure
from tests.command import tfdoctor
from tests.kit import *
from tests.remote import servers
from tfdoctor.fleet import cluster as fleet_cluster
from tfdoctor.fleet.places import FleetPlan, FoundRecording, RecordingJob, title
from tfdoctor.fleet.table import FleetTable
from tfdoctor.remote.uploads import Uploads
from tfdoctor.rulebook.config import Config

COUNT = 6

Row = Mapping[str, Any]


def command(*words: object) -> "subprocess.Popen[str]":
    """Start the command in a group of its own, as a terminal does."""
    whole, pipe = [sys.executable, "-m", "tfdoctor", "fleet", *map(str, words)], subprocess.PIPE
    return subprocess.Popen(whole, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def fleet(*words: object, workers: int = 1, code: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run the command in this process, in which no other one has ended the fork servers."""
    with mock.patch.object(fleet_cluster, "ENDED", Event()), mock.patch.dict(fleet_cluster.SERVERS, clear=True):
        done = tfdoctor("fleet", "--workers", str(workers), *map(str, words))
        for server in fleet_cluster.SERVERS.values():
            with server:  # closes its pipes
                server.kill()
    assert done.returncode == code, done.stdout + done.stderr
    return done


def interrupted(out: Path, *words: object, after: int) -> str:
    """Run the command, and press Ctrl-C when its table has so many lines; return what it printed."""
    with command(*words, "--workers", 1, "--out", out) as run:
        until(lambda: rows(out / "runs.jsonl") >= after, 120)
        os.killpg(run.pid, signal.SIGINT)  # a terminal sends it to the whole group
        shown = "".join(run.communicate(timeout=60))
    assert run.returncode == 130
    return shown


def table(out: Path) -> dict[str, Row]:
    """Return the rows by the name of their folder; each has one."""
    lines = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    by_name = {title(row["place"]): row for row in lines}
    assert len(by_name) == len(lines)
    return by_name


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    list(recordings(folder, COUNT))
    return folder


@pytest.fixture(scope="module")
def examined(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the rows of six recordings and of a damaged one."""
    broken = source / "job-0" / "broken" / "plugins" / "profile" / "run"
    broken.mkdir(parents=True)
    (broken / "host.xplane.pb").write_bytes(b"\n\x7fbroken")
    out = tmp_path_factory.mktemp("fleet")
    done = fleet(source, "--out", out, workers=2)
    assert done.stderr == ""
    shown = ("Runs that waste most", "One recording could not be diagnosed.")
    assert [text for text in shown if text not in done.stdout] == []
    return out


@pytest.fixture
def out(examined: Path, tmp_path: Path) -> Path:
    """A copy of the folder with the rows."""
    return Path(shutil.copytree(examined, tmp_path / "fleet"))


def test_each_recording_has_a_row_and_a_report(examined: Path) -> None:
    found = table(examined)
    assert sorted(found) == ["broken", *(f"run-{number:05}" for number in range(COUNT))]
    assert (found["broken"]["failure"], found["broken"]["report"]) == ("unreadable", "")
    assert "damaged" in found["broken"]["error"]
    for name in set(found) - {"broken"}:
        assert (examined / found[name]["report"]).stat().st_size > 100_000
    first = found["run-00000"]
    assert (first["job"], first["device"], first["devices"]) == ("project-0/input_bound.py", "CPU", 1)
    assert first["findings"][0]["rule"] == "python-input"
    assert parquet.read_table(examined / "runs.parquet").num_rows == COUNT + 1
    assert "run-00003" in (examined / "fleet.html").read_text()


def test_a_row_has_the_figures_of_the_report(examined: Path, source: Path, tmp_path: Path) -> None:
    one = source / "job-2" / "run-00002"
    assert tfdoctor("report", str(one), "--out", str(tmp_path), "--format", "json").returncode == 0
    report = json.loads((tmp_path / "report.json").read_text())
    row = table(examined)["run-00002"]
    steps = report["steps"]
    parts = report["untraced_breakdown_ms" if steps["untraced_ms"] else "breakdown_ms"]
    assert row["step_ms"] == (steps["untraced_ms"] or steps["step_ms"])
    assert row["saving_share"] == report["together"]["share"]
    assert [one["rule"] for one in row["findings"]] == [one["rule"] for one in report["entries"]]
    assert row["parts_ms"] == {part: time for part, time in parts.items() if part in row["parts_ms"]}


def test_only_what_is_new_or_changed_is_examined(examined: Path, out: Path, source: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(source, tmp_path / "moved"))
    first = fleet(source, "--out", out, "--timeout", "1ms")
    assert f"{COUNT + 1} of {COUNT + 1} recordings are in the table and have not changed" in first.stderr
    assert table(out) == table(examined)
    fleet(moved, "--out", out)
    digests = {name: row["digest"] for name, row in table(examined).items()}
    assert {name: row["digest"] for name, row in table(out).items()} == digests
    trace = next((moved / "job-1").rglob("*.xplane.pb"))
    trace.write_bytes(slower(trace.read_bytes(), 1.5))
    shutil.rmtree(moved / "job-3")
    fleet(moved, "--out", out, "--timeout", "1ms")
    found = table(out)
    assert set(digests) - set(found) == {"run-00003"}
    assert {name for name, row in found.items() if row["failure"] == "timeout"} == {"run-00001"}


def test_copies_are_known_by_their_content(examined: Path, out: Path, source: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(source / "job-2", moved / "job-2")
    shutil.copytree(source / "job-2", moved / "job-3")
    fleet(moved, "--out", out)
    (row,) = table(out).values()
    was = table(examined)["run-00002"]
    assert row["place"] == str(moved / "job-2" / "run-00002")
    assert [copy["place"] for copy in row["copies"]] == [str(moved / "job-3" / "run-00002")]
    assert {key for key in row if row[key] != was[key]} == {"copies", "key", "place"}
    assert "2 of 2 recordings are in the table" in fleet(moved, "--out", out).stderr
    assert list(table(out).values()) == [row]


def test_a_recording_that_needs_more_memory_costs_one_row(source: Path, tmp_path: Path) -> None:
    """And a parser without memory does not call a trace damaged."""
    big = tmp_path / "runs" / "big" / "plugins" / "profile" / "run"
    big.mkdir(parents=True)
    trace = next((source / "job-0").rglob("run-00000/**/*.xplane.pb")).read_bytes()
    size = bytes((280_000_000 >> shift & 127) | (128 if shift < 28 else 0) for shift in range(0, 35, 7))
    (big / "host.xplane.pb").write_bytes(trace + b"\x12" + size)
    os.truncate(big / "host.xplane.pb", len(trace) + 6 + 280_000_000)  # zeros that take no room
    shutil.copytree(SAMPLES / "cpu-input-bound", tmp_path / "runs" / "wide")
    wide = next((tmp_path / "runs" / "wide").rglob("*.xplane.pb"))
    empty_plane = b"\x0a\x00"  # of which the parser makes an object fifty times as large
    wide.write_bytes(wide.read_bytes() + 5_000_000 * empty_plane)
    shutil.copytree(source / "job-1", tmp_path / "runs" / "job-1")
    fleet(tmp_path / "runs", "--out", tmp_path / "out", "--memory", "270MB", "--no-reports")
    found = table(tmp_path / "out")
    failures = {name: row["failure"] for name, row in found.items()}
    assert failures == {"big": "memory", "wide": "memory", "run-00001": ""}
    assert found["big"]["error"] == "It needs more than 270 MB of memory: raise --memory."


def test_ctrl_c_keeps_what_is_done_and_the_same_command_continues(out: Path, source: Path) -> None:
    """Rows of other settings are not taken for examined."""
    words = (source, "--select", "float32-matmul", "--no-reports")
    shown = interrupted(out, *words, after=COUNT + 2)
    assert "Traceback" not in shown
    assert "the same command continues" in " ".join(shown.split())
    before = table(out)
    assert 0 < len(before) < COUNT + 1
    fleet(*words, "--out", out)
    assert set(table(out)) == {"broken", *(f"run-{number:05}" for number in range(COUNT))}
    for found in (before, table(out)):
        assert len({row["settings"] for row in found.values()}) == 1
        assert {finding["rule"] for row in found.values() for finding in row["findings"]} <= {"float32-matmul"}


def test_a_table_of_failures_has_an_exit_code(out: Path, source: Path) -> None:
    fleet(source / "job-0" / "broken", "--out", out, code=2)
    assert [*table(out)] == ["broken"]


def test_scrubbed_tables_and_pages_name_nobody(source: Path, tmp_path: Path) -> None:
    """Not in rows that are diagnosed, copied, damaged or too slow, nor in what was written before."""
    home, out = tmp_path / "home" / "marigold", tmp_path / "out"
    shutil.copytree(source / "job-0" / "run-00000", home / "first")
    manifest = home / "first" / "tfdoctor.json"
    manifest.write_text(manifest.read_text().replace("/home/user", "/home/marigold").replace("host0", "tulipbox"))
    (home / "bad").mkdir()
    (home / "bad" / "tulipbox.xplane.pb").write_bytes(b"\n\x7fbroken")
    fleet(tmp_path / "home", "--out", out)
    assert "marigold" in (out / "runs.jsonl").read_text()
    shutil.copytree(home / "first", home / "second")
    fleet(tmp_path / "home", "--out", out, "--scrub")
    shutil.copytree(source / "job-1" / "run-00001", home / "third")
    fleet(tmp_path / "home", "--out", out, "--scrub", "--timeout", "1ms")
    assert sorted(row["failure"] for row in table(out).values()) == ["", "timeout", "unreadable"]
    assert [path for path in out.rglob("*.*") if re.search(b"marigold|tulipbox", path.read_bytes())] == []


def test_a_row_of_other_settings_is_no_answer_for_a_copy(out: Path, source: Path, tmp_path: Path) -> None:
    """The table has the same content under old settings at one place, and under present ones at another."""
    place = tmp_path / "copy"
    words = ["--out", out, "--select", "float32-matmul", "--no-reports"]
    with FleetTable(out) as before:
        (old,) = (row for row in before.rows.values() if row.place.endswith("run-00002"))
    fleet(source / "job-2" / "run-00002", *words)
    with FleetTable(out) as now:  # as an interrupted command leaves them
        now.add(replace(old, key="elsewhere"))
    shutil.copytree(source / "job-2" / "run-00002", place)
    assert "not examined" not in fleet(place, *words).stdout
    assert list(table(out)) == ["copy"]


def test_a_lost_worker_loses_no_recording_and_a_lost_scheduler_is_no_fault_of_recordings(
    examined: Path, source: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with contextlib.ExitStack() as stack:
        address, scheduler = stack.enter_context(scheduler_alone(tmp_path))

        run = stack.enter_context(command(source, "--on", address, "--out", first, "--no-reports"))
        assert "has no worker yet: waiting" in sure(run.stderr).readline()
        words = (*worker_command(address), "--local-directory", str(tmp_path))
        workers = [start_process(stack, *words) for _ in range(2)]
        until(lambda: rows(first / "runs.jsonl") >= COUNT // 2, 120)
        workers[0].kill()
        run.communicate(timeout=120)
        assert (run.returncode, workers[0].wait(10), workers[1].poll()) == (0, -signal.SIGKILL, None)
        run = stack.enter_context(command(source, "--on", address, "--out", second, "--no-reports"))
        until(lambda: rows(second / "runs.jsonl") >= 1, 120)
        scheduler.kill()
        _, errors = run.communicate(timeout=120)
    assert (run.returncode, "The Dask scheduler is gone" in errors) == (2, True)
    assert table(first) == {name: {**row, "report": ""} for name, row in table(examined).items()}
    assert len(table(second)) < COUNT + 1
    assert {row["failure"] for row in table(second).values()} <= {"", "unreadable"}


def test_nothing_goes_on_reading_after_the_command_was_killed() -> None:
    """A fork server ends when its worker does, also in the middle of a recording."""
    server = fleet_cluster.started()
    found = FoundRecording("memory://nowhere", ("",), 0, "")
    job = RecordingJob(found=found, plan=FleetPlan(config=Config(), settings="", timeout_s=600.0))
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        slow = replace(job, found=replace(found, place=address))
        assert None not in (server.stdin, server.stdout)
        with server:
            pickle.dump(slow, server.stdin)  # type: ignore[arg-type]  # a pipe
            server.stdin.flush()  # type: ignore[union-attr]  # same
            silent.settimeout(60)
            with silent.accept()[0]:
                assert server.poll() is None
                server.stdin.close()  # type: ignore[union-attr]  # same
                assert server.wait(timeout=30) == 0


@cases(
    (["nowhere"], "There is nothing at nowhere"),
    ([".", "--on", "tcp://127.0.0.1:1"], "No Dask scheduler answers at tcp://127.0.0.1:1"),
    ([".", "--on", "tcp://127.0.0.1:1", "--workers", "2"], "leave --workers out"),
    ([".", "--memory", "4"], "is too little"),
    ([".", "--timeout", "soon"], "is not a time"),
    ([".", "--usd-per-device-hour", "T4=free"], "'free' is not a price"),
    ([], "missing argument"),
)
def test_what_is_wrong_is_one_sentence(
    words: list[str], sentence: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_cluster, "CONNECT_S", 1.0)
    places = [str(source) if word == "." else word for word in words]
    done = tfdoctor("fleet", *places, "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def bucket(source: Path) -> Iterator[tuple[str, Any, Mapping[str, str]]]:
    patch = pytest.MonkeyPatch()
    with servers.s3() as environment:
        for name, value in environment.items():
            patch.setenv(name, value)
        filesystem = fsspec.filesystem("s3", skip_instance_cache=True)
        type(filesystem).clear_instance_cache()  # of other servers
        filesystem.mkdir("team")
        for job in ("job-1", "job-5"):
            filesystem.put(str(source / job), f"s3://team/{job}", recursive=True)
        yield "s3://team", filesystem, environment
        patch.undo()


def test_a_fleet_that_is_killed_continues_in_its_bucket(bucket: tuple[str, Any, Mapping[str, str]]) -> None:
    """Uploads are sent while it works, and only what has changed."""
    url, filesystem, _ = bucket
    uploads = Uploads()
    folder = uploads.folder(f"{url}/killed")
    (folder / "reports").mkdir()
    (folder / "reports" / "a.html").write_text("page")
    (folder / "runs.jsonl").write_text("first\n")
    uploads.save(folder)
    (folder / "runs.jsonl").write_text("first\nsecond\n")
    filesystem.rm(f"{url}/killed/reports/a.html")
    uploads.save(folder)
    filesystem.invalidate_cache()
    assert filesystem.cat(f"{url}/killed/runs.jsonl") == b"first\nsecond\n"
    assert not filesystem.exists(f"{url}/killed/reports/a.html")
    again = Uploads()
    former = again.with_former(again.with_former(again.folder(f"{url}/killed"), "runs.jsonl"), "missing")
    assert [path.name for path in former.iterdir()] == ["runs.jsonl"]
    shutil.rmtree(folder)
    shutil.rmtree(former)


def test_a_fleet_in_a_bucket(bucket: tuple[str, Any, Mapping[str, str]], tmp_path: Path) -> None:
    url, filesystem, _ = bucket
    words = (f"{url}/**/plugins/profile/*", "--out", f"{url}/fleet")
    done = fleet(*words)
    filesystem.invalidate_cache()
    filesystem.get(f"{url}/fleet/runs.jsonl", str(tmp_path / "runs.jsonl"))
    found = table(tmp_path)
    assert {name: row["place"] for name, row in found.items()} == {
        "run-00001": f"{url}/job-1/run-00001",
        "run-00005": f"{url}/job-5/run-00005/plugins/profile/run",
    }
    assert filesystem.exists(f"{url}/fleet/{found['run-00005']['report']}")
    assert f"uploading {url}/fleet/fleet.html" in done.stdout
    filesystem.pipe(f"{url}/fleet/reports/notes.html", b"the user's own")
    fewer = fleet(f"{url}/job-1/**", *words[1:])
    assert "1 of 1 recordings are in the table" in fewer.stderr
    filesystem.invalidate_cache()
    pages = {path.rpartition("/")[2] for path in filesystem.find(f"{url}/fleet/reports")}
    assert pages == {found["run-00001"]["report"].rpartition("/")[2], "notes.html"}
