"""XLA compiles while the run trains.

## What it checks

Whether XLA's compiler was at work in the traced steps, and still in their second half: a program that is
compiled once at the start is not meant.

A few steps that mostly compile are left out of the typical step, and no saving per step is computed: the
share of the traced time tells what they cost.

## Why it matters

CompileTime takes from a fraction of a second to minutes; a step, milliseconds.

## How to fix

XLA compiles a program for each shape. Keep shapes the same: `drop_remainder=True`, sequences padded to a
few lengths (`tf.data.Dataset.bucket_by_sequence_length`), no Python numbers that change. What depends on
the data (`tf.where` with one argument, `tf.boolean_mask`) belongs outside of the compiled function.

## Holds for

TensorFlow with `jit_compile=True`, and JAX, on CPU, GPU and TPU, where the trace holds the compiler's
events: CPUs' as of TensorFlow 2.21, GPUs' by their names in XLA's source.

## Sources

- [Optimize GPU performance, TensorFlow guide: enable XLA](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [XLA: Optimizing Compiler for Machine Learning](https://openxla.org/xla/tf2xla)
- [tf.function](https://www.tensorflow.org/api_docs/python/tf/function)
"""

from dataclasses import dataclass

from tfdoctor.facts.input.open_shapes import OpenShapes
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.compile_time import CompileTime
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
from tfdoctor.verdict import (
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


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    steps: float = limit(
        2.0, "steps in which XLA compiled: a single one may be the first of its kind"
    )
    late: float = limit(1.0, "of these steps in the second half of the traced ones")


LIMITS = Limits()


def check(
    compiling: CompileTime,
    breakdown: Breakdown,
    shapes: OpenShapes | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Look for compilations that go on."""
    evidence = (
        Measure("steps in which XLA compiled", count(compiling.steps), count(limits.steps)),
        Measure("steps", count(compiling.of)),
        Measure("of the traced time spent compiling", ratio(compiling.share)),
        Measure("compiling per typical step", ms(compiling.total_ms)),
        Measure("longest compilation", ms(compiling.longest_ms)),
        Measure("step", ms(breakdown.step_ms)),
    )
    if not compiling.steps:
        return Healthy(summary="XLA compiled nothing while the run trained")
    if compiling.steps < limits.steps or compiling.late < limits.late:
        said = f"XLA compiled in {compiling.steps} of {compiling.of} steps, and no more after that"
        return Healthy(summary=said, evidence=evidence)
    # The step model knows nothing of the steps that are left out of the typical ones.
    rare = compiling.apart or not compiling.total_ms
    spent = f": {percent(compiling.share)} of the traced time" if compiling.share else ""
    return Finding(
        concern=Concern.LONG_STEPS,
        summary=f"XLA compiled in {compiling.steps} of {compiling.of} steps, for up to "
        f"{milliseconds(compiling.longest_ms)}{spent}",
        evidence=evidence,
        remedies=(_remedy(shapes),),
        effects=()
        if rare
        else (
            Effect(Stage.HOST, 0.0, StepWork.COMPILING, ms(compiling.host_ms)),
            Effect(Stage.BETWEEN, 0.0, StepWork.COMPILING, ms(compiling.between_ms)),
        ),
        severity=Severity.of(compiling.share) if rare else None,
    )


def _remedy(shapes: OpenShapes | None) -> Remedy:
    """Advise by what of the batches' shapes is open: whole batches do nothing for their length."""
    if shapes is not None and shapes.lengths:
        return Remedy("Pad the batches to a few lengths, each of which is compiled once", LENGTHS)
    if shapes is not None and shapes.size and shapes.at:
        return Remedy("Leave out the smaller batch", WHOLE, shapes.at, "drop-remainder")
    return Remedy("Keep the shapes of what is compiled the same", f"{WHOLE}\n{LENGTHS}")


WHOLE = "dataset = dataset.batch(128, drop_remainder=True)"

LENGTHS = """\
# sequences: padded to a few lengths, each of which is compiled once
dataset = dataset.bucket_by_sequence_length(
    length, bucket_boundaries=[64, 128, 256], bucket_batch_sizes=[64, 32, 16, 8],
    pad_to_bucket_boundary=True, drop_remainder=True)"""


def sick() -> Verdict:
    """Batches of another length each: compiled in 20 of 20 steps."""
    return check(
        CompileTime(20, 20, 10, 250.0, 0.0, 346.0), Breakdown.of(host=268.0, device=4.0), None
    )


def healthy() -> Verdict:
    """Compiled before the traced steps."""
    return check(CompileTime(0, 20, 0), Breakdown.of(host=0.5, device=4.0), None)
