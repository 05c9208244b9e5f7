from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.pipeline_stages import feeds
from tfdoctor.facts.input.source_files import SourceFiles
from tfdoctor.rules.slow_storage.read_rate import ReadRate
from tfdoctor.terms.units import bandwidth

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.2.0"
BY_HAND = "what the storage can deliver, and whether the order of files matters, is not in the file"

READER = re.compile(r"TFRecord(?:V\d)?|TextLine|FixedLengthRecord(?:V\d)?")
"""The stages that read records from files."""

OPENER = re.compile(r"(?:Legacy)?ParallelInterleave(?:V\d)?")
"""The stages that read several files at a time."""

MOST_READS = 64
"""Files at a time that were shown to help (tensorflow/models 7127)."""

LITTLE_MORE = 1.2
"""Times as many reads at a time from which more of them are advised."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When the storage is what limits the pipeline."""

    share: float = share_limit(0.5, "Smallest share of the pipeline's slowest segment that reading must take")
    waiting: float = share_limit(
        0.5, "Smallest share of the threads in reads for which no core was busy; the others may compute"
    )
    threads: float = limit(1.2, "Average number of threads in reads up to which files are read one at a time")


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    files: SourceFiles | Unavailable,
    cores: Cores | Unavailable,
    rate: ReadRate | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for reads across a network that limit the pipeline although several are under way."""
    if not breakdown.waits_for_input:
        return Healthy(summary=f"Storage does not slow training: {breakdown.little_wait}")
    if isinstance(files, Unavailable) or not files.remote:
        return _not_remote(files)
    reads = Reads.of(pipeline, breakdown)
    summary = f"Reading from {files.network} takes {percent(reads.share)} of the pipeline's slowest part"
    if reads.share < limits.share:
        return Healthy(summary=summary)
    if reads.threads <= limits.threads:
        why = "one file at a time, which does not show what the storage can deliver"
        return NotApplicable(reason=f"{summary}, {why}")
    if isinstance(cores, Unavailable):
        return NotApplicable(reason=f"{summary}, but {cores}")
    return _judged(reads, files, cores, rate, limits)


def _judged(reads: "Reads", files: SourceFiles, cores: Cores, rate: ReadRate | None, limits: Limits) -> Verdict:
    """Compare the threads in reads with the cores that are busy."""
    waiting = max(0.0, 1.0 - cores.busy / reads.at_once) if reads.at_once else 0.0
    evidence = (
        *_evidence(reads, files, rate, limits),
        Measure("cores that the run kept busy", count(cores.busy)),
        Measure.share("share of the threads in reads that wait", waiting, limits.waiting),
    )
    summary = f"{number(reads.threads)} threads read from {files.network} at a time"
    if waiting < limits.waiting:
        return Healthy(summary=f"{summary}, and cores are busy meanwhile", evidence=evidence)
    return Finding(
        summary=f"{summary}, mostly wait for it, and limit the pipeline",
        evidence=evidence,
        remedies=_remedies(reads, files),
        effects=reads.effects(_speedup(reads, files)),
    )


def _not_remote(files: SourceFiles | Unavailable) -> Verdict:
    if isinstance(files, Unavailable):
        return NotApplicable(reason=str(files))
    if files.local:
        return Healthy(summary="The files lie on a file system of this machine")
    return NotApplicable(reason="whether the files lie across a network is not known")


@dataclass(frozen=True, slots=True)
class Reads:
    """The stages of the slowest segment that read files, and how many threads are in them."""

    stages: tuple[StageTime, ...]
    share: float  # of the slowest segment
    threads: float  # in reads, while any thread is
    at_once: float  # in reads, over the whole step
    opener: StageTime | None = None

    @classmethod
    def of(cls, pipeline: InputPipeline, breakdown: Breakdown) -> "Reads":
        """Add up the readers of records, and the functions that read whole files."""
        slowest = pipeline.slowest
        stages = tuple(one for one in pipeline.limiting if _reading_ms(one))
        wall = sum(_reading_ms(one) / one.concurrency for one in stages)
        work = sum(map(_reading_ms, stages))
        total = slowest.ms if slowest else 0.0
        openers = (one for one in pipeline.stages if OPENER.fullmatch(one.kind))
        return cls(
            stages=stages,
            share=min(1.0, wall / total) if total else 0.0,
            threads=work / wall if wall else 0.0,
            at_once=work / breakdown.step_ms if breakdown.step_ms else 0.0,
            opener=next((one for one in openers if any(feeds(s.path, one.path) for s in stages)), None),
        )

    @property
    def ms(self) -> float:
        """The time of all threads in reads, in ms per step."""
        return sum(map(_reading_ms, self.stages))

    @property
    def calls(self) -> float:
        """Records and files that are read per step."""
        return sum(stage.reads or stage.calls for stage in self.stages)

    @property
    def at(self) -> Location | None:
        """The line that reads."""
        return (self.opener or self.stages[0]).at

    def effects(self, speedup: float) -> tuple[Effect, ...]:
        """Return what fewer waits do to the stages; what a function does besides reading stays."""
        left = ((one, 1.0 - _reading_ms(one) / one.work_ms) for one in self.stages)
        return tuple(one.scaled(rest + (1.0 - rest) / speedup, Bound.AT_MOST) for one, rest in left)


def _reading_ms(stage: StageTime) -> float:
    """Return the time of all threads in a stage's reads, in ms per step."""
    return stage.work_ms if READER.fullmatch(stage.kind) else min(stage.reading_ms, stage.work_ms)


