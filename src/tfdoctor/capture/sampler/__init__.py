"""Samples beside the run: threads in tfdoctor's own process, line by line to samples.jsonl.

Never in the user's process: a sampler there would compete for its lock and die with it.
"""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tfdoctor.capture.sampler.unavailable import SamplerUnavailable
from tfdoctor.recording.manifest import Sampling


class Sampler(Protocol):
    """Something that can be read again and again."""

    name: str

    def start(self, pid: int) -> None:
        """Prepare to sample; raises when there is nothing to sample."""

    def read(self) -> dict[str, Any]:
        """Return the entries of one sample."""

    def stop(self) -> str:
        """Let go; return what could not be sampled and why, or nothing."""


PATIENCE_S = 2.0
"""How long the end of the run waits for a reading that is under way: none takes half a second."""


class _State:
    """What became of a sampler."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.status, self.reason = sampler, "off", ""
        self.count, self.cost_s = 0, 0.0
        self.begun = time.perf_counter()

    def waited(self) -> float:
        """Return how long the present call has taken, in s."""
        return time.perf_counter() - self.begun

    def start(self, pid: int) -> None:
        self.begun = time.perf_counter()
        try:
            self.sampler.start(pid)
            self.status = "on"
        except SamplerUnavailable as missing:
            self.status, self.reason = "unavailable", str(missing)
        except Exception as error:  # noqa: BLE001  # no driver, no permission, a foreign library
            self.status, self.reason = "unavailable", f"{type(error).__name__}: {error}"

    def read(self) -> dict[str, Any]:
        self.begun = time.perf_counter()
        try:
            sample = self.sampler.read()
        except Exception as error:  # noqa: BLE001  # the run goes on without this sampler
            self.status, self.reason = "unavailable", f"{type(error).__name__}: {error}"
            return {}
        self.count += bool(sample)
        self.cost_s += self.waited()
        return sample

    def stop(self) -> None:
        try:
            gap = self.sampler.stop()
        except Exception as error:  # noqa: BLE001  # the samples are taken; only say so
            gap = f"{type(error).__name__}: {error}"
        self.reason = self.reason or gap

    def summary(self) -> Sampling:
        return Sampling(
            name=self.sampler.name,
            status=self.status,
            reason=self.reason,
            count=self.count,
            cost_ms=round(self.cost_s * 1000, 3),
        )


class SamplingThread:
    """Samples every `period_ms` from start to stop; 0 switches sampling off.

    Each sampler has a thread of its own, for a driver's call may hang: the others go on, and the end of
    the run is not kept waiting.
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
        """Begin to sample the run of this process."""
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
        """End; each thread lets go of its own device, as NVML demands, if it still answers."""
        self.ended.set()
        until = time.monotonic() + PATIENCE_S
        for thread, state in zip(self.threads, self.states, strict=False):
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                state.status = "unavailable"
                state.reason = f"a reading hung and was abandoned after {state.waited():.0f} s"
        for state in self.states:
            state.reason = state.reason or self.error
        return tuple(state.summary() for state in self.states)

    def _run(self, state: _State) -> None:
        state.start(self.pid)
        tick = time.monotonic()
        while not self.ended.is_set() and state.status == "on":
            self._write({"unix_ns": time.time_ns(), **state.read()})
            tick = max(tick + self.period, time.monotonic())  # late: drop ticks, make no burst
            self.ended.wait(tick - time.monotonic())
        if state.count or state.status == "on":
            state.stop()

    def _write(self, sample: dict[str, Any]) -> None:
        """Append one line; the time is that of the reading's beginning."""
        if len(sample) == 1:  # nothing but the time: the reading failed, or has nothing new
            return
        line = json.dumps(sample, separators=(",", ":")) + "\n"
        try:
            with self.writing, self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:
            self.error = f"samples could not be written: {error}"
