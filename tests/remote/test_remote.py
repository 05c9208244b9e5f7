"""Recordings and reports at URLs: real servers, and what goes wrong with them."""

import fsspec
from fsspec.implementations.local import LocalFileSystem

from tests.cli.kit import report_of
from tests.command import tfdoctor
from tests.kit import *
from tests.remote import servers
from tfdoctor.recording import Recording
from tfdoctor.remote import fetching, filesystem, uploads
from tfdoctor.remote.fetching import chosen
from tfdoctor.remote.filesystem import Remote

SAMPLES = Path(__file__).parents[2] / "sample_traces"
SAMPLE, ELSEWHERE = SAMPLES / "cpu-input-bound", "s3://no-such-bucket"
TRACE = next(SAMPLE.glob("plugins/profile/*/*.xplane.pb"))


Bucket = tuple[str, Any]  # its URL, and a filesystem that leads there


@contextlib.contextmanager
def served(kind: str) -> Iterator[Bucket]:
    """Yield a bucket, in the environment that leads to it."""
    with pytest.MonkeyPatch.context() as patch, servers.s3() if kind == "s3" else servers.gcs() as environment:
        for name, value in environment.items():
            patch.setenv(name, value)
        filesystem = fsspec.filesystem(kind, skip_instance_cache=True)
        if kind == "s3":
            filesystem.mkdir("runs")
        yield f"{kind}://runs", filesystem


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with served("s3") as bucket:
        yield bucket


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with servers.web(SAMPLES) as address:
        yield address


def test_a_recording_in_a_bucket_is_reported_on_there(bucket: Bucket) -> None:
    reported(bucket)


def test_so_is_one_in_google_cloud_storage() -> None:
    with served("gs") as bucket:
        reported(bucket)


def reported(bucket: Bucket) -> None:
    """Report on a recording in a bucket, and compare that with a report on the same one here."""
    url, filesystem = bucket
    filesystem.put(str(SAMPLE), f"{url}/first", recursive=True)
    done = tfdoctor("report", f"{url}/first", "--out", f"{url}/out/first", "--format", "json,md")
    assert done.returncode == 0, done.stderr
    assert f"uploading {url}/out/first/report.json" in done.stdout
    assert f"uploaded two files to {url}/out/first" in done.stderr
    filesystem.invalidate_cache()
    remote = json.loads(filesystem.cat(f"{url}/out/first/report.json"))
    here = json.loads(report_of(SAMPLE))
    for result in (*remote["results"], *here["results"]):
        result.pop("fallbacks", None)  # they name the trace by its path from the current folder
    assert remote["results"] == here["results"]
    assert remote["subject"]["title"] == "first"


def test_a_recording_is_uploaded_when_the_script_has_ended_and_can_be_reported_on(
    bucket: Bucket, tmp_path: Path
) -> None:
    url, filesystem = bucket
    script = tmp_path / "train.py"
    script.write_text("print('done')\n")
    done = servers.tfdoctor("profile", "--out", f"{url}/train", "--format", "json", str(script))
    assert done.returncode == 0, done.stderr
    assert f"uploading {url}/train/report.json" in done.stderr
    assert f"recorded the run in {url}/train\n" in done.stderr
    assert "tfdoctor-" not in done.stderr  # a folder that is gone when the user reads it
    uploaded = {path.removeprefix("runs/train/") for path in filesystem.find("runs/train")}
    assert {"tfdoctor.json", "run.jsonl", "report.json"} <= uploaded
    again = tfdoctor("report", f"{url}/train", "--out", str(tmp_path / "out"))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "out" / "report.html").exists()


def test_workers_that_ended_at_different_times_are_all_read(bucket: Bucket) -> None:
    """On machines without a shared folder, each names the run of its trace by its own clock."""
    url, filesystem = bucket
    for number, run in enumerate(("2026_11_28_04_00_00", "2026_11_28_04_00_07")):
        name = f"worker-{number}"
        for file in ("tfdoctor.json", "program.json.gz"):
            filesystem.put_file(str(SAMPLE / file), f"{url}/job/workers/{name}/{file}")
        filesystem.put_file(str(TRACE), f"{url}/job/plugins/profile/{run}/{name}.xplane.pb")
    filesystem.invalidate_cache()
    workers = Recording.open(fetching.fetched(f"{url}/job")).workers
    assert [len(Recording.open(worker).traces) for worker in workers] == [1, 1]
    alone = Recording.open(fetching.fetched(f"{url}/job/workers/worker-1"))
    assert [trace.name for trace in alone.traces] == ["worker-1.xplane.pb"]


