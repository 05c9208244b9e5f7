"""New input shapes make cuDNN search again.

## What it checks

On a GPU: whether one convolution ran four or more different kernels in one step, which is cuDNN's search for the
fastest algorithm, and whether such searches go on in the second half of the traced steps. The time of the kernels
that were only tried counts.

## Why it matters

TensorFlow runs each algorithm of a convolution once for each new shape, and keeps the fastest. With images or
sequences of arbitrary sizes, nearly every batch has a new shape: a user's fully convolutional network trained 5
to 10 times slower than with sizes that repeat. Functions without retracing, and `reduce_retracing`, do not help:
the search belongs to the shape that runs.

## How to fix

Let batches have few shapes: resize or pad images to a few sizes, bucket sequences by length
(`bucket_by_sequence_length` with `pad_to_bucket_boundary=True`), and drop the last, smaller batch. Where shapes
must be arbitrary, set `TF_CUDNN_USE_AUTOTUNE=0`: cuDNN then guesses, and each convolution may be a little slower.

## Holds for

NVIDIA GPUs, TensorFlow 2 with the GPU's work in the trace, steps that XLA did not compile (see `recompilation`
for those). The saving is an upper bound of the GPU's time. Allocating workspaces and waiting for the results take
the host's time besides, which is not counted. Tested on synthetic traces: the rule has not been seen at work
on a GPU.

## Sources

- [TensorFlow issue 5048: arbitrary sized inputs are slow](https://github.com/tensorflow/tensorflow/issues/5048)
- [TensorFlow issue 54456: convolutions are slow the first time an input size is processed](https://github.com/tensorflow/tensorflow/issues/54456)
- [tf.data.Dataset.bucket_by_sequence_length](https://www.tensorflow.org/api_docs/python/tf/data/Dataset#bucket_by_sequence_length)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.input.sequence_padding import SequencePadding, bucketing
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.new_shapes.searches import Searches
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    Table,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
BY_HAND = "which shapes may be padded to one size is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    steps: float = limit(2.0, "Smallest number of steps that search; a single one may be the first of its kind")
    late: float = limit(1.0, "Smallest number of steps that search in the second half of the traced steps")


def check(
    searches: Searches,
    breakdown: Breakdown,
    operations: Operations | None,
    padding: SequencePadding | None,
    program: Program | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report searches that go on in the second half of the traced steps."""
    if not searches.steps and operations and operations.why_unlisted:
        return NotApplicable(reason=operations.why_unlisted)
    if not searches.steps:
        return Healthy(summary="No convolution searched for an algorithm in the traced steps")
    summary = f"Convolutions searched for an algorithm in {searches.steps} of {searches.of} steps"
    evidence = (
        Measure("steps in which a convolution searched", count(searches.steps), count(limits.steps)),
        Measure("traced steps", count(searches.of)),
        Measure("time of kernels that were only tried, per step", ms(searches.lost_ms)),
        Measure("step time", ms(breakdown.step_ms)),
        Table.of(
            searches.operations,
            ("operation", lambda row: row[0]),
            ("time in kernels that were tried", lambda row: ms(row[1])),
            ("time of the fastest alone", lambda row: ms(row[2])),
            most=10,
        ),
    )
    if searches.steps < limits.steps or searches.late < limits.late:
        return Healthy(summary=f"{summary} and not again", evidence=evidence)
    effects = _effects(searches, operations)
    return Finding(
        summary=f"{summary}; the kernels that were only tried take {milliseconds(searches.lost_ms)} per step",
        evidence=evidence,
        remedies=(
            Remedy("Let batches have a few shapes", _few_shapes(padding, program)),
            Remedy("Or switch the search off, where shapes must be arbitrary", OFF),
        ),
        effects=effects,
    )


def _effects(searches: Searches, operations: Operations | None) -> tuple[Effect, ...]:
    """Return what is left of each operation of the typical step; () where only other steps search."""
    times = {row.name: row.ms for row in operations.rows} if operations else {}
    return tuple(
        Effect(Stage.DEVICE, needed / total, name, ms(times[name]), bound=Bound.AT_MOST)
        for name, total, needed in searches.operations
        if times.get(name, 0.0) >= total / 2  # else the typical step does not search
    )


def _few_shapes(padding: SequencePadding | None, program: Program | None) -> str:
    """Return the code for the recorded sequences; without any, the one for images."""
    if padding is None:
        return IMAGES
    rows = program.batch_size if program else None
    return BUCKETS.format(bucketing(padding.buckets, rows, fixed=True))


BUCKETS = """\
dataset = dataset.bucket_by_sequence_length(
    length, {},  # of the recorded sequences
    pad_to_bucket_boundary=True, drop_remainder=True)"""

IMAGES = """\
images = tf.image.resize_with_pad(images, height, width)  # one size, or one for each batch of similar images
# sequences: dataset.bucket_by_sequence_length(..., pad_to_bucket_boundary=True, drop_remainder=True)"""

OFF = """\
import os
os.environ["TF_CUDNN_USE_AUTOTUNE"] = "0"  # before TensorFlow is imported"""


def example(
    searches: Searches = Searches(20, 20, 10, (("conv/Conv2D", 12.0, 1.0),)),
    conv_ms: float = 12.0,
    padding: SequencePadding | None = None,
) -> Verdict:
    """Every image has another size: all steps search, and 11 of 12 ms of a convolution are only tried."""
    row = OperationTime(name="conv/Conv2D", type="Conv2D", ms=conv_ms)
    operations = Operations.training(conv_ms + 4.0, row, rest="ReluGrad")
    return check(searches, Breakdown.of(host=2.0, device=conv_ms + 4.0), operations, padding, None)


sick = example


def healthy() -> Verdict:
    """The search was over before the traced steps."""
    return example(Searches(0, 20, 0), 1.0)
