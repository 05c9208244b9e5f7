"""Python code produces the batches.

## What it checks

How much time the input pipeline's functions spend in the Python interpreter (`tf.py_function`,
`tf.numpy_function`, `Dataset.from_generator`, Keras' `PyDataset` and generators), on a run that waits
for input.

## Why it matters

Python runs on one thread at a time. The training loop also runs Python to start every step, so it slows
down. TensorFlow's own operations run on all cores in parallel.

## How to fix

Write the transformation in TensorFlow operations (`tf.io.decode_jpeg`, `tf.image`, Keras
preprocessing layers), or load with `keras.utils.image_dataset_from_directory`. If the transformation
must stay in Python, use several processes: `keras.utils.PyDataset(workers=4, use_multiprocessing=True)`.

## Holds for

TensorFlow 2.3 and later. Batches that the script makes itself and passes to a `tf.function` are detected in
recordings of `tfdoctor profile`; the time includes the conversion of new arrays to tensors. Arrays that stay the
same are left to repeated-conversion.

## Sources

- [tf.data guide: consuming Python generators](https://www.tensorflow.org/guide/data#consuming_python_generators)
- [tf.py_function](https://www.tensorflow.org/api_docs/python/tf/py_function)
- [keras.utils.PyDataset](https://keras.io/api/utils/python_utils/#pydataset-class)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.input.input_pipeline import GENERATOR, InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.stack_samples import StackSamples
from tfdoctor.humanize import milliseconds
from tfdoctor.kinds import InputKind
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
    """How much Python is reported, in the pipeline and in the training loop."""

    share: float = limit(
        0.1,
        "Smallest share of the pipeline's slowest segment that Python must take; below it, replacing the "
        "Python code is not worth the work",
        most=1.0,
    )
    between: float = limit(
        0.05,
        "Smallest share of the step that making a batch in Python must take, between two calls of the "
        "training function",
        most=1.0,
    )
    stack_samples: float = limit(
        5.0, "Stack samples needed in lines that make batches before these lines count"
    )


LIMITS = Limits()


def check(
    pipeline: InputPipeline | Unavailable,
    breakdown: Breakdown,
    samples: StackSamples | None,
    body: LoopBody | None,
    conversions: Conversions | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Measure the Python of the training loop, else of the pipeline."""
    made = _made(samples, body, conversions, limits)
    if made.total_ms:
        verdict = _in_the_loop(made, breakdown, limits)
        if isinstance(verdict, Finding) or isinstance(pipeline, Unavailable):
            return verdict
    if isinstance(pipeline, Unavailable):
        return NotApplicable(reason=str(pipeline))
    return _in_the_pipeline(pipeline, breakdown, limits)


@dataclass(frozen=True, slots=True)
class Making:
    """What making batches in the training loop takes, in ms per step: of lines, and of converting new arrays.

    ``times`` divides the sum among the stages of the step.
    """

    times: Mapping[Stage, float]
    lines: tuple[tuple[Location | None, float], ...]
    converting_ms: float
    at: Location | None

    @property
    def total_ms(self) -> float:
        """The time of all of it."""
        return sum(self.times.values())


def _made(
    samples: StackSamples | None,
    body: LoopBody | None,
    conversions: Conversions | None,
    limits: Limits,
) -> Making:
    """Divide the loop's own time by the samples in lines that make batches, if they are enough."""
    makers = samples.makers if samples and body else ()
    if sum(line.seen for line in makers) < limits.stack_samples:
        makers = ()
    new = [array for array in conversions.arrays if array.same is False] if conversions else []
    share = samples.share(makers) if samples else 0.0
    host_ms, between_ms = (body.host_ms, body.between_ms) if body else (0.0, 0.0)
    times = {
        Stage.HOST: host_ms * share + sum(array.host_ms for array in new),
        Stage.BETWEEN: between_ms * share + sum(array.between_ms for array in new),
    }
    each = ((line.at, (host_ms + between_ms) * samples.share([line])) for line in makers if samples)
    called_at = conversions.at if conversions else None
    lines = tuple(each)
    return Making(times, lines, sum(array.ms for array in new), lines[0][0] if lines else called_at)


