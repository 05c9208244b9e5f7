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
hardly any zeros in between. The saving is an upper bound: buckets still contain some padding, fixed costs of a
step stay, and work whose shapes are unknown counts as work on sequences, as does all of the host's in a step with
a loop over time. Batches that a dataset pads inside `fit` are not seen.

## Sources

- [tf.data.Dataset.bucket_by_sequence_length](https://www.tensorflow.org/api_docs/python/tf/data/Dataset)
- [Understanding masking and padding, Keras](https://keras.io/guides/understanding_masking_and_padding/)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tfdoctor.facts.input.sequence_padding import PaddedInput, SequencePadding
from tfdoctor.facts.operations.loop_work import LoopWork
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Operation, Program, Shape
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
    breakdown: Breakdown,
    loops: LoopWork | None,
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
    work = WorkOnTime.of(worst.steps, program, operations, loops, limits)
    effects = tuple(_effects(worst.used, operations, work, breakdown))
    return Finding(
        summary=summary,
        evidence=(*measures, _table(padding)),
        remedies=(Remedy(ACTION, BUCKETS, _line(program)),),
        effects=effects,
        severity=None if effects else Severity.NOTE,
    )


@dataclass(frozen=True, slots=True)
class WorkOnTime:
    """Which work takes longer the longer sequences are, as far as loops and shapes tell."""

    steps: int
    batch: int | None
    open_batch: (
        bool  # whether rows of an open number may be those of all positions: TimeDistributed
    )
    looped: frozenset[str]  # the operations of loops over time

    @classmethod
    def of(
        cls,
        steps: int,
        program: Program | None,
        operations: Operations,
        loops: LoopWork | None,
        limits: Limits,
    ) -> Self:
        """Find the loops that iterate over the positions of a sequence."""
        least = limits.looped * steps
        rows = [row for row in operations.rows if row.calls >= least]
        for loop in loops.loops if loops else ():
            rows += loop.rows if loop.iterations >= least else ()
        kinds = {layer.kind for layer in program.layers} if program else set[str]()
        batch, names = program.batch_size if program else None, frozenset(row.name for row in rows)
        return cls(steps, batch, "TimeDistributed" in kinds, names)

    def dimensions(self, row: OperationTime) -> int | None:
        """Return how many dimensions of one tensor are as long as the sequences: two of attention's scores.

        None is unknown: an operation or a shape was not recorded, or is open.
        """
        tensors = (*row.operation.inputs, *row.operation.outputs) if row.operation else ()
        found = max((self._of_tensor(shape) for _, shape in tensors if shape), default=0)
        if found or row.name in self.looped:
            return found or 1
        is_open = not tensors or any(self._is_open(dtype, shape) for dtype, shape in tensors)
        return None if is_open else 0

    def _of_tensor(self, shape: Shape) -> int:
        flat = self.batch is not None and shape[0] == self.batch * self.steps
        first = shape[0] == self.steps and shape[1:2] in {(None,), (self.batch,)}  # time-major
        return min(2, sum(size == self.steps for size in shape[1:]) + (flat or first))

    def _is_open(self, dtype: str, shape: Shape | None) -> bool:
        """Say whether a tensor may be as long as the sequences: a TensorList, or rows of all positions."""
        if shape is None or dtype == "variant" or None in shape[1:]:
            return True
        rows = len(shape) == MATRIX or self.open_batch
        return rows and shape[0] is None


MATRIX = 2
"""Dimensions of what a layer makes of batch and time in one: (rows, features)."""


def _effects(
    used: float, operations: Operations, work: WorkOnTime, breakdown: Breakdown
) -> Iterator[Effect]:
    """Shrink what takes longer with the length: once for each dimension of time, or in a loop over time.

    What is unknown may scale as what scales most: the saving is an upper bound. Python or TensorFlow's executor
    starts the operations of a loop over time, so the host's time scales as well.
    """
    known = {row.name: work.dimensions(row) for row in operations.rows}
    most = max((times for times in known.values() if times), default=0)
    if not most:
        return
    for row in operations.rows:
        times = most if (found := known[row.name]) is None else found
        if times and row.ms:
            yield _at_most(Stage.DEVICE, used**times, row.name, row.ms)
    if breakdown["transfer"]:
        yield _at_most(Stage.TRANSFER, used, "", breakdown["transfer"])
    if work.looped and breakdown["host"]:
        yield _at_most(Stage.HOST, used, StepWork.SCHEDULING, breakdown["host"])


def _at_most(stage: Stage, scales: float, subject: str, time_ms: float) -> Effect:
    return Effect(stage, scales, subject, ms(time_ms), bound=Bound.AT_MOST, narrows=True)


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
    return check(padding, Operations((row,)), Breakdown.of(device=30.0), None, None)
