"""`tfdoctor fleet` as users run it: with workers of this machine, and on a cluster of real processes."""

import pickle
import socket
from threading import Event

import fsspec
from pyarrow import parquet

from benchmarks.fleet import cluster, examine, rows, scheduler_alone, start_process, until, worker_command
from benchmarks.fleet_recordings import SAMPLES, recordings, slower
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


def command(*words: object, workers: int = 1) -> list[str]:
    return [sys.executable, "-m", "tfdoctor", "fleet", "--workers", str(workers), *map(str, words)]


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
    whole = [*command(*words, "--out", out)]
    with subprocess.Popen(
        whole, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as run:
        until(lambda: rows(out / "runs.jsonl") >= after, 120)
        os.killpg(run.pid, signal.SIGINT)  # a terminal sends it to the whole group
        shown, _ = run.communicate(timeout=60)
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
    big = tmp_path / "runs" / "big" / "plugins" / "profile" / "run"
    big.mkdir(parents=True)
    trace = next((source / "job-0").rglob("run-00000/**/*.xplane.pb")).read_bytes()
    size = bytes((400_000_000 >> shift & 127) | (128 if shift < 28 else 0) for shift in range(0, 35, 7))
    (big / "host.xplane.pb").write_bytes(trace + b"\x12" + size)
    os.truncate(big / "host.xplane.pb", len(trace) + 6 + 400_000_000)  # zeros that take no room
    shutil.copytree(source / "job-1", tmp_path / "runs" / "job-1")
    fleet(tmp_path / "runs", "--out", tmp_path / "out", "--memory", "300MB", "--no-reports")
    found = table(tmp_path / "out")
    assert (found["big"]["failure"], found["run-00001"]["failure"]) == ("memory", "")
    assert found["big"]["error"] == "It needs more than 300 MB of memory: raise --memory."


def test_a_parser_without_memory_does_not_call_a_trace_damaged(tmp_path: Path) -> None:
    shutil.copytree(SAMPLES / "cpu-input-bound", tmp_path / "runs" / "wide")
    trace = next(tmp_path.rglob("*.xplane.pb"))
    empty_plane = b"\x0a\x00"  # of which the parser makes an object fifty times as large
    trace.write_bytes(trace.read_bytes() + 15_000_000 * empty_plane)
    fleet(tmp_path / "runs", "--out", tmp_path / "out", "--memory", "270MB", "--no-reports", code=2)
    (row,) = table(tmp_path / "out").values()
    assert row["failure"] == "memory"


def test_ctrl_c_keeps_what_is_done_and_the_same_command_continues(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = interrupted(out, source, "--no-reports", after=1)
    assert "Traceback" not in shown
    assert "the same command continues" in " ".join(shown.split())
    assert len(table(out)) < COUNT + 1
    fleet(source, "--out", out, "--no-reports")
    assert set(table(out)) >= {f"run-{number:05}" for number in range(COUNT)}


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


def test_rows_of_other_settings_are_not_taken_for_examined(out: Path, source: Path) -> None:
    interrupted(out, source, "--select", "float32-matmul", "--no-reports", after=COUNT + 2)
    assert len({row["settings"] for row in table(out).values()}) == 1
    assert {finding["rule"] for row in table(out).values() for finding in row["findings"]} <= {"float32-matmul"}


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


def test_a_lost_scheduler_is_no_fault_of_recordings(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with contextlib.ExitStack() as stack:
        address, scheduler = stack.enter_context(scheduler_alone(tmp_path))
        words = ["tfdoctor", "fleet", str(source), "--on", address, "--out", str(out), "--no-reports"]
        run = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        assert run.stderr
        assert "has no worker yet: waiting" in run.stderr.readline()
        start_process(stack, *worker_command(address), "--local-directory", str(tmp_path))
        until(lambda: rows(out / "runs.jsonl") >= 1, 120)
        scheduler.kill()
        _, errors = run.communicate(timeout=120)
    assert (run.returncode, "The Dask scheduler is gone" in errors) == (2, True)
    found = table(out)
    assert len(found) < COUNT + 1
    assert {row["failure"] for row in found.values()} <= {"", "unreadable"}


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
            time.sleep(2)
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


def test_a_worker_that_is_killed_loses_no_recording(examined: Path, source: Path, tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as (address, workers):
        examine(source, tmp_path / "out", address, kill=workers[0])
        assert workers[0].wait(timeout=10) == -signal.SIGKILL
        assert workers[1].poll() is None
    assert table(tmp_path / "out") == {name: {**row, "report": ""} for name, row in table(examined).items()}


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
