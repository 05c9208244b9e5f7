"""TPUs: a metric server on a real socket, and a libtpu that is none."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.capture.fake_tpu_server import GIB, serve
from tests.capture.running import SOURCES, environment
from tfdoctor.capture.sampler import SamplingThread, tpu, tpu_sdk
from tfdoctor.capture.sampler.tpu import TpuSampler, chips
from tfdoctor.capture.sampler.tpu_sdk import TpuSdkSampler
from tfdoctor.capture.sampler.unavailable import SamplerUnavailable


def machine(tmp_path: Path, *devices: tuple[str, str]) -> Path:
    """Return a folder like /sys/bus/pci/devices, of (vendor, device)."""
    folder = tmp_path / "devices"
    folder.mkdir()
    for number, (vendor, device) in enumerate(devices):
        one = folder / f"0000:00:0{number}.0"
        one.mkdir()
        (one / "vendor").write_text(f"{vendor}\n")
        (one / "device").write_text(f"{device}\n")
    return folder


@pytest.fixture
def v5e(tmp_path: Path) -> Path:
    return machine(tmp_path, ("0x1ae0", "0x0063"), ("0x8086", "0x0063"))


@pytest.fixture
def run() -> "subprocess.Popen[bytes]":
    return sleeping("8431")


def sleeping(ports: str) -> "subprocess.Popen[bytes]":
    """Start a run whose runtime would listen at these ports."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], env=environment(TPU_RUNTIME_METRICS_PORTS=ports)
    )
    deadline = time.monotonic() + 10
    while not Path(f"/proc/{child.pid}/environ").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.01)
    return child


class Noting(TpuSampler):
    """A sampler that says when it has asked, or has nobody to ask."""

    def __init__(self, devices: Path) -> None:
        super().__init__(devices)
        self.asked = threading.Event()

    def start(self, pid: int) -> None:
        try:
            super().start(pid)
        except SamplerUnavailable:
            self.asked.set()
            raise

    def read(self) -> dict[str, Any]:
        try:
            return super().read()
        finally:
            self.asked.set()


def sampled(tmp_path: Path, ports: str, devices: Path) -> tuple[str, list[dict[str, object]]]:
    """Sample until something was read; return the reason why something is missing, and the samples."""
    child = sleeping(ports)
    samples = SamplingThread(tmp_path / "samples.jsonl", 100, [Noting(devices)])
    samples.start(child.pid)
    samples.states[0].sampler.asked.wait(60)  # type: ignore[attr-defined]  # of Noting
    (summary,) = samples.stop()
    child.kill()
    child.wait()
    return summary.reason, [json.loads(line) for line in samples.path.read_text().splitlines()]


def test_chips_are_found_by_their_number(tmp_path: Path) -> None:
    known, other = ("0x1ae0", "0x0027"), ("0x1ae0", "0x001f")  # Google's network card
    assert chips(machine(tmp_path, known, known, other, ("0x10de", "0x2330"))) == 2
    assert chips(tmp_path / "nowhere") == 0


def test_a_machine_without_a_tpu_is_not_asked(tmp_path: Path) -> None:
    reason, samples = sampled(tmp_path, "8431", machine(tmp_path))
    assert reason == "this machine has no TPU"
    assert samples == []


