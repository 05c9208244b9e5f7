"""Sequences are padded far beyond their length.

## What it checks

The zeros at the ends of the sequences that the training is given: whole numbers of shape (batch, time) and
vectors of shape (batch, time, features). tfdoctor looks at the first batches of a loop, at the arrays given to
`fit`, or at the arrays that a dataset slices.

## Why it matters

The model computes padding like data, and masks discard the results. If the longest of all sequences sets the
length of every batch, short sequences are mostly padding; attention even takes the square of the length.

## How to fix

Put sequences of similar length into the same batch (bucketing), and pad each batch to its own longest. Or cut
off the few longest sequences. Bucketing changes the order of the data: shuffle before it. With `jit_compile=True`
and on a TPU give all buckets a few fixed lengths, because each new shape is compiled.

## Holds for

TensorFlow 2, sequences that are padded with zeros at the end, with values other than zero at the beginning and
hardly any zeros in between. The saving is an upper bound: buckets still contain some padding, and fixed costs
of a step stay. Batches that a dataset pads inside `fit` are not seen.

## Sources

- [tf.data.Dataset.bucket_by_sequence_length](https://www.tensorflow.org/api_docs/python/tf/data/Dataset)
- [Understanding masking and padding, Keras](https://keras.io/guides/understanding_masking_and_padding/)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.input.sequence_padding import PaddedInput, SequencePadding
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program, Shape
from tfdoctor.humanize import percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    Remedy,
    Severity,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much padding is reported, and what counts as work on sequences."""

    padding: float = limit(
        0.25,
        "Smallest share of padding that justifies bucketing: buckets of similar length contain some as well",
        most=1.0,
    )
    looped: float = limit(
        0.5,
        "Smallest number of calls per position of the sequence from which an operation belongs to a loop over "
        "time",
    )


LIMITS = Limits()


def check(
    padding: SequencePadding,
    operations: Operations,
    program: Program | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Scale the work on sequences by the share of their positions that is used."""
    worst = padding.inputs[0]
    wasted = 1.0 - worst.used
    measures = (
        Measure("padding as a share of the positions", ratio(wasted), ratio(limits.padding)),
        Measure("positions of each sequence with padding", count(worst.steps)),
        Measure("average positions of a sequence without padding", count(worst.used * worst.steps)),
    )
    summary = f"Padding is {percent(wasted)} of the sequences of {worst.steps} positions"
    if wasted < limits.padding:
        return Healthy(summary=summary, evidence=measures)
    effects = tuple(_effects(worst, operations, program, limits))
    return Finding(
        summary=summary,
        evidence=(*measures, _table(padding)),
        remedies=(Remedy(ACTION, BUCKETS, _line(program)),),
        effects=effects,
        severity=None if effects else Severity.NOTE,
    )


def _effects(
    worst: PaddedInput, operations: Operations, program: Program | None, limits: Limits
) -> Iterator[Effect]:
    """Shrink each operation with the length: once for each dimension of time, or in a loop over time."""
    batch = program.batch_size if program else None
    for row in operations.rows:
        times = _time_dimensions(row.operation, worst.steps, batch)
        times = times or int(row.calls >= limits.looped * worst.steps)
        if times and row.ms:
            scales = worst.used**times
            yield Effect(Stage.DEVICE, scales, row.name, ms(row.ms), bound=Bound.AT_MOST)


def _time_dimensions(operation: Operation | None, steps: int, batch: int | None) -> int:
    """Return how many dimensions of one tensor are as long as the sequences: two of attention's scores."""
    tensors = (*operation.inputs, *operation.outputs) if operation else ()
    return max((_of_tensor(shape, steps, batch) for _, shape in tensors if shape), default=0)


def _of_tensor(shape: Shape, steps: int, batch: int | None) -> int:
    flat = batch is not None and shape[0] == batch * steps
    return min(2, sum(size == steps for size in shape[1:]) + flat)


def _table(padding: SequencePadding) -> Table:
    rows = tuple(
        (f"input {number}", count(entry.steps), ratio(1.0 - entry.used),
         "unknown" if (trimmed := entry.trimmed) is None else ratio(1.0 - trimmed))
        for number, entry in enumerate(padding.inputs, 1)
    )  # fmt: skip
    columns = ("sequences", "positions", "padding", "padding beyond the longest of a batch")
    return Table(columns, rows)


def _line(program: Program | None) -> Location | None:
    """Return the line of the batch() that makes the batches, else of the first dataset."""
    feeding = program.feeding if program else ()
    batched = [data.at for data in feeding if "Batch" in data.kind and data.at]
    return next(iter(batched), None)


ACTION = "Batch sequences of similar length, padded to the longest of their batch"

BUCKETS = """\\
dataset = dataset.bucket_by_sequence_length(
    lambda tokens, label: tf.shape(tokens)[0],  # elements without padding
    bucket_boundaries=[32, 64, 128], bucket_batch_sizes=[32, 32, 32, 32])"""


def sick() -> Verdict:
    """Sequences of 50 words are padded to 200 for a matmul of 30 ms."""
    return _judged(50)


def healthy() -> Verdict:
    """Sequences of 190 words are padded to 200."""
    return _judged(190)


def _judged(length: int) -> Verdict:
    tensors = (("float32", (32, 200, 256)), ("float32", (256, 256)))
    graph = Operation(name="model/dense/MatMul", type="MatMul", inputs=tensors)
    row = OperationTime(name=graph.name, type="MatMul", ms=30.0, operation=graph)
    padding = SequencePadding((PaddedInput(200, ((length,) * 31 + (200,),)),))
    return check(padding, Operations((row,)), None)
