"""When the run began and ended, on the clock of its log."""

from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.chart import Unavailable
from tfdoctor.recording import Recording
from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.run_log import RunLog

NS = 1_000_000_000
MS = 1000.0  # Nanoseconds and milliseconds in a second


@dataclass(frozen=True, slots=True)
class RunClock:
    """Begin and end in s since the process began; the command began a little earlier, so ``begin`` is negative.

    ``finished`` says that the process told its end.
    """

    begin: float
    end: float
    finished: bool

    @classmethod
    def of(cls, log: RunLog, manifest: Manifest | None) -> Self:
        """Take the launcher's times where it started this process itself, else those of the process alone."""
        told = max(log.process.began, log.end.end if log.end else 0.0)
        last = max(told, max((bucket.end for bucket in log.buckets), default=told))
        times, zero = manifest.times if manifest else None, log.process.started_monotonic_ns
        begin = end = 0.0
        if times and zero and times.started_ns and times.pid == log.process.pid:
            begin = min(0.0, (times.started_ns - zero) / NS)
            end = 0.0 if times.ended_ns is None else (times.ended_ns - zero) / NS
        return cls(begin, max(last, end), log.end is not None)


def whole_run(recording: Recording) -> RunLog:
    """Return the log of the run.

    Raises:
        Unavailable: it was not recorded.
    """
    if recording.run is None:
        raise Unavailable("the run as a whole was not recorded")
    return recording.run