def test_the_runtime_tells_each_device(tmp_path: Path, v5e: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")  # as many machines have
    with serve(chips=2, duty=37.5) as port:
        reason, samples = sampled(tmp_path, str(port), v5e)
    assert reason == ""
    assert samples[0]["tpu"] == [
        {"process": 0, "device": i, "duty_pct": 37.5, "hbm_used_bytes": 4 * GIB + i, "hbm_total_bytes": 16 * GIB}
        for i in (0, 1)
    ]  # fmt: skip


def test_each_process_of_the_run_has_a_port(tmp_path: Path, v5e: Path) -> None:
    with serve(chips=1, duty=1.0) as one, serve(chips=1, duty=2.0) as two:
        _, samples = sampled(tmp_path, f"{one}, {two}", v5e)
    rows = samples[0]["tpu"]
    assert isinstance(rows, list)
    assert [(row["process"], row["duty_pct"]) for row in rows] == [(0, 1.0), (1, 2.0)]


def test_a_runtime_that_is_absent_is_said(tmp_path: Path, v5e: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]  # bound, and nobody listens
        reason, samples = sampled(tmp_path, str(port), v5e)
    assert reason == f"the TPU runtime returned no metrics: port {port} (UNAVAILABLE)"
    assert samples == []


def test_a_mute_listener_keeps_nobody_waiting(tmp_path: Path, v5e: Path) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        reason, samples = sampled(tmp_path, str(mute.getsockname()[1]), v5e)
    assert "DEADLINE_EXCEEDED" in reason
    assert samples == []


def test_answers_that_are_no_messages_are_no_values(tmp_path: Path, v5e: Path) -> None:
    with serve(wrong=True) as port:
        reason, samples = sampled(tmp_path, str(port), v5e)
    assert "returned no metrics" in reason
    assert samples == []


# The SDK

LIBTPU = {
    "answers": "def get_metric(name):\n    assert name == 'tensorcore_util'\n    return Data()\n",
    "hangs": "import time\ndef get_metric(name):\n    time.sleep(1000)\n",
    "crashes": "import os\ndef get_metric(name):\n    os.abort()\n",
}


def libtpu(tmp_path: Path, kind: str) -> Path:
    """Make a package like libtpu, and return where it is."""
    sdk = tmp_path / "packages" / "libtpu" / "sdk"
    sdk.mkdir(parents=True)
    for folder in (sdk.parent, sdk):
        (folder / "__init__.py").touch()
    data = "class Data:\n    def data(self):\n        return ['12.5', '0.0']\n"
    (sdk / "tpumonitoring.py").write_text(data + LIBTPU[kind])
    return sdk.parents[1]


def asked(tmp_path: Path, devices: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> tuple[str, str, list[str]]:
    """Sample by the SDK; return the status, the reason and the lines."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(libtpu(tmp_path, kind)), str(SOURCES)]))
    monkeypatch.setattr(tpu_sdk, "SILENT_S", 1.0)
    child = sleeping("")
    samples = SamplingThread(tmp_path / "samples.jsonl", 50, [TpuSdkSampler(devices)])
    samples.start(child.pid)
    deadline = time.monotonic() + 15
    while (time.monotonic() < deadline and samples.states[0].status == "off") or (
        samples.states[0].status == "on" and not samples.states[0].count and time.monotonic() < deadline
    ):
        time.sleep(0.05)
    (summary,) = samples.stop()
    child.kill()
    child.wait()
    return summary.status, summary.reason, samples.path.read_text().splitlines()


def test_the_sdk_tells_the_matrix_units_use(tmp_path: Path, v5e: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, reason, lines = asked(tmp_path, v5e, monkeypatch, "answers")
    assert (status, reason) == ("on", "")
    assert json.loads(lines[0])["tpu_matrix_unit_pct"] == [12.5, 0.0]


@pytest.mark.parametrize(("kind", "said"), [("hangs", "did not answer"), ("crashes", "ended with exit code -6")])
def test_an_sdk_that_fails_is_given_up(
    tmp_path: Path, v5e: Path, monkeypatch: pytest.MonkeyPatch, kind: str, said: str
) -> None:
    status, reason, lines = asked(tmp_path, v5e, monkeypatch, kind)
    assert status == "unavailable"
    assert said in reason
    assert lines == []


def test_libtpu_is_not_loaded_where_no_tpu_is(tmp_path: Path, run: "subprocess.Popen[bytes]") -> None:
    with pytest.raises(SamplerUnavailable, match="no TPU"):
        TpuSdkSampler(machine(tmp_path)).start(run.pid)
    run.kill()
    run.wait()


def test_a_python_without_libtpu_is_named(v5e: Path, run: "subprocess.Popen[bytes]") -> None:
    with pytest.raises(SamplerUnavailable, match="has no libtpu"):
        TpuSdkSampler(v5e).start(run.pid)
    run.kill()
    run.wait()


def test_a_runtime_that_is_never_there_is_not_asked_for_ever(v5e: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu, "EVERY_S", 0.0)
    monkeypatch.setattr(tpu, "FAILURES", 2)
    sampler = TpuSampler(v5e)
    sampler.start(os.getpid())
    for _ in range(5):
        assert sampler.read() == {}
    assert sampler.runtimes[0].failures == 2
    sampler.stop()
