from tfdoctor.diagnosis.kit import *
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.map_functions import MapFunctions
from tfdoctor.facts.run.program import FileList
from tfdoctor.rules.small_files.read_sizes import ReadSizes
from tfdoctor.terms.humanize import quantity

__doc__, CODE = page(__file__)

TOPIC = Topic.INPUT
SINCE = "0.1.0"
PRECONDITIONS = (pipeline_ran,)
BY_HAND = "the data set has to be written again, once, into larger files"


@dataclass(frozen=True, slots=True)
class Limits:
    """How many files are many, and which are small."""

    files: float = limit(
        4.0,
        "Smallest number of whole files read per step that counts as many; shards are opened far less than "
        "once per step",
    )
    size: float = limit(
        100_000.0,
        "Size in bytes up to which a local file counts as small; reading more, at 1 GB/s, takes longer than "
        "opening the file (10 to 100 microseconds)",
    )


def check(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    properties: DatasetProperties | None,
    sizes: ReadSizes | Unavailable,
    functions: MapFunctions | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Look for functions that read a file for each example, in the segment that limits the pipeline."""
    if not breakdown.waits_for_input:
        return Healthy(summary=f"Reading files does not slow training: {breakdown.little_wait}")
    stages = [stage for stage in pipeline.limiting if stage.reads]
    reads = sum(stage.reads for stage in stages)
    measure = Measure("whole files read per step", count(reads), count(limits.files))
    if reads < limits.files:
        summary = f"The slowest part of the pipeline reads {number(reads)} whole files per step"
        return Healthy(summary=summary, evidence=(measure,))
    datasets = properties.chain if properties else ()
    listed = [dataset.files for dataset in datasets if dataset.files]
    if len(listed) == 1:  # the list that the pipeline begins with; else what the process read
        return _judged(stages, measure, listed[0], functions, limits)
    if isinstance(sizes, Unavailable):
        reading = milliseconds(sum(stage.reading_ms for stage in stages))
        return NotApplicable(reason=f"each step reads {number(reads)} files in {reading}, but {sizes}")
    read = FileList(nbytes=round(sizes.most))
    return _judged(stages, measure, read, functions, limits)


def _judged(
    stages: list[StageTime], reads: Measure, files: FileList, functions: MapFunctions | None, limits: Limits
) -> Verdict:
    """Tell small files and files across a network from large local ones."""
    size, scheme = files.nbytes, files.scheme
    reading = ms(sum(stage.reading_ms for stage in stages))
    label = "mean size of a file" if files.count else "mean size of a file, at most"
    sized = (Measure(label, nbytes(size), nbytes(limits.size)),) if size else ()
    evidence = (reads, Measure("reading time per step", reading), *sized)
    amount = number(reads.value.value)
    if scheme:
        return _finding(f"Each step opens {amount} files from {scheme}://", stages, evidence, functions, files)
    if size is None or size > limits.size:
        kind = "files of unknown size" if size is None else "files, which are not small"
        return Healthy(summary=f"Each step reads {amount} {kind}", evidence=evidence)
    about = f" of {'about' if files.count else 'at most'} {quantity(nbytes(size))}"
    return _finding(f"Each step opens {amount} small files{about}", stages, evidence, functions, files)


def _finding(
    summary: str,
    stages: list[StageTime],
    evidence: tuple[Measure, ...],
    functions: MapFunctions | None,
    files: FileList,
) -> Finding:
    """Return the finding: without the reading time, as a record is read within a microsecond or two.

    The rest of a function stays, unless it can take the records of a whole batch at once.
    """
    effects = []
    for stage in stages:
        left = max(0.0, 1.0 - stage.reading_ms / stage.work_ms) if stage.work_ms else 1.0
        known = functions.by_dataset if functions else {}
        function = known.get(stage.dataset.id) if stage.dataset else None
        if function and function.batch and set(function.single) <= READS:
            left = min(left, 1.0 / function.batch)
        effects.append(stage.scaled(left, Bound.AT_MOST))
    return Finding(
        summary=summary,
        evidence=evidence,
        remedies=(Remedy("Write the examples into a few large files", _records(files), stages[0].at),),
        effects=tuple(effects),
    )


READS = frozenset(("ReadFile",))
"""What a function no longer does when it is given the content of the files."""


def _records(files: FileList) -> str:
    """Return the code for as many files of `LARGE` as the recorded ones fill; for a name, where that is unknown."""
    if not files.count or not files.nbytes:
        return CODE["records"].replace("SHARDS", "shards")
    return CODE["records"].replace("SHARDS", str(max(1, round(files.count * files.nbytes / LARGE))))


LARGE = 100_000_000
"""Bytes of a file of records: TensorFlow's guide to TFRecord asks for at least 10 MB, ideally 100 MB or more."""
