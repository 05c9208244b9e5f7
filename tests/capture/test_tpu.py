"""TPUs: a metric server on a real socket, and a libtpu that is none."""

import socket
from contextlib import contextmanager

from tests.capture.fake_tpu_server import GIB, serve
from tests.capture.kit import *
from tfdoctor.capture.sampler import Sampler, SamplerUnavailable, SamplingThread, tpu
from tfdoctor.capture.sampler.devices import tpu_chips
from tfdoctor.capture.sampler.tpu import TpuSampler, TpuSdkSampler


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


@contextmanager
def running(ports: str = "") -> Iterator[int]:
    """Start a run whose runtime would listen at these ports; give its process."""
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    with subprocess.Popen(words, env=environment(TPU_RUNTIME_METRICS_PORTS=ports)) as child:
        deadline = time.monotonic() + 10
        while not Path(f"/proc/{child.pid}/environ").read_bytes() and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            yield child.pid
        finally:
            child.kill()


def noting(sampler: Sampler, asked: threading.Event) -> Sampler:
    """Return a sampler that says when it has asked and got an answer, or none; or has nobody to ask."""
    start, read = sampler.start, sampler.read

    def starts(pid: int) -> None:
        try:
            start(pid)
        except SamplerUnavailable:
            asked.set()
            raise

    def reads() -> dict[str, Any]:
        try:
            sample = read()
        except Exception:
            asked.set()
            raise
        if sample or isinstance(sampler, TpuSampler):
            asked.set()
        return sample

    sampler.start, sampler.read = starts, reads  # type: ignore[method-assign]  # as a subclass would
    return sampler


def sampled(tmp_path: Path, sampler: Sampler, ports: str = "") -> tuple[str, str, list[dict[str, Any]]]:
    """Sample until something was read; return the status, what is missing and why, and the samples."""
    asked = threading.Event()
    with running(ports) as pid:
        samples = SamplingThread(tmp_path / "samples.jsonl", 50, [noting(sampler, asked)])
        samples.start(pid)
        asked.wait(60)
        (summary,) = samples.stop()
    return summary.status, summary.reason, [json.loads(line) for line in samples.path.read_text().splitlines()]


def test_chips_are_found_by_their_number(tmp_path: Path) -> None:
    known, other = ("0x1ae0", "0x0027"), ("0x1ae0", "0x001f")  # Google's network card
    assert tpu_chips(machine(tmp_path, known, known, other, ("0x10de", "0x2330"))) == 2
    assert tpu_chips(tmp_path / "nowhere") == 0


@each(TpuSampler, TpuSdkSampler)
def test_a_machine_without_a_tpu_is_not_asked(kind: type[TpuSampler | TpuSdkSampler], tmp_path: Path) -> None:
    said = sampled(tmp_path, kind(machine(tmp_path)))
    assert said == ("unavailable", "this machine has no TPU", [])


def test_the_runtime_tells_each_device_of_each_process(
    tmp_path: Path, v5e: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")  # as many machines have
    with serve(chips=2, duty=37.5) as one, serve(chips=1, duty=2.0) as two:
        _, reason, samples = sampled(tmp_path, TpuSampler(v5e), f"{one}, {two}")
    assert reason == ""
    used = [
        {"device": i, "hbm_used_bytes": 4 * GIB + i, "hbm_total_bytes": 16 * GIB} | rest
        for i, rest in (
            (0, {"process": 0, "duty_pct": 37.5}),
            (1, {"process": 0, "duty_pct": 37.5}),
            (0, {"process": 1, "duty_pct": 2.0}),
        )
    ]
    assert samples[0]["tpu"] == used


@pytest.mark.parametrize("listens", [False, True])
def test_a_runtime_that_is_absent_or_mute_is_said(tmp_path: Path, v5e: Path, *, listens: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if listens:
            taken.listen()
        port = taken.getsockname()[1]
        _, reason, samples = sampled(tmp_path, TpuSampler(v5e), str(port))
    error = "DEADLINE_EXCEEDED" if listens else "UNAVAILABLE"
    assert (reason, samples) == (f"the TPU runtime returned no metrics: port {port} ({error})", [])


def test_answers_that_are_no_messages_are_no_values(tmp_path: Path, v5e: Path) -> None:
    with serve(wrong=True) as port:
        _, reason, samples = sampled(tmp_path, TpuSampler(v5e), str(port))
    assert "returned no metrics" in reason
    assert samples == []


def test_a_runtime_that_is_never_there_is_not_asked_for_ever(v5e: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu, "FAILURES", 2)
    sampler = TpuSampler(v5e)
    sampler.start(os.getpid())
    assert [sampler.read() for _ in range(5)] == [{}] * 5
    assert sampler.runtimes[0].failures == 2
    sampler.stop()


@cases(
    ("    assert name == 'tensorcore_util'\n    return Data()\n", ("on", "", [[12.5, 0.0]])),
    ("    import time; time.sleep(1000)\n", ("unavailable", "did not answer", [])),
    ("    import os; os.abort()\n", ("unavailable", "ended with exit code -6", [])),
    (None, ("unavailable", "has no libtpu", [])),
    ids=["answers", "hangs", "crashes", "absent"],
)
def test_the_sdk_tells_the_matrix_units_use(
    metric: str | None, told: tuple[str, str, list[Any]], tmp_path: Path, v5e: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = tmp_path / "packages" / "libtpu" / "sdk"
    if metric is not None:
        sdk.mkdir(parents=True)
        for folder in (sdk.parent, sdk):
            (folder / "__init__.py").touch()
        data = "class Data:\n    def data(self):\n        return ['12.5', '0.0']\ndef get_metric(name):\n"
        (sdk / "tpumonitoring.py").write_text(data + metric)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(sdk.parents[1]), str(SOURCES)]))
    monkeypatch.setattr(tpu, "SILENT_S", 1.0)
    status, reason, samples = sampled(tmp_path, TpuSdkSampler(v5e))
    assert (status, [sample["tpu_matrix_unit_pct"] for sample in samples][:1]) == (told[0], told[2])
    assert told[1] in reason
