"""NVML against a stand-in for the driver's library, loaded as the real one would be."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pynvml
import pytest

from tests.capture.running import SOURCES, environment
from tfdoctor.capture.sampler.probe import FAILURES, Probe
from tfdoctor.capture.sampler.visible import visible

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


def sampled(
    tmp_path: Path, *flags: str, seconds: float = 0.7, extra: dict[str, str] | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Sample the stand-in, compiled with these flags, in a process of its own."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path / "libnvidia-ml.so.1"
    build = [compiler, "-shared", "-fPIC", "-O1", *flags, "-o", str(library), str(STUB)]
    subprocess.run(build, check=True)
    out = tmp_path / "samples.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", SAMPLE, str(out), str(seconds), str(tmp_path / "bus")],
        env=environment(LD_LIBRARY_PATH=str(tmp_path), PYTHONPATH=str(SOURCES)) | (extra or {}),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    (summary,) = json.loads(done.stdout)
    return summary, [json.loads(line) for line in out.read_text().splitlines()]


ALL = {"CUDA_VISIBLE_DEVICES": "GPU-00000000,GPU-00000001"}


def test_every_gpu_tells_what_it_can(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, extra=ALL)
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


def test_the_time_to_open_the_gpus_is_that_of_the_driver(tmp_path: Path) -> None:
    _, samples = sampled(tmp_path, "-DOPEN_US=300000", "-DPERSISTENCE=0", seconds=1.2)
    assert 600 <= samples[0]["driver"]["opened_ms"] < 3000
    assert samples[0]["gpu"][0]["board"]["persistence"] is False
    assert all("driver" not in sample and "board" not in sample["gpu"][0] for sample in samples[1:])


def test_the_load_by_other_processes_is_told_apart(tmp_path: Path) -> None:
    _, samples = sampled(tmp_path, "-DOTHER_SM=40", "-DPCIE_WIDTH=4")
    first = samples[0]["gpu"][0]
    assert first["processes"]["others_sm_pct"] == 40
    assert (first["pcie_width"], first["board"]["pcie_max_width"]) == (4, 16)


def test_energy_is_counted_by_the_driver(tmp_path: Path) -> None:
    _, samples = sampled(tmp_path, seconds=2.5)
    told = [
        (sample["unix_ns"], sample["gpu"][0]["energy_j"]) for sample in samples if "energy_j" in sample["gpu"][0]
    ]
    (begin, before), *_, (end, after) = told
    assert 1e9 * (after - before) / (end - begin) == pytest.approx(412.5, rel=0.1)


def test_readings_are_no_more_frequent_than_they_are_good_for(tmp_path: Path) -> None:
    """Every 20 ms was asked for: load is read 5 times a second, power once."""
    _, samples = sampled(tmp_path, seconds=1.5)
    assert 4 <= len(samples) <= 8
    assert sum("power_w" in sample["gpu"][0] for sample in samples) in (1, 2)
    assert sum("processes" in sample["gpu"][0] for sample in samples) == 1


def test_the_matrix_units_activity_comes_from_gpm(tmp_path: Path) -> None:
    _, samples = sampled(tmp_path, seconds=2.5)
    (told, *_) = [sample["gpu"][0] for sample in samples if "tensor_pct" in sample["gpu"][0]]
    assert (told["tensor_pct"], told["sm_pct"], told["dram_pct"]) == (40.0, 12.5, 12.5)
    assert 0.4 < told["gpm_window_s"] < 2.5
    assert "nvlink_rx_mib_s" not in told  # an error of its own
    assert "tensor_imma_pct" not in told  # no number
    assert all("tensor_pct" not in sample["gpu"][1] for sample in samples)


def test_a_divided_gpu_is_sampled_by_its_instances(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, "-DMIG", seconds=2.5)
    (parts, *_) = [sample["gpu"][0]["mig"] for sample in samples if "mig" in sample["gpu"][0]]
    assert [(part["instance"], part["tensor_pct"]) for part in parts] == [(3, 12.0), (5, 20.0)]
    assert "gpu_pct" not in samples[0]["gpu"][0]
    assert "GPU 0: does not report utilization (NVMLError_NotSupported)" in summary["reason"]


def test_an_older_driver_knows_the_older_names(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, "-DOLD_DRIVER")
    assert samples[0]["gpu"][0]["throttle"] == ["power-cap", "hardware-thermal"]
    assert samples[-1]["gpu"][0]["gpu_pct"] == 75
    assert "GPM was refused (NVMLError_FunctionNotFound)" in summary["reason"]


def test_a_gpu_that_is_lost_leaves_the_other(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, "-DLOST_AFTER=2", seconds=1.3)
    assert summary["status"] == "on"
    assert samples[0]["gpu"][1]["gpu_pct"] == 10
    assert "gpu_pct" not in samples[-1]["gpu"][1]
    assert samples[-1]["gpu"][0]["gpu_pct"] == 75
    assert "utilization (NVMLError_GpuIsLost)" in summary["reason"]


def test_a_call_that_hangs_keeps_nobody_waiting(tmp_path: Path) -> None:
    """The process ends, although a thread of it never returns; NVML is not shut down below it."""
    summary, samples = sampled(tmp_path, "-DHANG_AFTER=1", seconds=1.0)
    assert summary["status"] == "unavailable"
    assert "a reading hung" in summary["reason"]
    assert len(samples) == 1


def test_a_driver_that_does_not_answer_is_no_fault(tmp_path: Path) -> None:
    gpu = tmp_path / "bus" / "0000:01:00.0"
    gpu.mkdir(parents=True)
    (gpu / "vendor").write_text("0x10de\n")
    (gpu / "class").write_text("0x030200\n")
    summary, samples = sampled(tmp_path, "-DBROKEN")
    assert (summary["status"], summary["absent"]) == ("unavailable", False)
    assert "DriverNotLoaded" in summary["reason"]
    assert samples == []


def test_a_machine_without_a_gpu_lacks_no_data(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, "-DBROKEN")
    assert (summary["status"], summary["absent"]) == ("unavailable", True)
    assert summary["reason"] == "this machine has no NVIDIA GPU"
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


def test_one_gpu_has_one_number() -> None:
    assert visible({"CUDA_VISIBLE_DEVICES": "0"}, UUIDS[:1]) == [True]


def failing(error: Exception) -> Probe:
    def call() -> None:
        raise error

    return Probe(call)


@pytest.mark.parametrize(
    "error",
    [
        pynvml.NVMLLibraryMismatchError("is no NVMLError"),
        pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED),
        pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND),
        pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION),
        pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST),
    ],
)
def test_a_permanent_error_gives_a_call_up(error: Exception) -> None:
    probe = failing(error)
    assert probe() is None
    assert probe.dead


def test_a_passing_error_is_tried_again() -> None:
    probe = failing(pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT))
    for _ in range(FAILURES - 1):
        assert probe() is None
    assert not probe.dead
    probe()
    assert probe.dead


def test_a_success_forgives_what_was_before() -> None:
    given: list[Exception | int] = [pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT), 3] * FAILURES
    answers = iter(given)

    def call() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    probe = Probe(call)
    assert [probe() for _ in range(2 * FAILURES)] == [None, 3] * FAILURES
    assert not probe.dead
