"""Each example is stored in its own small file.

## What it checks

How many whole files (`tf.io.read_file`) the functions of the pipeline's slowest segment read per step, and how
long that takes, while the step waits for input. Whether local files are small is decided by the size of a few
of them, which is measured at the end of the run. Where the pipeline makes the names of the files itself, the
bytes that the process read during the traced steps, divided by the files, show how large a file is at most. For
files across a network (`gs://`, `s3://`), opening takes long at any size.

## Why it matters

Opening a file takes a directory lookup, a few system calls and, on a disk or across a network, a wait. For an
image of a few kilobytes, this takes longer than reading it, and it is repeated for every example of every epoch.

## How to fix

Write the examples once into TFRecord files, ten or more for each host that reads, each of at least 10 MB (better
100 MB), and read them with `interleave`. If all data fits into memory, `.cache()` after reading works as well.
If all that the function does with a file works on whole batches (`tf.io.decode_raw`, casts), batch the records
first: the function is then called once per batch.

## Holds for

TensorFlow 2.3 and later, any hardware. The saving is an upper bound, because reading records takes time too. Files
opened by Python code are covered by python-input. The bytes that a process reads are known on Linux.

## Sources

- [TFRecord and tf.train.Example](https://www.tensorflow.org/tutorials/load_data/tfrecord)
- [Better performance with the tf.data API: time to first byte](https://www.tensorflow.org/guide/data_performance#parallelizing_data_extraction)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import pipeline_ran
from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.dataset_properties import DatasetProperties
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.map_functions import MapFunctions
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.program import Dataset, FileList
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.small_files.read_sizes import ReadSizes
from tfdoctor.terms.humanize import milliseconds, number, quantity
from tfdoctor.terms.units import count, ms, nbytes
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Measure, NotApplicable, Remedy, Verdict

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
        return RECORDS.replace("SHARDS", "shards")
    return RECORDS.replace("SHARDS", str(max(1, round(files.count * files.nbytes / LARGE))))


LARGE = 100_000_000
"""Bytes of a file of records: TensorFlow's guide to TFRecord asks for at least 10 MB, ideally 100 MB or more."""

RECORDS = """\
# once: into files of about 100 MB
for n in range(SHARDS):
    with tf.io.TFRecordWriter(f"train-{n:02}.tfrecord") as writer:
        for path, label in examples[n::SHARDS]:
            feature = {
                "data": tf.train.Feature(bytes_list=tf.train.BytesList(value=[open(path, "rb").read()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())

# in training
files = tf.data.Dataset.list_files("train-*.tfrecord")
dataset = files.interleave(tf.data.TFRecordDataset, cycle_length=SHARDS,
                           num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
dataset = dataset.shuffle(10_000).map(parse, num_parallel_calls=tf.data.AUTOTUNE)"""


def example(
    *stages: StageTime,
    files: FileList | None = FileList(count=10_000, nbytes=3_000),
    wait: float = 30.0,
    sizes: ReadSizes | Unavailable = Unavailable("not recorded"),
    functions: MapFunctions | None = None,
) -> Verdict:
    """Each step opens 256 files of 3 kB, for 25 of the 40 ms that a batch takes."""
    reader = StageTime.of("Root::Prefetch::Map", 40.0, reading_ms=25.0, reads=256.0)
    return check(
        InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or (reader,))),
        Breakdown.of(input=wait, device=40.0 - wait),
        DatasetProperties((Dataset(id=0, kind="_TensorSliceDataset", files=files),)),
        sizes,
        functions,
    )


sick = example


def healthy() -> Verdict:
    """The same number of files of 4 MB each."""
    return example(files=FileList(count=10_000, nbytes=4_000_000))
