"""An operation of vectorized_map runs in a loop.

## What it checks

The loops with which `tf.vectorized_map` replaces operations that it cannot vectorize, in the recorded graphs of the
step and of the pipeline's functions: Keras' and KerasCV's augmentation layers call it as well. On a CPU it adds up
the time of their operations, and what the executor takes to start them; in the pipeline, the time of the stage
outside of operations that are in no such loop.

## Why it matters

TensorFlow writes a warning and goes on: the operation runs once for each example, one after the other, as
`tf.map_fn` would. An augmentation by `RandomContrast` made epochs six times as long. On a GPU each iteration also
waits for the host, which starts a few small kernels for a single image.

## How to fix

Write the function for a whole batch: operations that take one (`tf.image.adjust_contrast`, `tf.one_hot` and a sum
in place of a histogram), random numbers for all examples at once, and broadcasting. Random crops of a batch are one
`tf.image.crop_and_resize`, or `tf.gather` with `batch_dims`. `fallback_to_while_loop=False` makes TensorFlow raise
an error that names the operation.

## Holds for

TensorFlow 2.4 and later with the graph recorded by tfdoctor. The saving is an upper bound: the operation itself
remains. On GPUs the loop's operations are named and not priced, because most of its time is the host's; that was
never seen on a GPU. A loop that the function itself contains is not reported.

## Sources

- [tf.vectorized_map](https://www.tensorflow.org/api_docs/python/tf/vectorized_map)
- [TensorFlow, pfor.py: _fallback_converter](https://github.com/tensorflow/tensorflow/blob/master/tensorflow/python/ops/parallel_for/pfor.py)
- [keras-cv 581: RandomContrast](https://github.com/keras-team/keras-cv/issues/581)
- [keras-cv 291: which operations fall back](https://github.com/keras-team/keras-cv/issues/291)
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.input.input_pipeline import InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.operations.loop_work import GraphLoop
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.rules.unvectorized_operation.fallback_loops import FallbackLoop, FallbackLoops
from tfdoctor.terms.humanize import counted
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    Remedy,
    Stage,
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
BY_HAND = "which form of the function takes a whole batch is not in the file"


@dataclass(frozen=True, slots=True)
class Limits:
    """When such loops are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the step in such loops that is reported, as of other savings"
    )


def check(
    found: FallbackLoops,
    breakdown: Breakdown,
    device: Device,
    pipeline: InputPipeline | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Add up the loops of the step, and those of the stages that limit the pipeline."""
    if not found.loops:
        return Healthy(summary="No operation of a vectorized_map is seen to run in a loop")
    in_step = tuple(_of_step(found))
    in_stages = tuple(_of_stages(found, pipeline.limiting)) if pipeline else ()
    if not breakdown.waits_for_input and not in_step:
        in_stages = ()  # the step does not end earlier
    effects = (*in_step, *in_stages)
    on_gpu = device.kind != DeviceKind.CPU and any(loop.rows for loop in found.loops)
    seen = effects if breakdown.waits_for_input else in_step
    taken = sum(effect.of.value * (1.0 - effect.scales) for effect in seen if effect.of)
    share = breakdown.share(taken)
    names = ", ".join(dict.fromkeys(loop.type for loop in found.loops))
    summary = f"vectorized_map runs {names} once for each element, in {counted(len(found.loops), 'loop')}"
    evidence = (
        Measure("time in such loops, per step", ms(taken)),
        Measure.share("share of the step in such loops", share, limits.share),
        _table(found.loops),
    )
    if share < limits.share and not on_gpu:
        return Healthy(summary=f"{summary}, which take little of the step", evidence=evidence)
    at = next((loop.at for loop in found.loops if loop.at), None)
    return Finding(
        summary=summary,
        evidence=evidence,
        remedies=(Remedy("Write the function for a whole batch", BATCHED, at),),
        effects=effects,
    )


def _of_step(found: FallbackLoops) -> Iterator[Effect]:
    """Yield what a CPU's step saves without its loops."""
    for loop in found.loops:
        if loop.loop:
            yield from (row.scaled(0.0, Bound.AT_MOST) for row in loop.loop.rows if row.ms)
    if found.scheduling_ms:
        yield from Effect.of_stages({Stage.HOST: found.scheduling_ms}, StepWork.SCHEDULING)


def _of_stages(found: FallbackLoops, limiting: tuple[StageTime, ...]) -> Iterator[Effect]:
    """Yield what the stages that limit the pipeline save; without its own loops the step may wait for them."""
    stages = {loop.stage.path: loop for loop in found.loops if loop.stage in limiting}
    for loop in stages.values():
        if loop.stage and loop.stage.work_ms:
            yield loop.stage.scaled(1.0 - loop.stage_ms / loop.stage.work_ms, Bound.AT_MOST)


def _table(loops: tuple[FallbackLoop, ...]) -> Table:
    return Table.of(
        loops,
        ("operation", lambda loop: loop.type),
        ("your line", lambda loop: loop.at),
        ("runs in", lambda loop: loop.stage.title if loop.stage else loop.layer or "the step"),
        ("iterations per step", lambda loop: count(loop.loop.iterations) if loop.loop else None),
        most=10,
    )


BATCHED = """\
# for each image:  tf.vectorized_map(lambda image: augment(image, tf.random.uniform([])), images)
factors = tf.random.uniform([tf.shape(images)[0], 1, 1, 1], 0.8, 1.2)  # all random numbers at once
means = tf.reduce_mean(images, axis=(1, 2), keepdims=True)
images = (images - means) * factors + means  # the contrast of a whole batch
# finds the operations: tf.vectorized_map(function, images, fallback_to_while_loop=False)"""


NAME = "loop_body/adjust_contrast"

RUNNING = GraphLoop(name=f"{NAME}/pfor/while", iterations=64.0, operations=0.0, ms=0.0)

IN_STEP = FallbackLoop(name=NAME, type="AdjustContrastv2", at=Location("train.py", 13), loop=RUNNING)


def example(
    *loops: FallbackLoop,
    scheduling_ms: float = 6.0,
    kind: DeviceKind = DeviceKind.CPU,
    pipeline: InputPipeline | None = None,
    step: Breakdown | None = None,
) -> Verdict:
    """The contrast of 64 images is changed one by one, for 6 of 10 ms."""
    found = FallbackLoops(loops or (IN_STEP,), scheduling_ms)
    return check(found, step or Breakdown.of(host=7.0, device=3.0), Device(kind, 1, 1), pipeline)


sick = example


def healthy() -> Verdict:
    """The loop takes 0.1 ms."""
    return example(scheduling_ms=0.1)
