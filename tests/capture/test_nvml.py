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
from tfdoctor.capture.sampler.nvml import FAILURES, Probe

STUB = Path(__file__).with_name("nvml_stub.c")

SAMPLE = """
import os, sys, time
from dataclasses import asdict
from pathlib import Path
import json
from tfdoctor.capture.sampler import Samples
from tfdoctor.capture.sampler.nvml import NvmlSampler

samples = Samples(Path(sys.argv[1]), 20, [NvmlSampler()])
samples.start(os.getpid())
time.sleep(0.6)
print(json.dumps([asdict(sampling) for sampling in samples.stop()]))
"""


def sampled(tmp_path: Path, *flags: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Sample the stand-in, compiled with these flags, in a process of its own."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path / "libnvidia-ml.so.1"
    build = [compiler, "-shared", "-fPIC", "-O1", *flags, "-o", str(library), str(STUB)]
    subprocess.run(build, check=True)
    out = tmp_path / "samples.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", SAMPLE, str(out)],
        env=environment(LD_LIBRARY_PATH=str(tmp_path), PYTHONPATH=str(SOURCES)),
        capture_output=True,
        text=True,
        check=True,
    )
    (summary,) = json.loads(done.stdout)
    return summary, [json.loads(line) for line in out.read_text().splitlines()]


def test_every_gpu_tells_what_it_can(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path)
    assert summary["status"] == "on"
    assert summary["count"] == len(samples) > 3
    first, second = samples[0]["gpu"]
    assert first == {
        "index": 0,
        "uuid": "GPU-00000000",
        "name": "Stub 0",
        "gpu_pct": 75,
        "memory_pct": 20,
        "memory_used_bytes": 4 << 30,
        "memory_total_bytes": 16 << 30,
        "sm_mhz": 1700,
        "power_w": 412.5,
        "throttle": ["power-cap", "hardware-thermal"],
    }
    assert "power_w" not in second
    assert summary["reason"] == "GPU 1 does not tell power (NVMLError_NotSupported)"


def test_slow_readings_are_taken_less_often(tmp_path: Path) -> None:
    _, samples = sampled(tmp_path)
    with_power = [number for number, s in enumerate(samples) if "power_w" in s["gpu"][0]]
    assert with_power == list(range(0, len(samples), 5))


def test_an_older_driver_knows_the_older_name(tmp_path: Path) -> None:
    _, samples = sampled(tmp_path, "-DOLD_DRIVER")
    assert samples[0]["gpu"][0]["throttle"] == ["power-cap", "hardware-thermal"]


def test_a_driver_that_does_not_answer_is_no_fault(tmp_path: Path) -> None:
    summary, samples = sampled(tmp_path, "-DBROKEN")
    assert summary["status"] == "unavailable"
    assert "DriverNotLoaded" in summary["reason"]
    assert samples
    assert all(set(sample) == {"unix_ns"} for sample in samples)


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
    answers = iter([pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT), 3] * FAILURES)

    def call() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    probe = Probe(call)
    assert [probe() for _ in range(2 * FAILURES)] == [None, 3] * FAILURES
    assert not probe.dead
