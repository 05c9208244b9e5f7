from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (awaited("Storage does"),)

OPENER = re.compile(r"(?:Legacy)?ParallelInterleave(?:V\d)?")  # The stages that read several files at a time
MOST_READS = 64  # Files at a time that were shown to help (tensorflow/models 7127)
LITTLE_MORE = 1.2  # Times as many reads at a time from which more of them are advised

LOCAL = Remedy("Copy the files to a local disk before the training, if they fit", CODE["local"])


class Limits(RuleLimits):
    share: float = share_limit(0.5)
    waiting: float = share_limit(0.5)
    threads: float = limit(1.2)


def check(  # noqa: PLR0911 - where the files lie, whether they are awaited, and why
    pipeline: InputPipeline, breakdown: Breakdown, files: SourceFiles | Unavailable, cores: Cores | Unavailable,
    counted: FileReads | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Look for reads across a network that limit the pipeline although several are under way."""
    if isinstance(files, Unavailable):
        return NotApplicable(reason=str(files))
    if not files.network and not files.local:
        return NotApplicable(reason="whether the files lie across a network is not known")
    if not files.network:
        return Healthy(summary="The files lie on a file system of this machine")
    # The time of all threads in reads of records, or of whole files, in ms per step.
    of_stages = [
        (one, one.work_ms if READERS.fullmatch(one.kind) else min(one.reading_ms, one.work_ms))
        for one in pipeline.limiting
    ]
    reads = [(stage, read_ms) for stage, read_ms in of_stages if read_ms]
    wall_ms, work_ms = sum(read / stage.concurrency for stage, read in reads), sum(read for _, read in reads)
    share = min(1.0, wall_ms / pipeline.work_ms) if pipeline.work_ms else 0.0
    threads = work_ms / wall_ms if wall_ms else 0.0
    summary = f"Reading from {files.network} takes {percent(share)} of the pipeline's slowest part"
    if share < limits.share:
        return Healthy(summary=summary)
    if threads <= limits.threads:
        why = "one file at a time, which does not show what the storage can deliver"
        return NotApplicable(reason=f"{summary}, {why}")
    if isinstance(cores, Unavailable):
        return NotApplicable(reason=f"{summary}, but {cores}")
    calls = sum(stage.reads or stage.calls for stage, _ in reads)
    at_once = breakdown.share(work_ms)  # over the whole step
    waiting = max(0.0, 1.0 - cores.busy / at_once) if at_once else 0.0
    mounted = counted if counted and counted.calls and counted.seconds and "://" not in files.network else None
    summary = f"{number(threads)} threads read from {files.network} at a time"
    most = min(MOST_READS, files.count or MOST_READS) / threads
    speedup = most if most >= LITTLE_MORE else inf  # inf: as many reads are under way as were shown to help
    openers = (one for one in pipeline.stages if OPENER.fullmatch(one.kind))
    opener = next((one for one in openers if any(feeds(read.path, one.path) for read, _ in reads)), None)
    at, records = (opener or reads[0][0]).at, any(READERS.fullmatch(stage.kind) for stage, _ in reads)
    code = CODE["interleave"] if records else CODE["map"]
    more = [Remedy("Read more files at a time", code, at)] if speedup < inf else []
    ahead = [Remedy("Read further ahead", CODE["buffer"], at)] if records else []
    rests = [(stage, 1.0 - read / stage.work_ms) for stage, read in reads]  # what a function does besides stays
    return judged(
        Measure.share("share of the pipeline's slowest part spent reading", share, limits.share),
        Measure("threads that read at a time", count(threads), count(MOST_READS)),
        Measure("time of all threads in reads, per step", ms(work_ms)),
        *((Measure("time per record or file", ms(work_ms / calls)),) if calls else ()),
        *((Measure("files", count(files.count)),) if files.count else ()),
        *(
            (Measure("bytes that the process read", bandwidth(mounted.nbytes / mounted.seconds)),)
            if mounted
            else ()
        ),
        *((Measure("mean size of a read", nbytes(mounted.nbytes / mounted.calls)),) if mounted else ()),
        Measure("cores that the run kept busy", count(cores.busy)),
        Measure.share("share of the threads in reads that wait", waiting, limits.waiting),
        healthy=f"{summary}, and cores are busy meanwhile",
        finding=f"{summary}, mostly wait for it, and limit the pipeline",
        wrong=waiting >= limits.waiting,
        remedies=(*more, *ahead, LOCAL),
        effects=(one.scaled(rest + (1.0 - rest) / speedup, Bound.AT_MOST) for one, rest in rests),
    )
