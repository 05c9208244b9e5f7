from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

# The stages that open one file after the other, on their consumer's thread.
OPENER = re.compile(r"FlatMap|Interleave")
# The stages that read several files at a time: if few threads are busy, they wait for a core or a disk.
PARALLEL_OPENER = ("ParallelInterleave", "LegacyParallelInterleave")
REMOTE_READS = 16  # Simultaneous reads across a network: tf.data's number of threads before it tunes it


class Limits(RuleLimits):
    threads: float = limit(1.2)
    share: float = share_limit(0.2)


def check(
    pipeline: InputPipeline, breakdown: Breakdown, device: Device, cores: Cores | None, files: SourceFiles | None,
    limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Look for readers on one thread in the segment that limits the pipeline."""
    readers = [stage for stage in pipeline.stages if READERS.fullmatch(stage.kind)]
    if not readers and pipeline.why_idle and not breakdown.waits_for_input:
        return NotApplicable(reason=pipeline.why_idle)
    if not readers:
        return Healthy(summary="No stage of the pipeline read records from files during the traced steps")
    reader, slowest = max(readers, key=lambda stage: stage.work_ms), pipeline.slowest
    if not breakdown.waits_for_input:
        return Healthy(summary=f"{reader.kind} reads records, and {breakdown.little_wait}")
    share = slowest.stages.get(reader.path, 0.0) / slowest.ms if slowest and slowest.ms else 0.0
    if share < limits.share:
        return Healthy(summary=f"{reader.kind} reads records and does not limit the pipeline")
    consumers = [stage for stage in pipeline.stages if feeds(reader.path, stage.path)]
    parallel = any(stage.kind.startswith(PARALLEL_OPENER) for stage in consumers)
    if parallel or reader.concurrency > limits.threads:
        return Healthy(summary=f"{reader.kind} reads several files at a time")
    openers = sorted((one for one in consumers if OPENER.fullmatch(one.kind)), key=lambda one: -len(one.path))
    number, remote = files.count if files else None, bool(files and files.network)
    by_threads = 1.0 / REMOTE_READS if remote else left_on_all_cores(device, cores)
    left = max(by_threads, 1.0 / number) if number and number > 1 else by_threads
    interleave = next((stage for stage in openers if stage.kind == "Interleave"), None)
    at, code = (interleave or reader).at, CODE["interleave"]
    if interleave is None:
        name = re.sub(r"V\d$", "", reader.kind)
        code = f"dataset = tf.data.{name}Dataset(files, num_parallel_reads=tf.data.AUTOTUNE)"
    edit_id = "parallel-interleave" if interleave and number != 1 else ""
    split = (Remedy("Split the file into about ten shards", CODE["shards"], at),) if number == 1 else ()
    source = f" from {files.network}" if files and files.network else ""
    return Finding(
        summary=f"{reader.kind} reads one file at a time{source} and limits the pipeline",
        evidence=(
            Measure("reading time per step", ms(reader.work_ms)),
            Measure.share("share of the pipeline's slowest segment spent reading", share, limits.share),
            Measure("busy threads in the reader", count(reader.concurrency), count(limits.threads)),
            *((Measure("files", count(number)),) if number else ()),
        ),
        remedies=(*split, Remedy("Read several files at a time", code, at, edit_id)),
        effects=tuple(
            stage.scaled(left, Bound.AT_MOST, spreads=not remote)
            for stage in (reader, *openers[:-1])  # the outermost opener stays alone
            if stage.work_ms
        ),
    )
