"""Jobs that run already: traced together, whatever becomes of any one of them, and left as they were."""

from typing import NamedTuple

from typer.testing import CliRunner

from tests.capture.kit import *
from tests.capture.running import *
from tfdoctor.capture import machine
from tfdoctor.capture.attach import LONGEST_S, Address, attach, host
from tfdoctor.cli import app
from tfdoctor.recording.manifest import HostMachine
from tfdoctor.terms.errors import CaptureError

STEPS = 400
"""Those whose losses a job prints at its end."""


class Job(NamedTuple):
    """A training of somebody else's, with or without a profiler server."""

    port: int
    process: subprocess.Popen[str]
    folder: Path

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def said(self) -> str:
        return sure(self.process.stdout).readline()

    def told(self) -> str:
        """Tell it to go on, and return what it says then."""
        print(file=self.process.stdin, flush=True)
        return self.said()

    def losses(self) -> str:
        """Let its training end, and return what it printed."""
        (self.folder / "end").touch()
        return self.said()


def port_of(server: socket.socket) -> int:
    return int(server.getsockname()[1])


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return port_of(server)


@contextlib.contextmanager
def job(folder: Path, *words: str) -> Iterator[Job]:
    """Start a job; it trains when this begins."""
    port = free_port()
    own = folder / f"job-{port}"
    own.mkdir()
    command = [
        sys.executable,
        "-c",
        TEXT_OF["job to attach to"].replace("STEPS", str(STEPS)),
        str(port),
        str(own),
        *words,
    ]
    streams: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    started = Job(port, subprocess.Popen(command, text=True, env=environment(), **streams), own)
    try:
        assert started.said() == "training\n"
        yield started
    finally:
        started.process.kill()
        started.process.communicate()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Job, Job]]:
    """Two workers that train; the second one has taken the steps whose losses it prints."""
    folder = tmp_path_factory.mktemp("jobs")
    with job(folder, "ahead") as second, job(folder) as first:
        yield first, second