def _speedup(reads: Reads, files: SourceFiles) -> float:
    """Return how many times as many reads may be under way; inf where there are as many as were shown to help."""
    most = min(MOST_READS, files.count or MOST_READS) / reads.threads
    return most if most >= LITTLE_MORE else float("inf")


def _evidence(reads: Reads, files: SourceFiles, rate: ReadRate | None, limits: Limits) -> tuple[Measure, ...]:
    mounted = rate if "://" not in files.network else None
    share = "share of the pipeline's slowest part spent reading"
    return (
        Measure.share(share, reads.share, limits.share),
        Measure("threads that read at a time", count(reads.threads), count(MOST_READS)),
        Measure("time of all threads in reads, per step", ms(reads.ms)),
        *((Measure("time per record or file", ms(reads.ms / reads.calls)),) if reads.calls else ()),
        *((Measure("files", count(files.count)),) if files.count else ()),
        *((Measure("bytes that the process read", bandwidth(mounted.bytes_per_s)),) if mounted else ()),
        *((Measure("mean size of a read", nbytes(mounted.bytes_per_call)),) if mounted else ()),
    )  # fmt: skip


def _remedies(reads: Reads, files: SourceFiles) -> tuple[Remedy, ...]:
    """Return more reads at a time where that is possible, larger ones for records, and a copy nearby."""
    records = any(READER.fullmatch(stage.kind) for stage in reads.stages)
    more = _speedup(reads, files) < float("inf")
    if records:
        first = (Remedy("Read more files at a time", CODE["interleave"], reads.at),) if more else ()
        return (*first, Remedy("Read further ahead", BUFFER, reads.at), LOCAL)
    first = (Remedy("Read more files at a time", MAP, reads.at),) if more else ()
    return (*first, LOCAL)


MAP = """\
dataset = dataset.map(read, num_parallel_calls=64, deterministic=False)  # more than cores: they wait"""

BUFFER = """\
dataset = tf.data.TFRecordDataset(path, buffer_size=16 << 20)  # bytes per request; default 256 kB"""

LOCAL = Remedy(
    "Copy the files to a local disk before the training, if they fit",
    "# in the shell: gcloud storage cp -r gs://bucket/train /local/train  # or rsync, aws s3 sync",
)
