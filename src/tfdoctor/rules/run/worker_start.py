from tfdoctor.facts.phases.worker_times import WorkerTimes
from tfdoctor.families.kit import *
from tfdoctor.terms import text

__doc__, CODE = page(__file__)
PRECONDITIONS = (whole_run,)

FEWEST = 3  # Times that workers are started from which on a loop starts them
# Packages whose functions start workers, or wait for what these do.
STARTING = frozenset({"multiprocessing", "concurrent", "joblib", "loky"})


Limits = CallLimits


def check(phases: RunPhases, workers: WorkerTimes | None, limits: Limits = Limits()) -> Verdict:
    """Find worker processes that are started again and again, and what starting them takes each time."""
    waits = [line for line in phases.lines if line.calls.partition(".")[0] in STARTING and line.at]
    if workers is None and waits:
        return NotApplicable(reason="what worker processes do was not recorded")
    if workers is None:
        return Healthy(summary="The run has no worker processes of multiprocessing or joblib", concern=Concern.RUN)
    least_ms = max(limits.least_ms, limits.share * phases.total_ms)
    waits_ms = sum(line.ms for line in waits)
    taken_ms = min(workers.starts_ms, waits_ms) if workers.pools >= FEWEST else 0.0
    saved_ms = taken_ms * (1.0 - 1.0 / workers.pools)
    number_of = text.capitalized(counted(workers.number, "worker process", "worker processes"))
    pools = f"{counted(workers.pools, 'pool')}{' one after the other' if workers.pools > 1 else ''}"
    summary = f"{number_of}, started in {pools}, take {duration(workers.starts_ms)} to start and to import"
    measures = (
        Measure("pools, one after the other", count(workers.pools), count(FEWEST)),
        Measure("time in which workers start or import", ms(workers.starts_ms)),
        Measure("time in lines that start workers or wait for them", ms(waits_ms)),
        Measure("time that starting them once spares", ms(saved_ms), ms(least_ms)),
    )
    if saved_ms < least_ms:
        return Healthy(summary=summary, evidence=measures, concern=Concern.RUN)
    first = waits[0]
    imports = Table.of(
        workers.imports,
        ("your line", lambda line: line.at or ""),
        ("imports", lambda line: line.calls),
        ("time in all workers", lambda line: ms(line.ms)),
        most=SHOWN_ROWS,
    )
    place = RunPlace(
        at=first.at, phase=first.phase, ms=taken_ms, left=1.0 / workers.pools, recurs=Recurrence.PER_CALL,
        times=workers.pools, says=f"{summary}; {{at}} waits for {{share}} of the run",
    )  # fmt: skip
    own = LineGroup(tuple(line for line in waits if line.phase is first.phase))
    tables = (*((imports,) if imports.rows else ()), *line_table([own], phases.total_ms))
    remedy = Remedy("Start the workers once, before the loop, and use them for all of it", CODE["once"], first.at)
    return SlowPlaces.of(phases, [place], least_ms).finding(measures, tables, [remedy])
