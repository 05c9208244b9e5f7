from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.pipeline_stages import feeds
from tfdoctor.facts.input.source_files import SourceFiles

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
BY_HAND = "there is only one file to read: it has to be written again as several"

READER = re.compile(r"TFRecord(?:V\d)?|TextLine|FixedLengthRecord(?:V\d)?")
"""The stages that read records from files."""

OPENER = re.compile(r"FlatMap|Interleave")
"""The stages that open one file after the other, on their consumer's thread."""

PARALLEL_OPENER = ("ParallelInterleave", "LegacyParallelInterleave")
"""The stages that read several files at a time: if few threads are busy, they wait for a core or a disk."""

REMOTE_READS = 16
"""Simultaneous reads across a network: tf.data's number of threads before it tunes it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Which readers are serial and limit the pipeline."""

    threads: float = limit(
        1.2,
        "Average number of busy threads in a reader up to which it counts as serial; threads overlap a "
        "little when they hand over elements",
    )
    share: float = share_limit(
        0.2,
        "Smallest share of the pipeline's slowest segment that reading must take; below it, the other stages "
        "limit the pipeline",
    )


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    device: Device,
    cores: Cores | None,
    files: SourceFiles | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for readers on one thread in the segment that limits the pipeline."""
    readers = [stage for stage in pipeline.stages if READER.fullmatch(stage.kind)]
    if not readers and pipeline.why_idle and not breakdown.waits_for_input:
        return NotApplicable(reason=pipeline.why_idle)
    if not readers:
        return Healthy(summary=NO_READER)
    reader = max(readers, key=lambda stage: stage.work_ms)
    if not breakdown.waits_for_input:
        return Healthy(summary=f"{reader.kind} reads records, and {breakdown.little_wait}")
    slowest = pipeline.slowest
    share = slowest.stages.get(reader.path, 0.0) / slowest.ms if slowest and slowest.ms else 0.0
    if share < limits.share:
        return Healthy(summary=f"{reader.kind} reads records and does not limit the pipeline")
    openers = [stage for stage in pipeline.stages if feeds(reader.path, stage.path)]
    parallel = any(stage.kind.startswith(PARALLEL_OPENER) for stage in openers)
    if parallel or reader.concurrency > limits.threads:
        return Healthy(summary=f"{reader.kind} reads several files at a time")
    speedup = _speedup(device, cores, files)
    return _finding(pipeline, reader, files, share, speedup, limits)


NO_READER = "No stage of the pipeline read records from files during the traced steps"


def _speedup(device: Device, cores: Cores | None, files: SourceFiles | None) -> float:
    """Return the largest speedup of reading; inf if nothing is known to limit it."""
    bounds = [float(files.count)] if files and files.count and files.count > 1 else []
    if files and files.remote:
        bounds.append(float(REMOTE_READS))
    elif cores is not None:
        bounds.append(cores.for_stage(device.kind))
    return max(1.0, min(bounds, default=float("inf")))


def _finding(
    pipeline: InputPipeline,
    reader: StageTime,
    files: SourceFiles | None,
    share: float,
    speedup: float,
    limits: Limits,
) -> Finding:
    openers = _openers(pipeline, reader)
    source = f" from {files.network}" if files and files.network else ""
    label = "share of the pipeline's slowest segment spent reading"
    spreads = not (files and files.remote)
    spread = (reader, *openers[:-1])  # the outermost opener stays alone
    return Finding(
        summary=f"{reader.kind} reads one file at a time{source} and limits the pipeline",
        evidence=(
            Measure("reading time per step", ms(reader.work_ms)),
            Measure.share(label, share, limits.share),
            Measure("busy threads in the reader", count(reader.concurrency), count(limits.threads)),
            *((Measure("files", count(files.count)),) if files and files.count else ()),
        ),
        remedies=_remedies(openers, reader, files),
        effects=tuple(
            stage.scaled(1.0 / speedup, Bound.AT_MOST, spreads=spreads) for stage in spread if stage.work_ms
        ),
    )


def _openers(pipeline: InputPipeline, reader: StageTime) -> list[StageTime]:
    """Return the stages that open files one after the other for a reader, the nearest first."""
    openers = [
        stage for stage in pipeline.stages if feeds(reader.path, stage.path) and OPENER.fullmatch(stage.kind)
    ]
    return sorted(openers, key=lambda stage: -len(stage.path))


def _remedies(openers: list[StageTime], reader: StageTime, files: SourceFiles | None) -> tuple[Remedy, ...]:
    interleave = next((stage for stage in openers if stage.kind == "Interleave"), None)
    at = (interleave or reader).at
    single = files is not None and files.count == 1
    split = (Remedy("Split the file into about ten shards", CODE["shards"], at),) if single else ()
    if interleave is not None:
        edit_id = "" if single else "parallel-interleave"
        return (*split, Remedy("Read several files at a time", CODE["interleave"], at, edit_id))
    name = re.sub(r"V\d$", "", reader.kind)
    code = f"dataset = tf.data.{name}Dataset(files, num_parallel_reads=tf.data.AUTOTUNE)"
    return (*split, Remedy("Read several files at a time", code, at))