@pytest.mark.tensorflow
def test_a_report_follows(jobs: tuple[Job, Job], tmp_path: Path) -> None:
    """The first test of the two jobs: it looks at the steps whose losses are compared in the last one."""
    out = tmp_path / "out"
    arguments = ["attach", jobs[0].address, "--for", "500ms", "--out", str(out), "--format", "json,md"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert {path.name for path in out.iterdir()} == {"plugins", "tfdoctor.json", "report.json", "report.md"}
    assert "of an attached job are unknown" in (out / "report.md").read_text()
    again = CliRunner().invoke(app, arguments).exception
    assert isinstance(again, OutputError)
    assert "is not empty: choose another folder with --out, or remove it first" in str(again)


@pytest.mark.tensorflow
def test_an_unreachable_worker_costs_the_others_nothing(
    jobs: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dead, out = f"localhost:{free_port()}", tmp_path / "out"
    recording = attach(f"{jobs[0].address},{dead},{jobs[1].address}", 0.5, out)
    names = [f"localhost_{each.port}" for each in jobs]
    assert [path.name for path in recording.workers] == names
    assert sorted(path.name for path in out.iterdir()) == ["plugins", "tfdoctor.json", "workers"]
    traces = sorted(out.glob("plugins/profile/*/*.xplane.pb"))
    assert sorted(path.name for path in traces) == sorted(f"{each}.xplane.pb" for each in names)
    starts = []
    for name in names:
        worker = recorded(out / "workers" / name)
        assert worker.recording.traces == (traces[0].with_name(f"{name}.xplane.pb"),)
        assert "nothing listens on this port" in worker.missing()[f"trace of {dead}"]
        assert {"program", "samples"} < worker.missing().keys()
        assert (worker.manifest.finished, worker.manifest.host.name) == (True, os.uname().nodename)
        starts.append(sure(worker.manifest.plan).started_unix_ns or 0)
    assert abs(starts[0] - starts[1]) < 0.5e9  # the windows overlap
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "traced 2 of 3 workers for 0.5 s" in printed.err
    assert f"{dead} was not traced: nothing listens on this port" in printed.err


@pytest.mark.tensorflow
def test_jobs_trained_as_if_nobody_had_looked(jobs: tuple[Job, Job]) -> None:
    """Nobody looked at the second one while it took these steps."""
    looked_at, alone = (one.losses() for one in jobs)
    assert looked_at == alone
    assert len(alone.split()) == STEPS


@pytest.mark.tensorflow
def test_a_busy_profiler_is_left_alone_and_an_idle_job_is_recorded(jobs: tuple[Job, Job], tmp_path: Path) -> None:
    """The job has trained."""
    one, _ = jobs
    assert one.told() == "busy\n"
    with pytest.raises(CaptureError, match="another profile is running there"):
        attach(one.address, 0.2, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert one.told() == "idle\n"
    assert len(list(one.folder.glob("plugins/profile/*/*.xplane.pb"))) == 1
    recording = attach(one.address, 0.2, tmp_path / "out")
    assert recording.traces == ()
    assert "ran no TensorFlow operation" in recorded(tmp_path / "out").missing()["trace"]
    done = CliRunner().invoke(app, ["report", str(tmp_path / "out"), "--format", "json"])
    assert (done.exit_code, "ran no TensorFlow operation" in " ".join(done.output.split())) == (0, True)
    one.process.communicate(timeout=60)
    assert one.process.returncode == 0


def test_when_nobody_answers_nothing_is_left(tmp_path: Path) -> None:
    dead, there = f"localhost:{free_port()}", tmp_path / "there"
    there.mkdir()
    said = rf"^No job could be traced: {dead}: nothing listens on this port: [^;]*; host\.invalid:6009: [^;]*\.\Z"
    for out in (tmp_path / "runs" / "out", there):
        with pytest.raises(CaptureError, match=said):
            attach(f"{dead},host.invalid:6009", 0.2, out)
    assert not (tmp_path / "runs" / "out").exists()
    assert list(there.iterdir()) == []


def test_another_kind_of_server_is_told_from_a_profiler(tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "localhost"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            (port,) = re.findall(r" port (\d+) ", sure(server.stdout).readline())
            with pytest.raises(CaptureError, match="no profiler server listens on this port: check the port"):
                attach(f"localhost:{port}", 0.2, tmp_path / "out")
        finally:
            server.kill()


def test_a_lost_connection_is_told_from_a_refused_one(tmp_path: Path) -> None:
    def hang_up() -> None:
        with contextlib.suppress(OSError):  # the server was closed
            while True:
                server.accept()[0].close()

    with socket.create_server(("localhost", 0)) as server:
        threading.Thread(target=hang_up, daemon=True).start()
        with pytest.raises(CaptureError, match="the connection was lost"):
            attach(f"localhost:{port_of(server)}", 0.2, tmp_path / "out")
        server.shutdown(socket.SHUT_RDWR)


def test_the_machine_is_described_only_when_it_is_this_one() -> None:
    here = machine.host()
    with socket.create_server(("localhost", 0)) as server:
        port = port_of(server)
        assert host("elsewhere", port) == HostMachine(name="elsewhere")
        assert host(here.name, port) == here
    assert host(here.name, port) == replace(here, cores_usable=0.0)  # whose limits nobody knows


@cases(
    *(
        (text, 1.0, r"is not an address|is listed twice")
        for text in (
            *("", "localhost", "localhost:", ":6009", "localhost:0", "localhost:65536", "localhost:6009,"),
            *("http://localhost:6009", "local host:6009", "-x:6009", "../x:6009", "::1:6009"),
            *("localhost:6009,localhost:6009", "localhost:6009,grpc://LOCALHOST:6009"),
        )
    ),
    *(("localhost:6009", s, "--for must be 1ms to 5m") for s in (0.0, -1.0, LONGEST_S + 1, math.inf, math.nan)),
)
def test_what_is_no_address_or_no_time_is_refused(text: str, seconds: float, why: str, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=why):
        attach(text, seconds, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@each("soon", "2x", "0", "-1", "1h", "")
def test_the_command_line_refuses_such_a_time_too(text: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["attach", "localhost:6009", "--for", text, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2 or isinstance(done.exception, CaptureError)
    assert not (tmp_path / "out").exists()


def test_files_are_named_after_the_address() -> None:
    addresses = Address.parse_all("worker-0.job.svc:6009,grpc://10.0.0.5:8466,[::1]:6009")
    assert [address.name for address in addresses] == ["worker-0.job.svc_6009", "10.0.0.5_8466", "--1_6009"]
