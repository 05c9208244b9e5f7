"""Batches are made by Python code.

## What it checks

How long the input pipeline's functions are inside the Python interpreter (`tf.py_function`,
`tf.numpy_function`, `Dataset.from_generator`, Keras' `PyDataset` and generators), on a run that waits
for input.

## Why it matters

Python runs on one thread at a time, and the training loop needs that thread too: it dispatches every
step, and takes longer for it. TensorFlow's own operations run on all cores beside it.

## How to fix

Write the transformation in TensorFlow operations (`tf.io.decode_jpeg`, `tf.image`, Keras
preprocessing layers), or load with `keras.utils.image_dataset_from_directory`. Where it must stay
Python, use several processes: `keras.utils.PyDataset(workers=4, use_multiprocessing=True)`.

## Holds for

TensorFlow 2.3 and later. Batches that the script makes itself and hands to a `tf.function` are seen in
recordings of `tfdoctor profile`, where the loop goes over no dataset.

## Sources

- [tf.data guide: consuming Python generators](https://www.tensorflow.org/guide/data#consuming_python_generators)
- [tf.py_function](https://www.tensorflow.org/api_docs/python/tf/py_function)
- [keras.utils.PyDataset](https://keras.io/api/utils/python_utils/#pydataset-class)
"""

from dataclasses import dataclass

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.input_pipeline import InputPipeline, StageTime
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.retracing import Retracing
from tfdoctor.facts.time.stack_samples import StackSamples
from tfdoctor.humanize import milliseconds
from tfdoctor.rule import Topic, limit
from tfdoctor.units import ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Table,
    Verdict,
)

TOPIC = Topic.INPUT
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.1,
        "of the time of the pipeline's slowest segment: below it, replacing the Python changes "
        "nothing worth the work",
        most=1.0,
    )
    between: float = limit(
        0.05,
        "of the step that Python takes to make a batch between two calls of the function that trains",
        most=1.0,
    )
    stack_samples: float = limit(
        5.0, "looks at the lines that make batches, from which on they count"
    )


LIMITS = Limits()