def test_where_a_recording_cannot_go_is_known_before_the_script_runs(bucket: Bucket, tmp_path: Path) -> None:
    url, filesystem = bucket
    script = tmp_path / "train.py"
    script.write_text("open('ran', 'w')\n")
    filesystem.pipe(f"{url}/taken/workers/worker-1/tfdoctor.json", b"{}")
    for out, variables, why in (
        (f"{url}/taken", {"RANK": "1", "WORLD_SIZE": "2"}, "worker-1/tfdoctor.json is there already"),
        (f"{ELSEWHERE}/x", {}, "its bucket does not exist"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)
            for name, value in variables.items():
                patch.setenv(name, value)
            done = tfdoctor("profile", "--out", out, str(script))
        assert (done.returncode, why in done.stderr) == (2, True)
        assert not (tmp_path / "ran").exists()


def test_a_bucket_without_a_recording_is_one_sentence(bucket: Bucket) -> None:
    url, filesystem = bucket
    filesystem.pipe(f"{url}/other/notes.txt", b"nothing")
    nothing, other = tfdoctor("report", f"{url}/nowhere"), tfdoctor("report", f"{url}/other")
    assert (nothing.returncode, nothing.stdout, other.returncode) == (2, "", 2)
    assert nothing.stderr.splitlines()[-1] == f"tfdoctor: There is nothing at {url}/nowhere: check the address."
    assert f"No trace under {url}/other" in other.stderr


def test_a_comparison_reads_and_writes_urls(bucket: Bucket) -> None:
    url, filesystem = bucket
    filesystem.put(str(SAMPLE), f"{url}/before", recursive=True)
    filesystem.put(str(SAMPLES / "cpu-input-bound-fixed"), f"{url}/after", recursive=True)
    words = ("--anyway", "--format", "json", "--out", f"{url}/diff")
    done = tfdoctor("diff", f"{url}/before", f"{url}/after", *words)
    assert done.returncode == 0, done.stderr
    filesystem.invalidate_cache()
    assert json.loads(filesystem.cat(f"{url}/diff/tfdoctor-diff.json"))["step"]["direction"] == "faster"


@pytest.mark.usefixtures("bucket")
def test_what_cannot_be_uploaded_stays() -> None:
    done = tfdoctor("report", str(SAMPLE), "--out", f"{ELSEWHERE}/x", "--format", "json")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"tfdoctor: {ELSEWHERE}/x/report.json cannot be written")
    folder = Path(last.rpartition("stays in ")[2].rstrip("."))
    assert (done.returncode, (folder / "report.json").stat().st_size > 0) == (2, True)


def test_a_web_server_has_files_and_folders(address: str, tmp_path: Path) -> None:
    relative = TRACE.relative_to(SAMPLES)
    for url in (f"{address}/{relative}", f"{address}/cpu-input-bound/"):
        done = tfdoctor("report", url, "--out", str(tmp_path), "--format", "json")
        assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "report.json").read_text())["subject"]["command"]


def test_a_connection_that_is_cut_once_is_tried_again(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers.Faulty, "cuts", 0)
    url = f"{address}/once/{TRACE.relative_to(SAMPLES)}"
    done = tfdoctor("report", url, "--out", str(tmp_path), "--format", "json")
    assert (done.returncode, servers.Faulty.cuts) == (0, 1), done.stderr


@cases(("cut", "cannot be read"), ("refused", "cannot be read"), ("gone", "There is nothing at"))
def test_what_a_web_server_refuses_is_one_sentence(kind: str, why: str, address: str, tmp_path: Path) -> None:
    url = f"{address}/{kind}/{TRACE.relative_to(SAMPLES)}"
    done = tfdoctor("report", url, "--out", str(tmp_path / "out"))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.match(f"tfdoctor: .*({url}.*{why}|{why}.*{url})", done.stderr.splitlines()[-1])
    assert not (tmp_path / "out").exists()


RUNS = [f"logs/fit/plugins/profile/2026_11_{day}/h.xplane.pb" for day in ("01", "03", "02")]
TRACES = [f"plugins/profile/2026_0{n + 1}/worker-{n}.xplane.pb" for n in (0, 1)]
ACCOUNT = ["tfdoctor.json", "run.jsonl", "run-now.json"]


@cases(
    (RUNS[1:2], [RUNS[0], RUNS[2], "logs/events.out"]),  # the newest
    ([f"worker-{n}/{path}" for n in (0, 1) for path in ("tfdoctor.json", RUNS[1])], [f"worker-1/{RUNS[0]}"]),
    ([*(f"workers/worker-{n}/tfdoctor.json" for n in (0, 1)), *TRACES], []),  # the newest of each worker
    (ACCOUNT, ["report.html"]),  # without a trace
    (["tfdoctor.json", "processes/vm.7/agent.json", "processes/vm.7/run.jsonl"], []),
)
def test_of_the_files_of_runs_the_newest_are_fetched(files: list[str], others: list[str]) -> None:
    assert sorted(chosen([*others[:1], *files, *others[1:]])) == sorted(files)


