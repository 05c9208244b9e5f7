"""Jobs that run already: traced together, whatever becomes of any one of them, and left as they were."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from tests.capture.running import Run, environment
from tfdoctor import cli
from tfdoctor.capture import machine
from tfdoctor.capture.attach import LONGEST_S, Address, attach, host
from tfdoctor.recording.manifest import HostMachine
from tfdoctor.terms.errors import CaptureError, OutputError

STEPS = 400
"""Those whose losses a job prints at its end."""

JOB = f"""
import os, sys, time
import tensorflow as tf

port, until, ahead = int(sys.argv[1]), os.path.join(sys.argv[2], "end"), sys.argv[3:]
tf.profiler.experimental.server.start(port)
tf.random.set_seed(1)
weights = tf.Variable(tf.random.normal((64, 64)))
data = tf.data.Dataset.from_tensor_slices(tf.random.normal((64, 64), seed=2)).repeat().batch(8)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights) - 1.0) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss

losses = []
for number, x in enumerate(data):
    loss = step(x)
    if number < {STEPS}:
        losses.append(float(loss))
    if not ahead or number >= {STEPS}:
        time.sleep(0.01)
    if number == ({STEPS} if ahead else 3):
        print("training", flush=True)
    if number > {STEPS} and os.path.exists(until):
        break
print(losses, flush=True)
"""

BUSY_THEN_IDLE = """
import sys
import tensorflow as tf

tf.profiler.experimental.server.start(int(sys.argv[1]))
tf.profiler.experimental.start(sys.argv[2])
print("training", flush=True)
sys.stdin.readline()
tf.profiler.experimental.stop()
print("idle", flush=True)
sys.stdin.read()
"""


class Job(NamedTuple):
    """A training of somebody else's, with or without a profiler server."""

    port: int
    process: subprocess.Popen[str]
    folder: Path

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def end(self) -> str:
        """Let it end by itself; return what it printed."""
        (self.folder / "end").touch()
        said, _ = self.process.communicate(timeout=120)
        assert self.process.returncode == 0
        return said


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return int(listener.getsockname()[1])


@contextmanager
def job(folder: Path, *words: str, script: str = JOB) -> Iterator[Job]:
    """Start a job; it trains when this begins."""
    port = free_port()
    own = folder / f"job-{port}"
    own.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(port), str(own), *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        yield Job(port, process, own)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Job, Job]]:
    """Two workers that train; the second one has taken the steps whose losses it prints."""
    folder = tmp_path_factory.mktemp("jobs")
    with job(folder, "ahead") as second, job(folder) as first:
        yield first, second


def recorded(out: Path) -> Run:
    return Run(0, "", "", out)


@pytest.mark.tensorflow
def test_a_report_follows(jobs: tuple[Job, Job], tmp_path: Path) -> None:
    """The first test of the two jobs: it looks at the steps whose losses are compared in the last one."""
    out = tmp_path / "out"
    arguments = ["attach", jobs[0].address, "--for", "500ms", "--out", str(out), "--format", "json,md"]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 0
    assert {path.name for path in out.iterdir()} == {"plugins", "tfdoctor.json", "report.json", "report.md"}
    assert "of an attached job are unknown" in (out / "report.md").read_text()
    again = CliRunner().invoke(cli.app, arguments).exception
    assert isinstance(again, OutputError)
    assert "is not empty: choose another folder with --out, or remove it first" in str(again)


