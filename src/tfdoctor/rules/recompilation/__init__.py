"""XLA recompiles during training.

## What it checks

Whether XLA compiled programs in the traced steps, and whether it still did in the second half of them. A
program that is compiled once at the start is not reported.

Where only a few steps compile, they are left out of the steady steps. Then no saving per step is computed, and
the share of the traced time shows what they cost.

## Why it matters

Compiling takes from a fraction of a second to minutes; a step takes milliseconds.

## How to fix

XLA compiles a program for each shape. Keep shapes constant, also that of the last batch of an epoch, for which a
TPU compiles once more: `drop_remainder=True`, sequences padded to a few lengths
(`tf.data.Dataset.bucket_by_sequence_length`), no Python numbers that change. Keep operations whose shape depends
on the data (`tf.where` with one argument, `tf.boolean_mask`) outside of the compiled function.

## Holds for

TensorFlow with `jit_compile=True`, and JAX, on CPU, GPU and TPU, where the trace contains the compiler's events:
for CPUs with the event names of TensorFlow 2.21, for GPUs with the names in XLA's source.

Users met it as a program for each shape, in training and in augmentation layers of KerasCV under `jit_compile`.

## Sources

- [Optimize GPU performance, TensorFlow guide: enable XLA](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [XLA: Optimizing Compiler for Machine Learning](https://openxla.org/xla/tf2xla)
- [TensorFlow issue 29825: a TPU compiles for the last batch](https://github.com/tensorflow/tensorflow/issues/29825)
- [tf.function](https://www.tensorflow.org/api_docs/python/tf/function)
- [TensorFlow issue 81896: XLA compiles for each shape](https://github.com/tensorflow/tensorflow/issues/81896)
- [keras-cv issue 2406: the same in a layer](https://github.com/keras-team/keras-cv/issues/2406)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, limit
from tfdoctor.facts.input.sequence_padding import SequencePadding, bucketing
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.compile_time import CompileTime
from tfdoctor.rules.recompilation.open_shapes import OpenShapes
from tfdoctor.terms.humanize import milliseconds, percent
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Concern,
    Effect,
    Finding,
    Healthy,
    Measure,
    Remedy,
    Severity,
    Stage,
    StepWork,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "which shapes may be padded to one size is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    steps: float = limit(
        2.0, "Smallest number of steps in which XLA compiles; a single step may be the first of its kind"
    )
    late: float = limit(1.0, "Smallest number of steps that compile in the second half of the traced steps")


def check(
    compiling: CompileTime,
    breakdown: Breakdown,
    shapes: OpenShapes | None,
    padding: SequencePadding | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Report compilations that continue in the second half of the traced steps."""
    if not compiling.steps:
        return Healthy(summary="XLA compiled nothing in the traced steps")
    summary = f"XLA compiled in {compiling.steps} of {compiling.of} steps"
    evidence = (
        Measure("steps in which XLA compiled", count(compiling.steps), count(limits.steps)),
        Measure("traced steps", count(compiling.of)),
        Measure.share("share of the traced time spent compiling", compiling.share),
        Measure("compile time per steady step", ms(compiling.total_ms)),
        Measure("longest compilation", ms(compiling.longest_ms)),
        Measure("step time", ms(breakdown.step_ms)),
    )
    if compiling.steps < limits.steps or compiling.late < limits.late:
        return Healthy(summary=f"{summary} and not again", evidence=evidence)
    effects = _effects(compiling)
    share = f", in {percent(compiling.share)} of the traced time" if compiling.share else ""
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"{summary}{share}; the longest compilation took {milliseconds(compiling.longest_ms)}",
        evidence=evidence,
        remedies=(_remedy(shapes, padding.buckets if padding else ()),),
        effects=effects,
        severity=None if effects else Severity.of(compiling.share),
    )


def _effects(compiling: CompileTime) -> tuple[Effect, ...]:
    """Return what compiling costs a steady step; () where only other steps compile, which have no model."""
    if compiling.apart or not compiling.total_ms:
        return ()
    return (
        Effect(Stage.HOST, 0.0, StepWork.COMPILING, ms(compiling.host_ms)),
        Effect(Stage.BETWEEN, 0.0, StepWork.COMPILING, ms(compiling.between_ms)),
    )


def _remedy(shapes: OpenShapes | None, buckets: tuple[int, ...]) -> Remedy:
    """Choose by which dimensions of the batches vary: dropping a smaller batch does not help with lengths."""
    rows = shapes.rows if shapes else None
    lengths = LENGTHS.format(bucketing(buckets, rows, fixed=True))
    whole = WHOLE.format(rows or "batch_size")
    if shapes is not None and shapes.lengths:
        return Remedy("Pad the batches to a few lengths", lengths)
    if shapes is not None and shapes.size and shapes.at:
        return Remedy("Drop the last, smaller batch", whole, shapes.at, "drop-remainder")
    return Remedy("Keep the input shapes of compiled functions constant", f"{whole}\n{lengths}")


WHOLE = "dataset = dataset.batch({}, drop_remainder=True)"

LENGTHS = """\
# pad sequences to a few lengths; each length is compiled once
dataset = dataset.bucket_by_sequence_length(
    length, {},
    pad_to_bucket_boundary=True, drop_remainder=True)"""


def example(
    compiling: CompileTime = CompileTime(20, 20, 10, 250.0, 0.0, 346.0),
    host_ms: float = 268.0,
    shapes: OpenShapes | None = None,
    padding: SequencePadding | None = None,
) -> Verdict:
    """Every batch has another length, and XLA compiles in 20 of 20 steps."""
    return check(compiling, Breakdown.of(host=host_ms, device=4.0), shapes, padding)


sick = example


def healthy() -> Verdict:
    """XLA compiled before the traced steps."""
    return example(CompileTime(0, 20, 0), 0.5)