class Half(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A filesystem that loses half of each file without a word."""

    def get_file(self, path: str, target: str, **_: Any) -> None:
        content = Path(path).read_bytes()
        Path(target).write_bytes(content[: len(content) // 2])

    def put_file(self, source: str, path: str, **_: Any) -> None:
        self.get_file(source, path)


def test_a_file_of_which_a_part_came_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Remote(f"file://{TRACE}", Half(), str(TRACE))
    monkeypatch.setattr(fetching, "opened", lambda _: place)
    with pytest.raises(InputError, match="bytes came"):
        fetching.fetched(place.url, alone=True)


class Endless(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A filesystem whose files never end: it sends so many bytes from time to time."""

    sent = 0

    def get_file(self, *_: str, callback: Any, **__: Any) -> None:
        while True:
            time.sleep(0.001)
            callback.relative_update(self.sent)


@cases((2**30, "more than 8 GB"), (1, "less than 10 kB a second"))
def test_a_file_that_does_not_end_is_not_taken(sent: int, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Remote(f"file://{TRACE}", Endless(), str(TRACE))
    monkeypatch.setattr(Endless, "sent", sent)
    monkeypatch.setattr(fetching, "opened", lambda _: place)
    monkeypatch.setattr(filesystem, "PATIENCE_S", 0.1)
    with pytest.raises(InputError, match=why):
        fetching.fetched(place.url, alone=True)


class Kept(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A filesystem on which nothing may be removed."""

    def rm_file(self, path: str) -> None:
        raise PermissionError(path)


def test_old_files_that_cannot_be_removed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "opened", lambda url: Remote(url, Kept(), url[len("file://") :]))
    old = tmp_path / "there" / "reports" / "old.html"
    old.parent.mkdir(parents=True)
    old.touch()
    sent = uploads.Uploads()
    folder = sent.folder(f"file://{tmp_path}/there")
    (folder / "new").touch()
    sent.remove_later(folder, "reports", lambda name: name == "old.html")
    uploaded, kept = sent.finish()
    assert uploaded.endswith(f"uploaded one file to file://{tmp_path}/there")
    assert f"old files stay at file://{tmp_path}/there/reports, remove them yourself" in kept
    assert not folder.exists()


def test_a_file_of_which_a_part_arrived_stays_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = f"{tmp_path}/there"
    monkeypatch.setattr(uploads, "opened", lambda url: Remote(url, Half(), url[len("file://") :]))
    kept = uploads.Uploads()
    folder = kept.folder(f"file://{target}")
    (folder / "report.json").write_text("{}")
    with pytest.raises(OutputError, match=f"bytes arrived.*stays in {folder}"):
        list(kept.finish())
    assert (folder / "report.json").read_text() == "{}"


def test_a_refused_connection_and_an_unknown_host_are_no_missing_file() -> None:
    """Trap: fsspec takes a web server that does not answer for one without the file."""
    nobody = f"http://127.0.0.1:{servers.free_port()}"
    refused = "(the server refuses the connection): check the port, and that the server runs."
    unknown = "(the host is unknown): check the name of the host, and the connection to the network."
    urls = {f"{nobody}/runs/a": refused, f"{nobody}/a.xplane.pb": refused, "http://nobody.invalid/runs/a": unknown}
    for url, sentence in urls.items():
        with pytest.raises(InputError) as error:
            fetching.fetched(url)
        assert str(error.value) == f"{url} cannot be read {sentence}"


@each("../../x", "a/../../../x", "..\\..\\x")
def test_no_name_in_a_listing_leads_out_of_the_copy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is listed is what the server says."""
    place = Remote("https://host/runs", LocalFileSystem(), str(SAMPLE))
    monkeypatch.setattr(fetching, "opened", lambda _: place)
    (tmp_path / "copy").mkdir()
    with pytest.raises(InputError, match="lies outside"):
        fetching.fetched_files(place.url, [f"{name}.xplane.pb"], tmp_path / "copy")
    assert [*tmp_path.rglob("*.pb")] == []


def test_of_a_folder_above_recordings_the_newest_is_fetched(tmp_path: Path) -> None:
    for name, start in (("a", 2), ("b", 1)):
        run = tmp_path / "runs" / name / "plugins" / "profile" / "run"
        run.mkdir(parents=True)
        (run / "vm.xplane.pb").write_bytes(TRACE.read_bytes()[:64])
        manifest = {"finished": True, "clock": [{"unix_ns": start * 10**9}]}
        (tmp_path / "runs" / name / "tfdoctor.json").write_text(json.dumps(manifest))
    url = f"file://{tmp_path}/runs"
    recording = Recording.open(fetching.fetched(url))
    assert recording.root is not None
    assert (recording.root.name, [*recording.root.parent.glob("b/plugins")]) == ("a", [])
    (note,) = map(fetching.shown, recording.notes)
    assert note.endswith(f"to see another, name it: {url}/b")
