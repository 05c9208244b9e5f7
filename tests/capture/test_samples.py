"""Samples of the host, and the thread that takes them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tfdoctor.capture import cgroup, machine, sampler
from tfdoctor.capture.sampler import SamplingThread
from tfdoctor.capture.sampler.host import HostSampler


def rows(samples: SamplingThread) -> list[dict[str, Any]]:
    """Return the samples that are written."""
    return [json.loads(line) for line in samples.path.read_text().splitlines()]


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so, as it must soon be."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


class Broken:
    """A sampler that fails from its third reading on."""

    name = "broken"

    def __init__(self) -> None:
        self.left = 2
        self.stopped = False

    def start(self, pid: int) -> None:
        self.pid = pid

    def read(self) -> dict[str, Any]:
        self.left -= 1
        if self.left < 0:
            raise OSError("the device is gone")
        return {"broken": self.left}

    def stop(self) -> str:
        self.stopped = True
        return ""


def test_the_host_is_sampled_with_the_run_in_it(tmp_path: Path) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    samples = SamplingThread(tmp_path / "samples.jsonl", 50, [HostSampler()])
    samples.start(busy.pid)
    until(lambda: samples.states[0].count >= 8)
    (summary,) = samples.stop()
    busy.kill()
    busy.wait()
    lines = rows(samples)
    assert summary.status == "on"
    assert summary.count == len(lines) >= 8
    assert summary.cost_ms > 0
    hosts = [line["host"] for line in lines[2:]]
    assert max(host["run_cpu_pct"] for host in hosts) > 5
    assert hosts[0]["run_rss_bytes"] > 1_000_000
    assert hosts[0]["memory_used_bytes"] < hosts[0]["memory_total_bytes"]
    assert [line["unix_ns"] for line in lines] == sorted(line["unix_ns"] for line in lines)


def test_the_end_of_the_run_is_no_fault(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"])
    samples = SamplingThread(tmp_path / "samples.jsonl", 30, [HostSampler()])
    samples.start(ended.pid)
    ended.wait()
    before = samples.states[0].count
    until(lambda: samples.states[0].count > before + 2)
    (summary,) = samples.stop()
    assert (summary.status, summary.reason) == ("on", "")
    assert "run_cpu_pct" in rows(samples)[-1]["host"]


def test_a_sampler_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = Broken()
    samples = SamplingThread(tmp_path / "samples.jsonl", 10, [broken, HostSampler()])
    samples.start(os.getpid())
    until(lambda: broken.stopped and samples.states[1].count > 2)
    first, second = samples.stop()
    assert (first.status, first.count) == ("unavailable", 2)
    assert "the device is gone" in first.reason
    assert broken.stopped
    assert second.count > 2


class Hanging(Broken):
    """A sampler whose first reading never ends."""

    name = "hanging"

    def read(self) -> dict[str, Any]:
        time.sleep(1000)
        return {}


def test_a_sampler_that_hangs_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "PATIENCE_S", 0.2)
    hanging = Hanging()
    samples = SamplingThread(tmp_path / "samples.jsonl", 10, [hanging, HostSampler()])
    samples.start(os.getpid())
    until(lambda: samples.states[1].count > 2)
    first, second = samples.stop()
    assert (first.status, first.count) == ("unavailable", 0)
    assert "hung" in first.reason
    assert not hanging.stopped  # nothing is closed below a call that is under way
    assert (second.status, second.reason) == ("on", "")
    assert second.count > 2


def test_other_programs_do_not_get_the_runs_first_work(tmp_path: Path) -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    samples = SamplingThread(tmp_path / "samples.jsonl", 200, [HostSampler()])
    samples.start(busy.pid)
    until(lambda: samples.states[0].count >= 3)
    samples.stop()
    busy.kill()
    busy.wait()
    assert all(row["host"]["run_cpu_pct"] > 0 for row in rows(samples)[1:])


def test_zero_switches_sampling_off(tmp_path: Path) -> None:
    samples = SamplingThread(tmp_path / "samples.jsonl", 0, [HostSampler()])
    samples.start(os.getpid())
    (summary,) = samples.stop()
    assert summary.status == "off"
    assert not samples.path.exists()


def test_samples_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    samples = SamplingThread(tmp_path / "missing" / "samples.jsonl", 10, [HostSampler()])
    samples.start(os.getpid())
    until(lambda: samples.states[0].count > 1)
    (summary,) = samples.stop()
    assert "could not be written" in summary.reason


def test_the_machine_is_described() -> None:
    host = machine.host()
    assert 0 < host.cores_usable <= host.cores_logical
    assert host.memory_bytes > 1 << 28
    assert host.cpu_model


@pytest.mark.parametrize(
    ("mounts", "own", "files", "quota"),
    [
        ("cgroup2", "0::/job", {"job/cpu.max": "150000 100000"}, 1.5),
        ("cgroup2", "0::/job", {"job/cpu.max": "max 100000", "cpu.max": "300000 100000"}, 3.0),
        ("cgroup2", "0::/job", {"job/cpu.max": "max 100000"}, None),
        ("cgroup", "4:cpu,cpuacct:/job", {"job/cpu.cfs_quota_us": "50000", "job/cpu.cfs_period_us": "100000"}, 0.5),
        ("cgroup", "4:cpu,cpuacct:/job", {"job/cpu.cfs_quota_us": "-1", "job/cpu.cfs_period_us": "100000"}, None),
    ],
)
def test_quotas_of_both_kinds_of_cgroup(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mounts: str,
    own: str,
    files: dict[str, str],
    quota: float | None,
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    options = "rw" if mounts == "cgroup2" else "rw,cpu,cpuacct"
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {tmp_path} rw - {mounts} cgroup {options}\n")
    (tmp_path / "cgroup").write_text(own + "\n")
    monkeypatch.setattr(cgroup, "SELF", tmp_path)
    assert cgroup.cpu_quota() == quota


def test_throttling_is_read_from_the_nearest_cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "cpu.stat").write_text("usage_usec 5\nthrottled_usec 1234\n")
    (tmp_path / "mountinfo").write_text(f"30 23 0:26 / {tmp_path} rw - cgroup2 cgroup rw\n")
    (tmp_path / "cgroup").write_text("0::/job\n")
    monkeypatch.setattr(cgroup, "SELF", tmp_path)
    statistics = cgroup.statistics_file()
    assert statistics is not None
    assert cgroup.throttled_us(statistics) == 1234
