"""NVML against a stand-in for the driver's library, loaded as the real one would be."""

import pynvml

from tests.capture.kit import *
from tfdoctor.capture.sampler.devices import has_nvidia_gpu, visible
from tfdoctor.capture.sampler.nvml import FAILURES, Probe

STUB = Path(__file__).with_name("nvml_stub.c")

SAMPLE = """
import os, sys, time
from dataclasses import asdict
from pathlib import Path
import json
from tfdoctor.capture.sampler import SamplingThread
from tfdoctor.capture.sampler.nvml import NvmlSampler

samples = SamplingThread(Path(sys.argv[1]), 20, [NvmlSampler(Path(sys.argv[3]))])
samples.start(os.getpid())
time.sleep(float(sys.argv[2]))
print(json.dumps([asdict(sampling) for sampling in samples.stop()]))
"""


Sampled = tuple[dict[str, Any], list[dict[str, Any]]]


def sampled(tmp_path: Path, *flags: str, seconds: float = 0.7) -> Sampled:
    """Sample the stand-in, compiled with these flags, in a process of its own; return what is said, and samples."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path / "libnvidia-ml.so.1"
    build = [compiler, "-shared", "-fPIC", "-O1", *flags, "-o", str(library), str(STUB)]
    subprocess.run(build, check=True)
    out = tmp_path / "samples.jsonl"
    seen = environment(LD_LIBRARY_PATH=str(tmp_path), PYTHONPATH=str(SOURCES))
    done = subprocess.run(
        [sys.executable, "-c", SAMPLE, str(out), str(seconds), str(tmp_path / "bus")],
        env=seen | {"CUDA_VISIBLE_DEVICES": "GPU-00000000,GPU-00000001"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    (summary,) = json.loads(done.stdout)
    return summary, [json.loads(line) for line in out.read_text().splitlines()]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Sampled:
    return sampled(tmp_path_factory.mktemp("usual"), seconds=2.5)


def test_every_gpu_tells_what_it_can(usual: Sampled) -> None:
    summary, samples = usual
    assert summary["status"] == "on"
    assert summary["count"] == len(samples) >= 2
    first, second = samples[0]["gpu"]
    assert first == {
        "index": 0,
        "uuid": "GPU-00000000",
        "name": "Stub 0",
        "visible": True,
        "gpu_pct": 75,
        "memory_pct": 20,
        "memory_used_bytes": 4 << 30,
        "memory_total_bytes": 16 << 30,
        "sm_max_mhz": 1980,
        "sm_mhz": 1700,
        "power_w": 412.5,
        "energy_j": first["energy_j"],
        "throttle": ["power-cap", "hardware-thermal"],
        "pcie_tx_bytes": 197000000,
        "pcie_rx_bytes": 198000000,
        "pcie_gen": 5,
        "pcie_width": 16,
        "processes": {"run": 1, "run_bytes": 3 << 30, "others": 1, "attribution": "by process", "others_sm_pct": 0},
        "board": {
            "persistence": True,
            "ecc": True,
            "mig": False,
            "power_limit_w": 500.0,
            "power_default_w": 700.0,
            "power_max_w": 700.0,
            "slowdown_c": 90,
            "ecc_uncorrected": 0,
            "pcie_max_gen": 5,
            "pcie_max_width": 16,
        },
    }
    assert 5000.0 < first["energy_j"] < 5000.0 + 412.5 * 60
    assert samples[0]["driver"]["version"] == "580.95.05"
    assert second["board"] == {}
    assert "power_w" not in second
    assert second["processes"] == {
        "run": 0, "run_bytes": 0, "others": 0, "attribution": "by process", "others_sm_pct": 0,
    }  # fmt: skip
    assert summary["reason"] == (
        "GPU 1: does not report power (NVMLError_NotSupported); matrix-unit activity is not sampled: "
        "the GPU has no GPM (Hopper and later have it)"
    )


def test_energy_is_counted_by_the_driver(usual: Sampled) -> None:
    rows = [(sample["unix_ns"], sample["gpu"][0]) for sample in usual[1]]
    (begin, before), *_, (end, after) = [(at, gpu["energy_j"]) for at, gpu in rows if "energy_j" in gpu]
    assert 1e9 * (after - before) / (end - begin) == pytest.approx(412.5, rel=0.1)


def test_readings_are_no_more_frequent_than_they_are_good_for(usual: Sampled) -> None:
    """Every 20 ms was asked for: load is read 5 times a second, power once, the board each 5 s."""
    boards = [sample["gpu"][0] for sample in usual[1]]
    assert 7 <= len(boards) <= 13
    assert sum("power_w" in board for board in boards) in (2, 3)
    assert sum("processes" in board for board in boards) == sum("board" in board for board in boards) == 1


def test_the_matrix_units_activity_comes_from_gpm(usual: Sampled) -> None:
    (told, *_) = [sample["gpu"][0] for sample in usual[1] if "tensor_pct" in sample["gpu"][0]]
    assert (told["tensor_pct"], told["sm_pct"], told["dram_pct"]) == (40.0, 12.5, 12.5)
    assert 0.4 < told["gpm_window_s"] < 2.5
    assert "nvlink_rx_mib_s" not in told  # an error of its own
    assert "tensor_imma_pct" not in told  # no number
    assert all("tensor_pct" not in sample["gpu"][1] for sample in usual[1])


def test_what_a_board_and_a_driver_may_be(tmp_path: Path) -> None:
    """The start of the driver takes time, another process works, the link is narrow, and one GPU is lost."""
    flags = ("-DOPEN_US=300000", "-DPERSISTENCE=0", "-DOTHER_SM=40", "-DPCIE_WIDTH=4", "-DLOST_AFTER=2")
    summary, samples = sampled(tmp_path, *flags, seconds=1.9)
    assert 600 <= samples[0]["driver"]["opened_ms"] < 3000
    assert all("driver" not in sample for sample in samples[1:])
    first = samples[0]["gpu"][0]
    assert first["board"]["persistence"] is False
    assert first["processes"]["others_sm_pct"] == 40
    assert (first["pcie_width"], first["board"]["pcie_max_width"]) == (4, 16)
    assert summary["status"] == "on"
    assert samples[0]["gpu"][1]["gpu_pct"] == 10
    assert "gpu_pct" not in samples[-1]["gpu"][1]
    assert samples[-1]["gpu"][0]["gpu_pct"] == 75
    assert "utilization (NVMLError_GpuIsLost)" in summary["reason"]


def test_a_divided_gpu_is_sampled_by_its_instances(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, "-DMIG", seconds=1.3)
    (parts, *_) = [sample["gpu"][0]["mig"] for sample in samples if "mig" in sample["gpu"][0]]
    assert [(part["instance"], part["tensor_pct"]) for part in parts] == [(3, 12.0), (5, 20.0)]
    assert "gpu_pct" not in samples[0]["gpu"][0]
    assert "GPU 0: does not report utilization (NVMLError_NotSupported)" in summary["reason"]


def test_an_older_driver_knows_the_older_names(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, "-DOLD_DRIVER")
    assert samples[0]["gpu"][0]["throttle"] == ["power-cap", "hardware-thermal"]
    assert samples[-1]["gpu"][0]["gpu_pct"] == 75
    assert "GPM was refused (NVMLError_FunctionNotFound)" in summary["reason"]


def test_a_call_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    """The process ends, although a thread of it never returns; NVML is not shut down below it."""
    summary, samples = sampled(tmp_path, "-DHANG_AFTER=1")
    assert summary["status"] == "unavailable"
    assert "a reading hung" in summary["reason"]
    assert len(samples) == 1


@pytest.mark.parametrize("present", [True, False])
def test_a_driver_that_does_not_answer_is_no_fault_and_without_a_gpu_nothing_lacks(
    tmp_path: Path, *, present: bool
) -> None:
    """Trap: NVIDIA's cards have an audio device as well."""
    bus = tmp_path / "bus"
    for name, vendor, kind in (
        ("a", "0x10de", "0x040300"),
        ("b", "0x8086", "0x030000"),
        *([("c", "0x10de", "0x030200")] if present else []),
    ):
        (bus / name).mkdir(parents=True)
        (bus / name / "vendor").write_text(f"{vendor}\n")
        (bus / name / "class").write_text(f"{kind}\n")
    assert has_nvidia_gpu(bus) is present
    assert not has_nvidia_gpu(tmp_path / "nowhere")
    summary, samples = sampled(tmp_path, "-DBROKEN", seconds=0.1)
    assert (summary["status"], summary["absent"]) == ("unavailable", not present)
    assert ("DriverNotLoaded" if present else "this machine has no NVIDIA GPU") in summary["reason"]
    assert samples == []


