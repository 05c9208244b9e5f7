"""Times of a run's log that cannot be: a clock was changed under the process that wrote it."""

from collections.abc import Iterator

from tfdoctor.recording.manifest import Manifest
from tfdoctor.recording.notes import Notes
from tfdoctor.recording.run_log import RUN_LOG, RunLog

NS_PER_MS = 1e6

# Times may be so many times what they are a part of, and so much more: they are told when a sample is taken.
SLACK, SLACK_MS = 1.5, 5000.0


def possible(log: RunLog | None, manifest: Manifest | None, notes: Notes) -> RunLog | None:
    """Return a log, or None where it tells of more time than passed."""
    for told, passed in _parts(log, manifest) if log else ():
        if told > SLACK * passed + SLACK_MS:
            notes.damaged(
                f"{RUN_LOG} was left out: it tells of {told / 1e3:,.0f} s in {passed / 1e3:,.0f} s, "
                "so the clock of the process was changed"
            )
            return None
    return log


def _parts(log: RunLog, manifest: Manifest | None) -> Iterator[tuple[float, float]]:
    """Yield the ms that the log tells of, and those in which it was, as a whole and for each bucket."""
    times = manifest.times if manifest else None
    if times and times.ended_ns and times.pid == log.process.pid:  # no process that outlived tfdoctor
        last = max((bucket.end for bucket in log.buckets), default=0.0)
        yield last * 1e3, max(0.0, (times.ended_ns - times.started_ns) / NS_PER_MS)
    for bucket in log.buckets:
        yield sum(bucket.calls.values()), (bucket.end - bucket.start) * 1e3
