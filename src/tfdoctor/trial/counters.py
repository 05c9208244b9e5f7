"""The energy of a step of a trial's run, where counters measure it: of GPU boards by NVML, of CPUs by RAPL."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfdoctor.capture.sampler import Sampler, SamplingThread
from tfdoctor.capture.sampler.nvml import NvmlSampler
from tfdoctor.capture.sampler.rapl import RaplSampler
from tfdoctor.facts.savings.energy import LEAST_S, counters_of
from tfdoctor.recording.files import Notes, samples
from tfdoctor.terms.kinds import EnergySource
from tfdoctor.trial.times import TrialTimes

PERIOD_MS = 250  # Of the samplers' own ticks: each reads its counters at the first one after a second

MS_PER_S = 1000.0


class EnergyCounters:
    """Reads the counters once a second while a run goes on, in threads of tfdoctor's own process."""

    def __init__(self, path: Path, samplers: Sequence[Sampler] = ()) -> None:
        self.path = path
        self.thread = SamplingThread(path, PERIOD_MS, samplers or [NvmlSampler(), RaplSampler()])
        self.behind_s = (time.time_ns() - time.perf_counter_ns()) / 1e9

    def start(self, pid: int) -> None:
        """Begin to read; the environment of this process says which boards it may use."""
        self.thread.start(pid)

    def stop(self) -> None:
        """Read no more, and release the devices."""
        self.thread.stop()

    def per_update(self, times: TrialTimes) -> Mapping[EnergySource, float]:
        """Return the joules of an update of the weights by source; of a source that counts too little, nothing.

        The steps' times are those of the system's monotonic clock, as `time.perf_counter` reads it on Linux.
        """
        begin, end = (at / MS_PER_S + self.behind_s for at in times.loop.steady_span_ms())
        found: dict[EnergySource, list[float | None]] = defaultdict(list)
        for counter in counters_of(samples(self.path, Notes())):
            joules, seconds = counter.within([(begin, end)]) if counter.counts else (0.0, 0.0)
            enough = seconds >= LEAST_S
            found[counter.source].append(joules / seconds * (end - begin) if enough else None)
        updates = times.steps * float(times.per)
        whole = {
            source: sum(one for one in each if one is not None)
            for source, each in found.items()
            if None not in each
        }
        return {source: joules / updates for source, joules in whole.items()}
