"""The place or the size of a shuffle mixes the examples less than it seems.

## What it checks

Three certain cases, in a pipeline that the script itself builds from one source: a `shuffle` behind the
`batch` that makes the training batches, a `repeat` before the only `shuffle`, and a `shuffle` whose buffer holds
less than a hundredth of the examples. The usual order (shuffle, then batch or repeat) is not reported.

## Why it matters

Not the time, but what the model sees. Behind `batch`, whole batches change places, and the same examples meet
in every epoch. Behind `repeat`, the epochs run into each other: some examples come twice before others come
once. Through a small buffer an example moves by about the buffer's size: data that lie sorted, by class or by
date, stay nearly sorted.

## How to fix

Each is a trade. `shuffle` before `batch` holds examples instead of batches, so give it more of them.
`shuffle` before `repeat` ends each epoch cleanly, but fills its buffer anew in each; keep `repeat` first where
that pause costs more than the mixed epochs. A larger buffer takes memory: shuffle indices or file names instead,
or mix the data once when you write them. Where they are in random order already, a small buffer loses
nothing.

## Holds for

All versions of TensorFlow 2, in recordings of `tfdoctor profile`. Pipelines of several sources or files
(`interleave`), those that a library builds, and those with another `shuffle` before are not judged.

## Sources

- [tf.data.Dataset.shuffle](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#shuffle)
- [tf.data: Build TensorFlow input pipelines, randomly shuffling input data](https://www.tensorflow.org/guide/data#randomly_shuffling_input_data)
"""

from dataclasses import dataclass

