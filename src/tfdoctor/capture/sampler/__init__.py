"""Samples the machine from threads in tfdoctor's process, one line of samples.jsonl each time.

Never in the user's process: a sampler there would compete for its GIL and die with it.
"""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfdoctor.recording.manifest import Sampling

PATIENCE_S = 2.0  # How long the end of the run waits for an unfinished reading, which takes below half a second
TICK_S = 0.001  # Ticks vary by less


class SamplerUnavailable(Exception):  # noqa: N818  # nothing went wrong
    """The device, its driver or its library is missing; the text tells the user which."""


class NoDevice(SamplerUnavailable):
    """The machine has no such device, so a recording lacks nothing."""


class Sampler:
    """Reads a part of the machine again and again, no more often than each `every_s`."""

    name: str
    every_s = 0.0

    def start(self, pid: int) -> None:
        """Prepare to sample the run of a process; raises when there is nothing to sample."""

    def read(self) -> dict[str, Any]:
        """Return the entries of one sample; nothing where there is no new value."""
        raise NotImplementedError

    def stop(self) -> str:
        """Release the device; return what could not be sampled and why, or ""."""
        return ""


class _State:
    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.status, self.reason = sampler, "off", ""
        self.absent = False
        self.count, self.cost_s = 0, 0.0
        self.call_started, self.read_at = time.perf_counter(), -float("inf")

    def elapsed_s(self) -> float:
        """Return how long the present call has taken, in s."""
        return time.perf_counter() - self.call_started

    def start(self, pid: int) -> None:
        self.call_started = time.perf_counter()
        try:
            self.sampler.start(pid)
            self.status = "on"
        except SamplerUnavailable as missing:
            self.status, self.reason = "unavailable", str(missing)
            self.absent = isinstance(missing, NoDevice)
        except Exception as error:  # noqa: BLE001  # no driver, no permission, a foreign library
            self.status, self.reason = "unavailable", f"{type(error).__name__}: {error}"

    def read(self) -> dict[str, Any]:
        if time.monotonic() - self.read_at < self.sampler.every_s - TICK_S:
            return {}
        self.call_started, self.read_at = time.perf_counter(), time.monotonic()
        try:
            sample = self.sampler.read()
        except Exception as error:  # noqa: BLE001  # the run goes on without this sampler
            self.status, self.reason = "unavailable", f"{type(error).__name__}: {error}"
            return {}
        self.count += bool(sample)
        self.cost_s += self.elapsed_s()
        return sample

    def stop(self) -> None:
        try:
            lost = self.sampler.stop()
        except Exception as error:  # noqa: BLE001  # the samples exist: only report it
            lost = f"{type(error).__name__}: {error}"
        self.reason = self.reason or lost

    def summary(self) -> Sampling:
        return Sampling(
            name=self.sampler.name,
            status=self.status,
            reason=self.reason,
            count=self.count,
            cost_ms=round(self.cost_s * 1000, 3),
            absent=self.absent,
        )


class SamplingThread:
    """Samples every `period_ms` from start to stop; 0 switches sampling off.

    Each sampler has its own thread, because a call of a driver may hang: the others continue, and the end of
    the run does not wait for it.
    """

    def __init__(self, path: Path, period_ms: int, samplers: Sequence[Sampler]) -> None:
        self.path = path
        self.period = period_ms / 1000
        self.states = [_State(sampler) for sampler in samplers]
        self.ended = threading.Event()
        self.writing = threading.Lock()
        self.threads: list[threading.Thread] = []
        self.pid = 0
        self.error = ""

    def start(self, pid: int) -> None:
        """Start sampling the run with this process id."""
        if not self.period:
            return
        self.pid = pid
        try:
            self.path.touch()
        except OSError as error:
            self.error = f"samples could not be written: {error}"
        for state in self.states:
            thread = threading.Thread(target=self._run, args=(state,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def stop(self) -> tuple[Sampling, ...]:
        """Stop; each thread releases its own device, as NVML demands, unless it hangs."""
        self.ended.set()
        deadline = time.monotonic() + PATIENCE_S
        for thread, state in zip(self.threads, self.states, strict=False):
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                state.status = "unavailable"
                state.reason = f"a reading hung and was abandoned after {state.elapsed_s():.0f} s"
        for state in self.states:
            state.reason = state.reason or self.error
        return tuple(state.summary() for state in self.states)

    def _run(self, state: _State) -> None:
        state.start(self.pid)
        tick = time.monotonic()
        while not self.ended.is_set() and state.status == "on":
            self._write({"unix_ns": time.time_ns(), **state.read()})
            tick = max(tick + self.period, time.monotonic())  # if late, drop ticks instead of catching up
            self.ended.wait(tick - time.monotonic())
        if state.count or state.status == "on":
            state.stop()

    def _write(self, sample: dict[str, Any]) -> None:
        """Append one line; its time is that at which the reading started."""
        if len(sample) == 1:  # only the time: the reading failed, or has no new value
            return
        line = json.dumps(sample, separators=(",", ":")) + "\n"
        try:
            with self.writing, self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            self.error = f"samples could not be written: {error}"


def all_samplers() -> list[Sampler]:
    """Return a new sampler of each kind, which finds out at its start whether it has something to sample."""
    from tfdoctor.capture.sampler import host, nvml, rapl, tpu  # noqa: PLC0415 - a run without samples needs none

    return [host.HostSampler(), nvml.NvmlSampler(), rapl.RaplSampler(), tpu.TpuSampler(), tpu.TpuSdkSampler()]
