"""What worker processes did, all together: those of pools and the like, which do a part of the script's work."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.program import Places
from tfdoctor.recording.worker_log import WorkerTime
from tfdoctor.terms.run_time import PhaseLine, WorkersTime

ENOUGH = 5  # Samples of a line from which on it is named, as in the phases of the run
NS_PER_MS, LAST_NS = 1e6, 9e18  # of 64 bits
MOST_LINES = 8  # The largest: what the others take together is small


class WorkerTimes(WorkersTime, kw_only=True):
    """The times of all workers, added up."""

    @classmethod
    def measure(cls, recording: Recording) -> Self:
        """Add them up.

        Raises:
            Unavailable: there were none, or none was recorded.
        """
        workers, place = recording.parts, Places.of(recording)
        if not workers:
            raise Unavailable("no worker process was recorded")
        told = by_key(((line.time, line.at, line.calls), line) for one in workers for line in one.lines)
        lines = defaultdict[WorkerTime, list[PhaseLine]](list)
        for (time, at, calls), own in told.items():
            samples, taken = sum(line.samples for line in own), sum(line.ms for line in own)
            if samples >= ENOUGH:
                lines[time].append(PhaseLine(at=place(at), ms=taken, calls=calls, samples=samples))
        largest = {time: tuple(sorted(own, key=lambda line: -line.ms)[:MOST_LINES]) for time, own in lines.items()}
        lives, starts = (
            Intervals.union(
                (start, round(min(start + ms * NS_PER_MS, LAST_NS)))
                for start, ms in of  # of a damaged record too
            )
            for of in (
                [(one.started_unix_ns, one.ms) for one in workers],
                [(one.started_unix_ns, one.importing_ms) for one in workers],
            )
        )
        return cls(
            number=len(workers),
            pools=max(1, len(lives)),
            starts_ms=starts.total / NS_PER_MS,
            starts=tuple(sorted({one.how for one in workers if one.how})),
            ms=sum(one.ms for one in workers),
            importing_ms=sum(one.importing_ms for one in workers),
            waiting_ms=sum(one.waiting_ms for one in workers),
            working_ms=sum(one.working_ms for one in workers),
            most_working_ms=max(one.working_ms for one in workers),
            lines=largest.get(WorkerTime.WORKING, ()),
            imports=largest.get(WorkerTime.IMPORTING, ()),
        )