@pytest.mark.tensorflow
def test_an_unreachable_worker_costs_the_others_nothing(
    jobs: tuple[Job, Job], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = jobs
    dead, out = f"localhost:{free_port()}", tmp_path / "out"
    recording = attach(f"{first.address},{dead},{second.address}", 0.5, out)
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
        assert worker.manifest.finished
        assert worker.manifest.host.name == os.uname().nodename
        assert worker.manifest.plan is not None
        starts.append(worker.manifest.plan.started_unix_ns or 0)
    assert abs(starts[0] - starts[1]) < 0.5e9  # the windows overlap
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "traced 2 of 3 workers for 0.5 s" in printed.err
    assert f"{dead} was not traced: nothing listens on this port" in printed.err


@pytest.mark.tensorflow
def test_a_busy_profiler_is_left_alone_and_an_idle_job_is_recorded(tmp_path: Path) -> None:
    with job(tmp_path, script=BUSY_THEN_IDLE) as one:
        with pytest.raises(CaptureError, match="another profile is running there"):
            attach(one.address, 0.2, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        assert one.process.stdin is not None
        assert one.process.stdout is not None
        one.process.stdin.write("\n")
        one.process.stdin.flush()
        assert one.process.stdout.readline() == "idle\n"
        assert len(list(one.folder.glob("plugins/profile/*/*.xplane.pb"))) == 1
        recording = attach(one.address, 0.2, tmp_path / "out")
    assert recording.traces == ()
    assert "ran no TensorFlow operation" in recorded(tmp_path / "out").missing()["trace"]
    done = CliRunner().invoke(cli.app, ["report", str(tmp_path / "out"), "--format", "json"])
    assert done.exit_code == 0
    assert "ran no TensorFlow operation" in " ".join(done.output.split())


@pytest.mark.tensorflow
def test_jobs_trained_as_if_nobody_had_looked(jobs: tuple[Job, Job]) -> None:
    """Nobody looked at the second one while it took these steps."""
    looked_at, alone = (each.end() for each in jobs)
    assert looked_at == alone
    assert len(alone.split()) == STEPS


# Without TensorFlow


def test_when_nobody_answers_nothing_is_left(tmp_path: Path) -> None:
    dead = f"localhost:{free_port()}"
    there = tmp_path / "there"
    there.mkdir()
    for out in (tmp_path / "runs" / "out", there):
        with pytest.raises(CaptureError) as error:
            attach(f"{dead},host.invalid:6009", 0.2, out)
        assert re.fullmatch(
            rf"No job could be traced: {dead}: nothing listens on this port: [^;]*; host\.invalid:6009: [^;]*\.",
            str(error.value),
        )
    assert not (tmp_path / "runs" / "out").exists()
    assert list(there.iterdir()) == []


def test_another_kind_of_server_is_told_from_a_profiler(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "localhost"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait_for(port)
            with pytest.raises(CaptureError, match="no profiler server listens on this port: check the port"):
                attach(f"localhost:{port}", 0.2, tmp_path / "out")
        finally:
            server.kill()


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as client:
            if client.connect_ex(("localhost", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("the server did not start")


def test_a_lost_connection_is_told_from_a_refused_one(tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]

        def hang_up() -> None:
            with suppress(OSError):  # the server was closed
                while True:
                    server.accept()[0].close()

        Thread(target=hang_up, daemon=True).start()
        with pytest.raises(CaptureError, match="the connection was lost"):
            attach(f"localhost:{port}", 0.2, tmp_path / "out")
        server.shutdown(socket.SHUT_RDWR)


def test_the_machine_is_described_only_when_it_is_this_one() -> None:
    here = machine.host()
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
        assert host("elsewhere", port) == HostMachine(name="elsewhere")
        assert host(here.name, port) == here
    assert host(here.name, port) == replace(here, cores_usable=0.0)  # whose limits nobody knows


@pytest.mark.parametrize(
    "text",
    [
        *("", "localhost", "localhost:", ":6009", "localhost:0", "localhost:65536", "localhost:6009,"),
        *("http://localhost:6009", "local host:6009", "-x:6009", "../x:6009", "::1:6009"),
        *("localhost:6009,localhost:6009", "localhost:6009,grpc://LOCALHOST:6009"),
    ],
)
def test_what_is_no_address_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"is not an address|is listed twice"):
        attach(text, 1.0, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("worker-0.job.svc:6009", "worker-0.job.svc_6009"),
        ("grpc://10.0.0.5:8466", "10.0.0.5_8466"),
        ("[::1]:6009", "--1_6009"),
    ],
)
def test_files_are_named_after_the_address(text: str, name: str) -> None:
    assert [address.name for address in Address.parse_all(text)] == [name]


@pytest.mark.parametrize("seconds", [0.0, -1.0, LONGEST_S + 1, float("inf"), float("nan")])
def test_a_time_that_cannot_be_meant_is_refused(seconds: float, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="--for must be 1ms to 5m"):
        attach("localhost:6009", seconds, tmp_path / "out")


@pytest.mark.parametrize("text", ["soon", "2x", "0", "-1", "1h", ""])
def test_the_command_line_refuses_it_too(text: str, tmp_path: Path) -> None:
    arguments = ["attach", "localhost:6009", "--for", text, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == 2 or isinstance(done.exception, CaptureError)
    assert not (tmp_path / "out").exists()