def _in_the_loop(made: Making, breakdown: Breakdown, limits: Limits) -> Verdict:
    """Compare the making of batches in the training loop with the step."""
    share = made.total_ms / breakdown.step_ms if breakdown.step_ms else 0.0
    label = "share of the step spent making a batch in Python"
    measure = Measure(label, ratio(share), ratio(limits.between))
    summary = f"Making a batch in the training loop takes {milliseconds(made.total_ms)} of {breakdown.each_step}"
    if share < limits.between:
        return Healthy(summary=summary, evidence=(measure,))
    rows = [(at or "unknown", ms(time_ms)) for at, time_ms in made.lines[:8]]
    if made.converting_ms:
        rows.append(("conversion of new arrays to tensors", ms(made.converting_ms)))
    return Finding(
        summary=summary,
        evidence=(measure, Table(("your line", "time per step, estimated"), tuple(rows))),
        remedies=(Remedy("Make the batches in a tf.data pipeline", PIPELINE, made.at),),
        effects=tuple(
            Effect(stage, 0.0, StepWork.MAKING_BATCHES, ms(time_ms), bound=Bound.AT_MOST)
            for stage, time_ms in made.times.items()
            if time_ms
        ),
    )


def _in_the_pipeline(pipeline: InputPipeline, breakdown: Breakdown, limits: Limits) -> Verdict:
    """Compare the time in Python with the pipeline's slowest segment."""
    slowest = pipeline.slowest
    paths = slowest.stages if slowest else {}
    stages = [stage for stage in pipeline.stages if stage.path in paths and stage.python_ms]
    python = sum(stage.python_ms for stage in stages)
    share = python / slowest.ms if slowest and slowest.ms else 0.0
    label = "share of the pipeline's slowest segment spent in Python"
    measures = (
        Measure(label, ratio(min(1.0, share)), ratio(limits.share)),
        Measure("Python time per step", ms(python)),
    )
    if not breakdown.waits_for_input:
        return _not_waiting(pipeline, breakdown, measures[1])
    if share < limits.share:
        summary = (
            f"Python takes {milliseconds(python)} per step in the slowest part of the pipeline"
        )
        return Healthy(summary=summary, evidence=measures)
    return _finding(pipeline, stages, breakdown, measures)


def _not_waiting(pipeline: InputPipeline, breakdown: Breakdown, measure: Measure) -> Verdict:
    if any(dataset.python for dataset in pipeline.idle):
        return NotApplicable(reason=pipeline.why_idle)
    python = sum(stage.python_ms for stage in pipeline.stages)
    summary = (
        f"Python takes {milliseconds(python)} per step in the pipeline; {breakdown.little_wait}"
    )
    return Healthy(summary=summary, evidence=(measure,))


def _finding(
    pipeline: InputPipeline,
    stages: list[StageTime],
    breakdown: Breakdown,
    measures: tuple[Measure, ...],
) -> Finding:
    slowest = max(stages, key=lambda stage: stage.python_ms)
    python = sum(stage.python_ms for stage in stages)
    rows = tuple(
        (stage.title, stage.at or "unknown", ms(stage.python_ms), ms(stage.work_ms))
        for stage in stages
    )
    columns = ("stage", "your line", "Python time per step", "work per step")
    return Finding(
        summary=f"{slowest.title} makes the step wait: {milliseconds(python)} of Python in {breakdown.each_step}",
        evidence=(*measures, Table(columns, rows)),
        remedies=tuple(_remedy(stage, pipeline.python_kind) for stage in stages),
        effects=(*(_effect(stage) for stage in stages), *_interpreter(pipeline, breakdown)),
    )


def _effect(stage: StageTime) -> Effect:
    remaining = max(0.0, 1.0 - stage.python_ms / stage.work_ms) if stage.work_ms else 0.0
    return Effect(Stage.INPUT, remaining, stage.path, ms(stage.work_ms), bound=Bound.AT_MOST)


def _interpreter(pipeline: InputPipeline, breakdown: Breakdown) -> tuple[Effect, ...]:
    """Return what the training loop may gain in addition: it no longer competes for the interpreter."""
    share, host = pipeline.python_beside(breakdown.step_ms), breakdown[Stage.HOST]
    if not share or not host:
        return ()
    return (Effect(Stage.HOST, 1.0 - share, StepWork.INTERPRETER, ms(host), bound=Bound.AT_MOST),)


def _remedy(stage: StageTime, python_kind: str) -> Remedy:
    if python_kind == InputKind.PY_DATASET:
        return Remedy("Load with several processes, or with more processes", PROCESSES, stage.at)
    if stage.kind == GENERATOR or python_kind == InputKind.GENERATOR:
        return Remedy("Read with tf.data instead of a generator", FROM_FILES, stage.at)
    return Remedy(f"Write {stage.title} in TensorFlow operations", NATIVE, stage.at)


PROCESSES = "super().__init__(workers=4, use_multiprocessing=True)  # in your PyDataset's __init__"

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
    """A py_function takes 30 ms of each 33 ms step."""
    return check(_pipeline(python_ms=30.0), Breakdown.of(input=23.0, device=10.0), None, None, None)


def healthy() -> Verdict:
    """The same map in TensorFlow operations."""
    return check(_pipeline(python_ms=0.0), Breakdown.of(input=23.0, device=10.0), None, None, None)


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