from tfdoctor.facts.input.dataset_properties import DatasetProperties, kind_of
from tfdoctor.facts.run.program import Dataset, DatasetParameters
from tfdoctor.humanize import number, percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, nbytes, ratio
from tfdoctor.verdict import (
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Severity,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"

BATCHES = frozenset(("Batch", "ParallelBatch", "PaddedBatch"))

PASSING = frozenset(
    ("Map", "ParallelMap", "Prefetch", "Options", "Cache", "Take", "Skip", "Shard", "Filter")
)
"""Kinds that leave the order and the grouping of elements as they are."""

SOURCES = frozenset(("TensorSlice", "Range", "TFRecord", "TextLine", "FixedLengthRecord"))
"""Kinds that yield their elements one after the other, in the order in which they lie."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.01,
        "of the examples that a shuffle's buffer holds: with less, an example moves by less than a "
        "hundredth of the epoch; guides use 1024 of 60,000",
        most=1.0,
    )


LIMITS = Limits()


def check(properties: DatasetProperties, limits: Limits = LIMITS) -> Verdict:
    """Look at the pipeline's only shuffle, where the script itself built a pipeline of one source."""
    line = properties.line()
    shuffles = [at for at, one in enumerate(line) if kind_of(one) == "Shuffle"]
    if not shuffles:
        return Healthy(
            summary="No shuffle of tf.data stands between the training loop and its source"
        )
    if len(shuffles) > 1 or not _plain(line):
        return NotApplicable(
            reason="the pipeline has several shuffles or sources, or a library built it: how well it mixes "
            "does not follow from the order of its stages"
        )
    found = _behind_batch(properties, line, shuffles[0]) or _behind_repeat(
        properties, line, shuffles[0]
    )
    return found or _size(properties, line[shuffles[0]], limits)


def _plain(line: tuple[Dataset, ...]) -> bool:
    """Whether a pipeline is of kinds that are understood, and its functions are the script's own."""
    *stages, source = line
    known = PASSING | BATCHES | {"Shuffle", "Repeat"}
    ours = all(one.function_at for one in stages if one.function)
    return ours and kind_of(source) in SOURCES and all(kind_of(one) in known for one in stages)


def _name(shuffle: Dataset) -> str:
    return f"shuffle({shuffle.parameters.buffer_size or ''})"


def _next(line: tuple[Dataset, ...], at: int, kinds: frozenset[str]) -> Dataset | None:
    """Return the nearest stage upstream of one of these kinds, beyond stages that pass elements on."""
    for one in line[at + 1 :]:
        if kind_of(one) in kinds:
            return one
        if kind_of(one) not in PASSING:
            return None
    return None


def _behind_batch(
    properties: DatasetProperties, line: tuple[Dataset, ...], at: int
) -> Finding | None:
    """Find training batches that change places as a whole; a batch of batches is made of sequences."""
    batch = _next(line, at, BATCHES)
    again = any(kind_of(one) in BATCHES for one in line[:at])
    size = (batch.parameters.batch_size or 1) if batch else 1
    if batch is None or again or size == 1:
        return None
    repeated = any(kind_of(one) == "Repeat" for one in properties.upstream(batch))
    meet = "" if repeated else f", and the same {size} examples meet in every epoch"
    return _finding(
        line[at],
        f"{_name(line[at])} comes after batch({size}): whole batches change places{meet}",
        (Measure("examples in each batch that moves as a whole", count(size)),),
        Remedy(
            "Shuffle before batch, with a buffer of at least as many examples as now",
            f"dataset = dataset.shuffle({_examples(properties, line, at, size)}).batch({size})",
            line[at].at,
        ),
    )


def _examples(properties: DatasetProperties, line: tuple[Dataset, ...], at: int, size: int) -> int:
    """Return how many examples a buffer of batches holds; no more than there are."""
    held = (line[at].parameters.buffer_size or 1) * size
    source = properties.elements(line[-1])
    return min(held, source) if source else held


def _behind_repeat(
    properties: DatasetProperties, line: tuple[Dataset, ...], at: int
) -> Finding | None:
    """Find epochs that run into each other; a run of one pass has no second one."""
    repeat = _next(line, at, frozenset(("Repeat",)))
    times = repeat.parameters.count if repeat else None
    once = properties.passes is not None and properties.passes <= 1.0
    if repeat is None or times in {0, 1} or once:
        return None
    return _finding(
        line[at],
        f"{_name(line[at])} comes after repeat(): the epochs run into each other, and some examples come "
        "twice before others come once",
        (_lines(line[at], repeat),),
        Remedy(
            "Shuffle before repeat, if each epoch should hold every example once; it then fills its buffer anew "
            "in each",
            f"dataset = dataset.{_name(line[at])}.repeat({_times(times)})",
            line[at].at,
        ),
    )


def _times(times: int | None) -> str:
    return str(times) if times is not None and times > 0 else ""


def _lines(shuffle: Dataset, repeat: Dataset) -> Table:
    rows = (("repeat", repeat.at or "unknown"), (_name(shuffle), shuffle.at or "unknown"))
    return Table(("stage, in the order in which it runs", "your line"), rows)


def _size(properties: DatasetProperties, shuffle: Dataset, limits: Limits) -> Verdict:
    """Compare the buffer with the examples of one epoch."""
    held, there = shuffle.parameters.buffer_size, properties.elements(shuffle)
    if held is None or held < 1 or not there:
        said = "how many examples there are is not known"
        return Healthy(summary=f"{_name(shuffle)} comes before batch and repeat; {said}")
    share = min(1.0, held / there)
    measures = (
        Measure("of the examples in the shuffle's buffer", ratio(share), ratio(limits.share)),
    )
    if share >= limits.share:
        summary = f"{_name(shuffle)} mixes {percent(share)} of the {there:,} examples at a time"
        return Healthy(summary=summary, evidence=measures)
    each = properties.element_bytes(shuffle)
    memory = (Measure("a buffer for all of them, at most", nbytes(each * there)),) if each else ()
    return _finding(
        shuffle,
        f"{_name(shuffle)} mixes {number(held)} of {there:,} examples at a time: if they lie sorted, "
        "they stay nearly sorted",
        (*measures, *memory),
        Remedy(
            "If the data are not in random order, shuffle their indices (or file names), or mix them once on disk",
            INDICES,
            shuffle.at,
        ),
    )


INDICES = """\
order = tf.data.Dataset.range(len(features)).shuffle(len(features))  # eight bytes for each example
dataset = order.map(lambda at: (tf.gather(features, at), tf.gather(labels, at)),
                    num_parallel_calls=tf.data.AUTOTUNE)"""


def _finding(
    shuffle: Dataset, summary: str, evidence: tuple[Evidence, ...], remedy: Remedy
) -> Finding:
    where = Table(("shuffle", "your line"), ((_name(shuffle), shuffle.at or "unknown"),))
    proof = evidence if any(isinstance(one, Table) for one in evidence) else (*evidence, where)
    return Finding(summary=summary, evidence=proof, remedies=(remedy,), severity=Severity.NOTE)


def sick() -> Verdict:
    """Batches of 32 that are shuffled as a whole."""
    return _example("Batch", "Shuffle")


def healthy() -> Verdict:
    """Examples that are shuffled, then put into batches."""
    return _example("Shuffle", "Batch")


def _example(*kinds: str) -> Verdict:
    parameters = {
        "Shuffle": DatasetParameters(buffer_size=1000),
        "Batch": DatasetParameters(batch_size=32),
    }
    chain = [Dataset(id=0, kind="_TensorSliceDataset", cardinality=5000)]
    chain += [
        Dataset(
            id=at,
            kind=f"_{kind}Dataset",
            inputs=(at - 1,),
            parameters=parameters[kind],
            cardinality=5000,
            at=Location("train.py", 20 + at),
        )
        for at, kind in enumerate(kinds, start=1)
    ]
    return check(DatasetProperties(tuple(reversed(chain))))
