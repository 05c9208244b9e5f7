"""Samples of the host, and the threads that take them."""

from tests.capture.kit import *
from tfdoctor.capture import sampler
from tfdoctor.capture.sampler import Sampler, SamplingThread
from tfdoctor.capture.sampler.host import HostSampler
from tfdoctor.recording.manifest import Sampling


def sampled(
    path: Path, samplers: Sequence[Sampler], until: Callable[[SamplingThread], object], pid: int, every_ms: int = 10
) -> tuple[list[dict[str, Any]], tuple[Sampling, ...]]:
    """Sample a process until something is so; return the samples and what is said of each sampler."""
    samples = SamplingThread(path, every_ms, samplers)
    samples.start(pid)
    end = time.monotonic() + 60
    while not until(samples):
        assert time.monotonic() < end
        time.sleep(0.01)
    said = samples.stop()
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else [], said


def test_the_host_is_sampled_with_the_run_in_it(tmp_path: Path) -> None:
    """Other programs do not get the run's first work."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    lines, (said,) = sampled(
        tmp_path / "samples", [HostSampler()], lambda samples: samples.states[0].count >= 8, busy.pid, 100
    )
    busy.kill()
    busy.wait()
    assert said.status == "on"
    assert said.count == len(lines) >= 8
    assert said.cost_ms > 0
    hosts = [line["host"] for line in lines]
    assert all(host["run_cpu_pct"] > 0 for host in hosts[1:])
    assert max(host["run_cpu_pct"] for host in hosts) > 5
    assert hosts[2]["run_rss_bytes"] > 1_000_000
    assert hosts[0]["memory_used_bytes"] < hosts[0]["memory_total_bytes"]
    assert [line["unix_ns"] for line in lines] == sorted(line["unix_ns"] for line in lines)


def test_the_end_of_the_run_is_no_fault(tmp_path: Path) -> None:
    run, counted = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"]), []

    def twice_after_the_end(samples: SamplingThread) -> bool:
        if run.poll() is not None:
            counted.append(samples.states[0].count)
        return bool(counted) and counted[-1] > counted[0] + 2

    lines, (said,) = sampled(tmp_path / "samples", [HostSampler()], twice_after_the_end, run.pid, 30)
    assert (said.status, said.reason) == ("on", "")
    assert "run_cpu_pct" in lines[-1]["host"]


class Broken(Sampler):
    """A sampler that fails from its third reading on."""

    name = "broken"
    left = 2
    stopped = False

    def read(self) -> dict[str, Any]:
        self.left -= 1
        if self.left < 0:
            raise OSError("the device is gone")
        return {"broken": self.left}

    def stop(self) -> str:
        self.stopped = True
        return ""


class Hanging(Broken):
    """A sampler whose first reading never ends."""

    name = "hanging"

    def read(self) -> dict[str, Any]:
        time.sleep(1000)
        return {}


class Rare(Broken):
    """A sampler that is asked once in an hour."""

    name, every_s, left = "rare", 3600.0, 1


def test_a_sampler_that_fails_or_hangs_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "PATIENCE_S", 0.2)
    samplers = broken, hanging, _, _ = Broken(), Hanging(), Rare(), HostSampler()
    _, said = sampled(
        tmp_path / "samples", samplers, lambda samples: broken.stopped and samples.states[-1].count > 2, os.getpid()
    )
    assert [one.status for one in said] == ["unavailable", "unavailable", "on", "on"]
    assert [one.count for one in said[:3]] == [2, 0, 1]
    assert "the device is gone" in said[0].reason
    assert "hung" in said[1].reason
    assert not hanging.stopped  # nothing is closed below a call that is under way
    assert [one.reason for one in said[2:]] == ["", ""]


def test_zero_switches_sampling_off_and_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    _, (said,) = sampled(tmp_path / "samples", [HostSampler()], lambda _: True, os.getpid(), 0)
    assert said.status == "off"
    assert not (tmp_path / "samples").exists()
    missing = tmp_path / "missing" / "samples"
    _, (said,) = sampled(missing, [HostSampler()], lambda samples: samples.states[0].count > 1, os.getpid())
    assert "could not be written" in said.reason
