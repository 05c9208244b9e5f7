"""Samples beside the run: one thread in tfdoctor's own process, line by line to samples.jsonl.

Never in the user's process: a sampler there would compete for its lock and die with it.
"""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from tfdoctor.manifest import Sampling


class Sampler(Protocol):
    """Something that can be read again and again."""

    name: str

    def start(self, pid: int) -> None:
        """Prepare to sample; raises when there is nothing to sample."""

    def read(self) -> dict[str, Any]:
        """Return the entries of one sample."""

    def stop(self) -> str:
        """Let go; return what could not be sampled and why, or nothing."""


class _State:
    """What became of a sampler."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler, self.status, self.reason = sampler, "off", ""
        self.count, self.cost_s = 0, 0.0

    def start(self, pid: int) -> None:
        try:
            self.sampler.start(pid)
            self.status = "on"
        except Exception as error:  # noqa: BLE001  # no driver, no permission, a foreign library
            self.status, self.reason = "unavailable", f"{type(error).__name__}: {error}"

    def read(self) -> dict[str, Any]:
        begun = time.perf_counter()
        try:
            sample = self.sampler.read()
        except Exception as error:  # noqa: BLE001  # the run goes on without this sampler
            self.status, self.reason = "unavailable", f"{type(error).__name__}: {error}"
            return {}
        self.count += 1
        self.cost_s += time.perf_counter() - begun
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


class Samples:
    """Samples every `period_ms` from start to stop; 0 switches sampling off."""

    def __init__(self, path: Path, period_ms: int, samplers: Sequence[Sampler]) -> None:
        self.path = path
        self.period = period_ms / 1000
        self.states = [_State(sampler) for sampler in samplers]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name="samples", daemon=True)
        self.pid = 0
        self.error = ""

    def start(self, pid: int) -> None:
        """Begin to sample the run of this process."""
        if self.period:
            self.pid = pid
            self.thread.start()

    def stop(self) -> tuple[Sampling, ...]:
        """End; the thread is over before anything is closed, as NVML demands."""
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join()
        for state in self.states:
            state.reason = state.reason or self.error
        return tuple(state.summary() for state in self.states)

    def _run(self) -> None:
        for state in self.states:
            state.start(self.pid)
        try:
            with self.path.open("w", encoding="utf-8", buffering=1) as file:
                self._loop(file)
        except OSError as error:
            self.error = f"samples could not be written: {error}"
        for state in self.states:
            if state.status == "on" or state.count:
                state.stop()

    def _loop(self, file: Any) -> None:  # noqa: ANN401  # an open text file
        tick = time.monotonic()
        while not self.ended.is_set():
            sample: dict[str, Any] = {"unix_ns": time.time_ns()}
            for state in self.states:
                if state.status == "on":
                    sample.update(state.read())
            file.write(json.dumps(sample, separators=(",", ":")) + "\n")
            tick = max(tick + self.period, time.monotonic())  # late: drop ticks, make no burst
            self.ended.wait(tick - time.monotonic())
