"""Samples of the host, and the threads that take them."""

from tests.capture.kit import *
from tfdoctor.capture import sampler
from tfdoctor.capture.sampler.host import HostSampler


def test_the_host_is_sampled_with_the_run_in_it(tmp_path: Path) -> None:
    """Other programs do not get the run's first work."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        lines, (said,) = sampled_until(
            tmp_path / "samples", [HostSampler()], lambda samples: samples.states[0].count >= 8, busy.pid, 100
        )
        busy.kill()
    assert (said.status, said.count, said.cost_ms > 0) == ("on", len(lines), True)
    hosts, times = [line["host"] for line in lines], [line["unix_ns"] for line in lines]
    assert max(host["run_cpu_pct"] for host in hosts[1:]) > 5
    assert hosts[2]["run_rss_bytes"] > 1_000_000
    assert hosts[0]["memory_used_bytes"] < hosts[0]["memory_total_bytes"]
    assert times == sorted(times)


def test_the_end_of_the_run_is_no_fault(tmp_path: Path) -> None:
    run, counted = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.2)"]), []

    def twice_after_the_end(samples: SamplingThread) -> bool:
        if run.poll() is not None:
            counted.append(samples.states[0].count)
        return bool(counted) and counted[-1] > counted[0] + 2

    lines, (said,) = sampled_until(tmp_path / "samples", [HostSampler()], twice_after_the_end, run.pid, 30)
    assert (said.status, said.reason) == ("on", "")
    assert "run_cpu_pct" in lines[-1]["host"]


class Broken(Sampler):
    """A sampler that fails from its third reading on."""

    name, left, stopped = "broken", 2, False

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
    _, said = sampled_until(
        tmp_path / "samples", samplers, lambda samples: broken.stopped and samples.states[-1].count > 2, os.getpid()
    )
    assert [one.status for one in said] == ["unavailable", "unavailable", "on", "on"]
    assert [one.count for one in said[:3]] == [2, 0, 1]
    expected = [r"the device is gone", "hung", "^$", "^$"]
    assert all(re.search(why, one.reason) for why, one in zip(expected, said, strict=True))
    assert not hanging.stopped  # nothing is closed below a call that is under way


def test_zero_switches_sampling_off_and_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    _, (said,) = sampled_until(tmp_path / "samples", [HostSampler()], lambda _: True, os.getpid(), 0)
    assert (said.status, (tmp_path / "samples").exists()) == ("off", False)
    missing = tmp_path / "missing" / "samples"
    _, (said,) = sampled_until(missing, [HostSampler()], lambda samples: samples.states[0].count > 1, os.getpid())
    assert "could not be written" in said.reason