UUIDS = ["GPU-aaaa", "GPU-bbbb"]


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({}, [True, True]),
        ({"CUDA_VISIBLE_DEVICES": ""}, [False, False]),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, [False, False]),
        ({"CUDA_VISIBLE_DEVICES": "GPU-bb"}, [False, True]),
        ({"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [False, True]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, [None, None]),  # the fastest first: which is that?
        ({"CUDA_VISIBLE_DEVICES": "MIG-1234"}, [None, None]),
    ],
)
def test_which_gpus_the_run_sees(given: dict[str, str], seen: list[bool | None]) -> None:
    assert visible(given, UUIDS) == seen
    assert visible({"CUDA_VISIBLE_DEVICES": "0"}, UUIDS[:1]) == [True]  # one GPU has one number


MISMATCH = pynvml.NVMLLibraryMismatchError("is no NVMLError")
CODES = ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "NO_PERMISSION", "GPU_IS_LOST")


@pytest.mark.parametrize(
    ("answers", "given"),
    [
        *[([pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{code}")), 3], [None, None]) for code in CODES],
        ([MISMATCH, 3], [None, None]),
        ([pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)] * FAILURES + [3], [None] * (FAILURES + 1)),
        # A success forgives what was before.
        ([pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT), 3] * FAILURES, [None, 3] * FAILURES),
    ],
)
def test_a_call_that_fails_for_good_or_too_often_is_given_up(
    answers: list[Exception | int], given: list[int | None]
) -> None:
    left = iter(answers)

    def call() -> int:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    probe = Probe(call)
    assert [probe() for _ in given] == given
    assert probe.dead is (given[-1] is None)
