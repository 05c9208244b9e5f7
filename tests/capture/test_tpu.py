"""TPUs: a metric server on a real socket, and a libtpu that is none."""

import socket

from tests.capture.fake_tpu_server import GIB, serve
from tests.capture.kit import *
from tests.capture.running import started
from tfdoctor.capture.sampler import Sampler, SamplingThread, tpu
from tfdoctor.capture.sampler.devices import tpu_chips
from tfdoctor.capture.sampler.tpu import TpuSampler, TpuSdkSampler


def machine(tmp_path: Path, *devices: tuple[str, str]) -> Path:
    """Return a folder like /sys/bus/pci/devices, of (vendor, device)."""
    folder = tmp_path / "devices"
    folder.mkdir()
    for number, ids in enumerate(devices):
        one = folder / f"0000:00:0{number}.0"
        one.mkdir()
        for name, value in zip(("vendor", "device"), ids, strict=True):
            (one / name).write_text(f"{value}\n")
    return folder


@pytest.fixture
def v5e(tmp_path: Path) -> Path:
    return machine(tmp_path, ("0x1ae0", "0x0063"), ("0x8086", "0x0063"))


def told(tmp_path: Path, sampler: Sampler, ports: str = "") -> tuple[str, str, list[dict[str, Any]]]:
    """Sample a run until something was read; return the status, what is missing and why, and the samples."""
    run = (
        f"TPU_RUNTIME_METRICS_PORTS={ports}",
        sys.executable,
        "-c",
        "import time\nprint('ready', flush=True)\ntime.sleep(60)",
    )

    def over(samples: SamplingThread) -> bool:
        (state,) = samples.states
        asked = state.count or (isinstance(sampler, TpuSampler) and state.cost_s)
        return bool(asked) or state.status == "unavailable"

    with started(["env", *run], tmp_path) as process:
        samples, (summary,) = sampled_until(tmp_path / "samples.jsonl", [sampler], over, process.pid, 50)
        process.kill()
    return summary.status, summary.reason, samples


def test_chips_are_found_by_their_number(tmp_path: Path) -> None:
    known, other = ("0x1ae0", "0x0027"), ("0x1ae0", "0x001f")  # Google's network card
    assert tpu_chips(machine(tmp_path, known, known, other, ("0x10de", "0x2330"))) == 2
    assert tpu_chips(tmp_path / "nowhere") == 0


@each(TpuSampler, TpuSdkSampler)
def test_a_machine_without_a_tpu_is_not_asked(kind: type[TpuSampler | TpuSdkSampler], tmp_path: Path) -> None:
    assert told(tmp_path, kind(machine(tmp_path))) == ("unavailable", "this machine has no TPU", [])


def test_the_runtime_tells_each_device_of_each_process(
    tmp_path: Path, v5e: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")  # as many machines have
    with serve(chips=2, duty=37.5) as one, serve(chips=1, duty=2.0) as two:
        _, reason, samples = told(tmp_path, TpuSampler(v5e), f"{one}, {two}")
    assert reason == ""
    assert samples[0]["tpu"] == [
        {
            "device": i,
            "hbm_used_bytes": 4 * GIB + i,
            "hbm_total_bytes": 16 * GIB,
            "process": number,
            "duty_pct": duty,
        }
        for i, number, duty in ((0, 0, 37.5), (1, 0, 37.5), (0, 1, 2.0))
    ]


@each("UNAVAILABLE", "DEADLINE_EXCEEDED")
def test_a_runtime_that_is_absent_or_mute_is_said(error: str, tmp_path: Path, v5e: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if error == "DEADLINE_EXCEEDED":
            taken.listen()
        port = taken.getsockname()[1]
        _, reason, samples = told(tmp_path, TpuSampler(v5e), str(port))
    assert (reason, samples) == (f"the TPU runtime returned no metrics: port {port} ({error})", [])


def test_answers_that_are_no_messages_are_no_values(tmp_path: Path, v5e: Path) -> None:
    with serve(wrong=True) as port:
        _, reason, samples = told(tmp_path, TpuSampler(v5e), str(port))
    assert ("returned no metrics" in reason, samples) == (True, [])


def test_a_runtime_that_is_never_there_is_not_asked_for_ever(v5e: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu, "FAILURES", 2)
    sampler = TpuSampler(v5e)
    sampler.start(os.getpid())
    assert ([sampler.read() for _ in range(5)], sampler.runtimes[0].failures) == ([{}] * 5, 2)
    sampler.stop()


@cases(
    ("    assert name == 'tensorcore_util'\n    return Data()\n", "", [[12.5, 0.0]]),
    ("    import time; time.sleep(1000)\n", "did not answer", []),
    ("    import os; os.abort()\n", "ended with exit code -6", []),
    ("", "has no libtpu", []),
    ids=["answers", "hangs", "crashes", "absent"],
)
def test_the_sdk_tells_the_matrix_units_use(
    metric: str, why: str, used: list[list[float]], tmp_path: Path, v5e: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = tmp_path / "packages" / "libtpu" / "sdk"
    if metric:
        sdk.mkdir(parents=True)
        for folder in (sdk.parent, sdk):
            (folder / "__init__.py").touch()
        data = "class Data:\n    def data(self):\n        return ['12.5', '0.0']\ndef get_metric(name):\n"
        (sdk / "tpumonitoring.py").write_text(data + metric)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(sdk.parents[1]), str(SOURCES)]))
    monkeypatch.setattr(tpu, "SILENT_S", 1.0)
    status, reason, samples = told(tmp_path, TpuSdkSampler(v5e))
    assert (status, why in reason) == ("unavailable" if why else "on", True)
    assert [sample["tpu_matrix_unit_pct"] for sample in samples][:1] == used