def check(
    pipeline: InputPipeline | Unavailable,
    breakdown: Breakdown,
    seen: StackSamples | None,
    retracing: Retracing | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Weigh the Python of the loop, else of the pipeline."""
    if seen and sum(place.seen for place in seen.makers) >= limits.stack_samples:
        found = _in_the_loop(seen, breakdown, retracing, limits)
        if isinstance(found, Finding) or isinstance(pipeline, Unavailable):
            return found
    if isinstance(pipeline, Unavailable):
        return NotApplicable(reason=str(pipeline))
    return _in_the_pipeline(pipeline, breakdown, limits)


def _in_the_loop(
    seen: StackSamples, breakdown: Breakdown, retracing: Retracing | None, limits: Limits
) -> Verdict:
    """Weigh the lines between two calls that make what the function is given."""
    between = max(0.0, breakdown[Stage.BETWEEN] - (retracing.between_ms if retracing else 0.0))
    making = between * seen.share(seen.makers)
    share = making / breakdown.step_ms if breakdown.step_ms else 0.0
    measure = Measure(
        "of the step to make its batch in Python", ratio(share), ratio(limits.between)
    )
    said = f"Python takes {milliseconds(making)} between two steps to make the batch"
    if share < limits.between:
        return Healthy(summary=said, evidence=(measure,))
    rows = tuple((one.at or "unknown", ms(between * seen.share([one]))) for one in seen.makers[:8])
    return Finding(
        summary=said,
        evidence=(measure, Table(("your line", "per step, about"), rows)),
        remedies=(Remedy("Make the batches in a tf.data pipeline", PIPELINE, seen.makers[0].at),),
        effects=(
            Effect(Stage.BETWEEN, 0.0, StepWork.MAKING_BATCHES, ms(making), bound=Bound.AT_MOST),
        ),
    )


def _in_the_pipeline(pipeline: InputPipeline, breakdown: Breakdown, limits: Limits) -> Verdict:
    """Weigh the time inside Python against the pipeline's slowest segment."""
    slowest = pipeline.slowest
    stages = [s for s in pipeline.stages if slowest and s.path in slowest.stages and s.python_ms]
    python = sum(stage.python_ms for stage in stages)
    share = python / slowest.ms if slowest and slowest.ms else 0.0
    measures = (
        Measure(
            "of the pipeline's slowest part in Python", ratio(min(1.0, share)), ratio(limits.share)
        ),
        Measure("Python per step", ms(python)),
    )
    if not breakdown.waits_for_input and any(dataset.python for dataset in pipeline.idle):
        return NotApplicable(reason=pipeline.why_idle)
    if not breakdown.waits_for_input:
        everywhere = sum(stage.python_ms for stage in pipeline.stages)
        summary = f"Python takes {milliseconds(everywhere)} per step in the pipeline; {breakdown.little_wait}"
        return Healthy(summary=summary, evidence=measures[1:])
    if share < limits.share:
        return Healthy(
            summary=f"Python takes {milliseconds(python)} per step in the part of the pipeline that limits it",
            evidence=measures,
        )
    rows = tuple((s.title, s.at or "unknown", ms(s.python_ms), ms(s.work_ms)) for s in stages)
    return Finding(
        summary=f"{max(stages, key=lambda s: s.python_ms).title} makes the step wait: "
        f"{milliseconds(python)} of Python per step",
        evidence=(*measures, Table(("stage", "your line", "in Python", "work per step"), rows)),
        remedies=tuple(_remedy(stage, pipeline.python_kind) for stage in stages),
        effects=(*(_effect(stage) for stage in stages), *_interpreter(pipeline, breakdown)),
    )


def _effect(stage: StageTime) -> Effect:
    left = max(0.0, 1.0 - stage.python_ms / stage.work_ms) if stage.work_ms else 0.0
    return Effect(Stage.INPUT, left, stage.path, ms(stage.work_ms), bound=Bound.AT_MOST)


def _interpreter(pipeline: InputPipeline, breakdown: Breakdown) -> tuple[Effect, ...]:
    """Return what the loop may gain beside its wait: its own Python has the interpreter to itself."""
    beside, host = pipeline.python_beside(breakdown.step_ms), breakdown[Stage.HOST]
    if not beside or not host:
        return ()
    return (Effect(Stage.HOST, 1.0 - beside, StepWork.INTERPRETER, ms(host), bound=Bound.AT_MOST),)


def _remedy(stage: StageTime, python_kind: str) -> Remedy:
    if "PyDataset" in python_kind:
        code = (
            "super().__init__(workers=4, use_multiprocessing=True)  # in your PyDataset's __init__"
        )
        return Remedy("Load in several processes, or in more than now", code, stage.at)
    if "Generator" in stage.kind or "enerator" in python_kind:
        return Remedy("Read with tf.data instead of a generator", FROM_FILES, stage.at)
    return Remedy(f"Write {stage.title} in TensorFlow operations", NATIVE, stage.at)


PIPELINE = """\
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).repeat().batch(128)
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
for features, target in dataset:
    loss = train_step(features, target)  # prepare() in TensorFlow operations, on whole batches"""

FROM_FILES = """\
dataset = tf.data.Dataset.list_files("images/*.jpg").map(
    lambda path: tf.io.decode_jpeg(tf.io.read_file(path), channels=3),
    num_parallel_calls=tf.data.AUTOTUNE,
)"""

NATIVE = """\
# tf.image, tf.io and Keras preprocessing layers do the same without Python
dataset = dataset.map(lambda image, label: (tf.image.resize(image, (224, 224)), label),
                      num_parallel_calls=tf.data.AUTOTUNE)"""


def sick() -> Verdict:
    """A py_function that takes 30 ms of each 33 ms step."""
    return check(_pipeline(python_ms=30.0), Breakdown.of(input=23.0, device=10.0), None, None)


def healthy() -> Verdict:
    """The same map in TensorFlow operations."""
    return check(_pipeline(python_ms=0.0), Breakdown.of(input=23.0, device=10.0), None, None)


def _pipeline(python_ms: float) -> InputPipeline:
    ahead = StageTime(path="Root::Prefetch", kind="Prefetch", asynchronous=True)
    stage = StageTime(
        path="Root::Prefetch::Map",
        kind="Map",
        work_ms=31.0,
        wall_ms=31.0,
        python_ms=python_ms,
        dataset=Dataset(id=1, kind="_MapDataset", function="augment", at=Location("train.py", 12)),
    )
    return InputPipeline.of(ahead, stage)
