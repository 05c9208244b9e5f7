from tfdoctor.facts.run.program import FileList
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)
PRECONDITIONS = (pipeline_ran, awaited("Reading files does"))

READS = frozenset(("ReadFile",))  # What a function no longer does when it is given the content of the files
# Bytes of a file of records: TensorFlow's guide to TFRecord asks for at least 10 MB, ideally 100 MB or more.
LARGE = 100_000_000
NO_CALLS = "the files were not read by system calls, so their size is unknown"  # as those of ram://


class Limits(RuleLimits):
    files: float = limit(4.0)
    size: float = limit(100_000.0)


def check(
    pipeline: InputPipeline, properties: DatasetProperties | None, counted: FileReads | Unavailable,
    functions: MapFunctions | None, limits: Limits = Limits(),
) -> Verdict:  # fmt: skip
    """Look for functions that read a file for each example, in the segment that limits the pipeline."""
    stages = [stage for stage in pipeline.limiting if stage.reads]
    reads, reading = sum(stage.reads for stage in stages), sum(stage.reading_ms for stage in stages)
    measure = Measure("whole files read per step", count(reads), count(limits.files))
    if reads < limits.files:
        summary = f"The slowest part of the pipeline reads {number(reads)} whole files per step"
        return Healthy(summary=summary, evidence=(measure,))
    listed = [dataset.files for dataset in (properties.chain if properties else ()) if dataset.files]
    if len(listed) == 1:  # the list that the pipeline begins with; else what the process read
        files = listed[0]
    elif isinstance(counted, Unavailable) or not 0 < counted.files <= counted.calls:
        each = f"each step reads {number(reads)} files in {milliseconds(reading)}"
        why = counted if isinstance(counted, Unavailable) else NO_CALLS
        return NotApplicable(reason=f"{each}, but {why}")
    else:  # at most: what else the process read counts as well
        files = FileList(nbytes=round(counted.nbytes / counted.files))
    size = files.nbytes
    label = "mean size of a file" if files.count else "mean size of a file, at most"
    sized = (Measure(label, nbytes(size), nbytes(limits.size)),) if size else ()
    kind = "files of unknown size" if size is None else "files, which are not small"
    about = f"small files of {'about' if files.count else 'at most'} {quantity(nbytes(size or 0))}"
    opened = f"files from {files.scheme}://" if files.scheme else about
    known = files.count * size if files.count and size else 0
    shards = str(max(1, round(known / LARGE))) if known else "shards"
    code = CODE["records"].replace("SHARDS", shards)
    effects = []
    for stage in stages:  # without the reading: a record is read within a microsecond or two
        left = max(0.0, 1.0 - stage.reading_ms / stage.work_ms) if stage.work_ms else 1.0
        function = functions.by_dataset.get(stage.dataset.id) if functions and stage.dataset else None
        if function and function.batch and set(function.single) <= READS:  # it takes the records of a batch
            left = min(left, 1.0 / function.batch)
        effects.append(stage.scaled(left, Bound.AT_MOST))
    return judged(
        measure,
        Measure("reading time per step", ms(reading)),
        *sized,
        healthy=f"Each step reads {number(reads)} {kind}",
        finding=f"Each step opens {number(reads)} {opened}",
        wrong=bool(files.scheme) or (size is not None and size <= limits.size),
        remedies=[Remedy("Write the examples into a few large files", code, stages[0].at)],
        effects=effects,
    )
