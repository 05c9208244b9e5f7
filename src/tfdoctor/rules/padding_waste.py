"""Sequences are padded far beyond their length.

## What it checks

The zeros at the ends, or of whole numbers also at the beginnings, of the sequences that the training is given:
whole numbers of shape (batch, time) and vectors of shape (batch, time, features). tfdoctor looks at the first
batches of `fit` or of a loop in Python, at the arrays given to `fit`, or at the arrays that a dataset slices.

## Why it matters

The model computes padding like data, and masks discard the results. If the longest of all sequences sets the
length of every batch, short sequences are mostly padding; attention even takes the square of the length.

## How to fix

Put sequences of similar length into the same batch (bucketing), and pad each batch to its own longest. Or cut
off the few longest sequences. Bucketing changes the order of the data: shuffle before it. With `jit_compile=True`
and on a TPU give all buckets a few fixed lengths, because each new shape is compiled.

## Holds for

TensorFlow 2, sequences that are padded with zeros at one end, with values other than zero at the other and
hardly any zeros in between. Batches that differ in length and are each about as long as their longest sequence are
healthy: whether the rest is worth buckets depends on how random the batches have to be.

The saving is an upper bound. It is the share of padding of the time of the operations with a tensor or a loop as
long as the sequences; of attention's scores, the share by both dimensions; of the host, only its part that starts
the operations of a loop over time. Buckets still contain some padding, and fixed costs of these operations stay.
Operations whose lengths are unknown count in proportion, and the finding shows their time. The time of the input
and between steps is not counted. In `fit`, batches are seen where `steps_per_execution` is 1 and no strategy
distributes the dataset; in loops inside a `tf.function` they are not.

## Sources

- [tf.data.Dataset.bucket_by_sequence_length](https://www.tensorflow.org/api_docs/python/tf/data/Dataset)
- [Understanding masking and padding, Keras](https://keras.io/guides/understanding_masking_and_padding/)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.facts.input.sequence_padding import PaddedInput, SequencePadding
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.facts.savings.length_work import LengthWork
from tfdoctor.facts.step_time.breakdown import Breakdown
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
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much padding is reported."""

    padding: float = limit(
        0.25,
        "Smallest share of padding that justifies bucketing: buckets of similar length contain some as well",
        most=1.0,
    )


LIMITS = Limits()


def check(
    padding: SequencePadding,
    work: LengthWork,
    breakdown: Breakdown,
    program: Program | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Scale the work on sequences by the share of their positions that is used."""
    worst = padding.inputs[0]
    wasted = 1.0 - worst.used
    measures = (
        Measure("padding as a share of the positions", ratio(wasted), ratio(limits.padding)),
        Measure("positions of the longest sequences with padding", count(worst.steps)),
    )
    if worst.fits_batches:
        return Healthy(summary=f"{FITTING}: {percent(wasted)} of it is padding", evidence=measures)
    summary = f"Padding is {percent(wasted)} of the sequences of {worst.steps} positions"
    if wasted < limits.padding:
        return Healthy(summary=summary, evidence=measures)
    effects = tuple(_effects(worst.used, work, breakdown))
    return Finding(
        summary=summary,
        evidence=(*measures, *_work(work), _table(padding)),
        remedies=(Remedy(ACTION, BUCKETS, _line(program)),),
        effects=effects,
        severity=None if effects else Severity.NOTE,
    )


def _work(work: LengthWork) -> Iterator[Measure]:
    """Yield the times that the saving counts, and which of them may not depend on the length."""
    yield Measure("time per step of operations that grow with the length", ms(work.known_ms))
    if work.unknown_ms:
        label = "time per step of operations of unknown length, counted as growing"
        yield Measure(label, ms(work.unknown_ms))


def _effects(used: float, work: LengthWork, breakdown: Breakdown) -> Iterator[Effect]:
    """Shrink what takes longer with the length: once for each dimension of time, or in a loop over time.

    Python or TensorFlow's executor starts the operations of a loop over time: that part of the host's time shrinks.
    """
    for entry in work.growing:
        if entry.row.ms:
            yield _at_most(Stage.DEVICE, used**entry.dimensions, entry.row.name, entry.row.ms)
    if work.growing and breakdown["transfer"]:
        yield _at_most(Stage.TRANSFER, used, "", breakdown["transfer"])
    host_ms = work.started * breakdown["host"]
    if host_ms:
        yield _at_most(Stage.HOST, used, StepWork.SCHEDULING, host_ms)


def _at_most(stage: Stage, scales: float, subject: str, time_ms: float) -> Effect:
    return Effect(stage, scales, subject, ms(time_ms), bound=Bound.AT_MOST, narrows=True)


def _table(padding: SequencePadding) -> Table:
    rows = tuple(
        (f"input {number}", count(entry.steps), "beginning" if entry.leading else "end",
         count(entry.used * entry.steps), ratio(1.0 - entry.used),
         "unknown" if (trimmed := entry.trimmed) is None else ratio(1.0 - trimmed))
        for number, entry in enumerate(padding.inputs, 1)
    )  # fmt: skip
    columns = (
        "sequences", "positions", "padded at the", "average length", "padding",
        "padding beyond the longest of a batch",
    )  # fmt: skip
    return Table(columns, rows)


def _line(program: Program | None) -> Location | None:
    """Return the line of the batch() that makes the batches, else of the first dataset."""
    feeding = program.feeding if program else ()
    batched = [data.at for data in feeding if "Batch" in data.kind and data.at]
    return next(iter(batched), None)


FITTING = "Each batch is about as long as its longest sequence"

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
    work = LengthWork.measure(padding, Operations((row,)), None, None)
    return check(padding, work, Breakdown.of(device=30.0), None)
