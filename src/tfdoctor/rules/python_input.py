"""Python code produces the batches.

## What it checks

How much time the input pipeline's functions spend in the Python interpreter (`tf.py_function`,
`tf.numpy_function`, `Dataset.from_generator`, Keras' `PyDataset` and generators), on a run that waits
for input, or whose training loop waits for the interpreter meanwhile.

## Why it matters

Python runs on one thread at a time. The training loop also runs Python to start every step, so it slows
down. TensorFlow's own operations run on all cores in parallel.

## How to fix

Write the transformation in TensorFlow operations (`tf.io.decode_jpeg`, `tf.image`, Keras
preprocessing layers), or load with `keras.utils.image_dataset_from_directory`. If the transformation
must stay in Python, begin with the line that takes most of its time: do once, before training, what does not
change from batch to batch, and replace loops over examples with NumPy operations on whole batches. Then use several
processes: `keras.utils.PyDataset(workers=4, use_multiprocessing=True)`. If the loop's own TensorFlow operations
make the batch, call them inside the `tf.function`, which runs all of them in one call.

## Holds for

TensorFlow 2.3 and later. Batches that the script makes itself and passes to a `tf.function` are detected in
recordings of `tfdoctor profile`; the time includes the conversion of new arrays to tensors. Arrays that stay the
same are left to repeated-conversion.

The lines come from stack samples of all threads of the process, which `tfdoctor profile` takes. Worker processes
(`use_multiprocessing=True`, `multiprocessing`) are not sampled: their lines are unknown.

## Sources

- [tf.data guide: consuming Python generators](https://www.tensorflow.org/guide/data#consuming_python_generators)
- [tf.py_function](https://www.tensorflow.org/api_docs/python/tf/py_function)
- [keras.utils.PyDataset](https://keras.io/api/utils/python_utils/#pydataset-class)
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.input.input_pipeline import GENERATOR, InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.input_lines import InputLine, InputLines
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.facts.step_time.stack_samples import SampledLine, StackSamples
from tfdoctor.humanize import milliseconds, percent
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
    line: float = limit(
        0.3,
        "Smallest share of the stack samples of the Python that makes input, at which its most frequent line is "
        "named first; below it, the time is spread over many lines",
        most=1.0,
    )
    call_ms: float = limit(
        3.0,
        "Longest way into a training call and out of it that needs no other explanation than Python itself "
        "(as in small-batch); a longer one waits for the interpreter",
    )
    interpreter: float = limit(
        0.1,
        "Smallest share of the step in which the training loop waits for the interpreter while the input runs "
        "Python; below it, the operating system may be the cause",
        most=1.0,
    )


LIMITS = Limits()


def check(  # noqa: PLR0913, PLR0917 - batches are made in the loop or in the pipeline: the facts of both
    pipeline: InputPipeline | Unavailable,
    breakdown: Breakdown,
    samples: StackSamples | None,
    body: LoopBody | None,
    conversions: Conversions | None,
    input_lines: InputLines | Unavailable,
    overhead: PythonOverhead | None,
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
    if not breakdown.waits_for_input and overhead:
        contended = _contended(pipeline, breakdown, overhead, limits)
        if contended:
            return _with_lines(contended, input_lines, _python_ms(pipeline.stages), limits)
    return _in_the_pipeline(pipeline, breakdown, input_lines, limits)


@dataclass(frozen=True, slots=True)
class Making:
    """What making batches in the training loop takes, in ms per step: of lines, and of converting new arrays.

    ``times`` divides the sum among the stages of the step.
    """

    times: Mapping[Stage, float]
    lines: tuple[tuple[Location | None, str, float], ...]  # with what each calls, the longest first
    converting_ms: float
    remedy: Remedy

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
    lines = _joined(makers, (host_ms + between_ms) * share)
    remedy = _eager(makers, samples.function if samples else "") or Remedy(
        "Make the batches in a tf.data pipeline", PIPELINE, conversions.at if conversions else None
    )
    at = lines[0][0] if lines else remedy.at
    return Making(times, lines, sum(array.ms for array in new), replace(remedy, at=at))


def _joined(
    makers: Sequence[SampledLine], all_ms: float
) -> tuple[tuple[Location | None, str, float], ...]:
    """Divide the time among lines; a line is sampled in several places, of which the first is the most frequent."""
    seen: Counter[Location | None] = Counter()
    calls: dict[Location | None, str] = {}
    for maker in makers:
        seen[maker.at] += maker.seen
        calls.setdefault(maker.at, maker.calls)
    return tuple((at, calls[at], all_ms * n / seen.total()) for at, n in seen.most_common())


def _eager(makers: Sequence[SampledLine], function: str) -> Remedy | None:
    """Return what to do where TensorFlow's operations, called one by one, make the batch; None for other Python."""
    operations = Counter[str]()
    for maker in makers:
        if _operation(maker.calls):
            operations[maker.calls] += maker.seen
    if 2 * operations.total() <= sum(maker.seen for maker in makers):
        return None
    name = operations.most_common(1)[0][0].replace("tensorflow.", "tf.", 1)
    return Remedy(f"Call {name} inside {function or 'the tf.function'}", INSIDE)


def _operation(function: str) -> bool:
    """Whether it is an operation of TensorFlow's API, other than one that converts an array to a tensor."""
    package, _, name = function.partition(".")
    exported = package == "tensorflow" and not name.startswith("python.")
    return exported and name not in CONVERTING


def _in_the_loop(made: Making, breakdown: Breakdown, limits: Limits) -> Verdict:
    """Compare the making of batches in the training loop with the step."""
    share = made.total_ms / breakdown.step_ms if breakdown.step_ms else 0.0
    label = "share of the step spent making a batch in Python"
    measure = Measure(label, ratio(share), ratio(limits.between))
    summary = f"Making a batch in the training loop takes {milliseconds(made.total_ms)} of {breakdown.each_step}"
    if share < limits.between:
        return Healthy(summary=summary, evidence=(measure,))
    rows = [
        (at or "unknown", calls or "-", ms(time_ms))
        for at, calls, time_ms in made.lines[:MOST_LINES]
    ]
    if made.converting_ms:
        rows.append(("conversion of new arrays to tensors", "-", ms(made.converting_ms)))
    columns = ("your line", "calls", "time per step, estimated")
    return Finding(
        summary=summary,
        evidence=(measure, Table(columns, tuple(rows))),
        remedies=(made.remedy,),
        effects=tuple(
            Effect(stage, 0.0, StepWork.MAKING_BATCHES, ms(time_ms), bound=Bound.AT_MOST)
            for stage, time_ms in made.times.items()
            if time_ms
        ),
    )


def _in_the_pipeline(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    lines: InputLines | Unavailable,
    limits: Limits,
) -> Verdict:
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
    finding = _finding(pipeline, stages, breakdown, measures)
    return _with_lines(finding, lines, python, limits)


def _not_waiting(pipeline: InputPipeline, breakdown: Breakdown, measure: Measure) -> Verdict:
    if any(dataset.python for dataset in pipeline.idle):
        return NotApplicable(reason=pipeline.why_idle)
    python = sum(stage.python_ms for stage in pipeline.stages)
    summary = (
        f"Python takes {milliseconds(python)} per step in the pipeline; {breakdown.little_wait}"
    )
    return Healthy(summary=summary, evidence=(measure,))


def _python_ms(stages: Sequence[StageTime]) -> float:
    return sum(stage.python_ms for stage in stages)


def _contended(
    pipeline: InputPipeline, breakdown: Breakdown, overhead: PythonOverhead, limits: Limits
) -> Finding | None:
    """Return the finding where the input is ready in time and its Python keeps the training loop waiting.

    Only one thread runs Python at a time. The trace shows no wait for the interpreter, but the way into a call
    takes far longer than Python needs for it.
    """
    waited_ms = min(
        max(0.0, overhead.edges_ms - limits.call_ms),
        pipeline.python_beside(breakdown.step_ms) * breakdown[Stage.HOST],
    )
    share = waited_ms / breakdown.step_ms if breakdown.step_ms else 0.0
    stages = [stage for stage in pipeline.stages if stage.python_ms]
    if share < limits.interpreter or not stages:
        return None
    finding = _finding(pipeline, stages, breakdown, ())
    waiting = Effect(Stage.HOST, 0.0, StepWork.INTERPRETER, ms(waited_ms), bound=Bound.AT_MOST)
    label = "share of the step in which the training loop waits for the interpreter, estimated"
    return replace(
        finding,
        summary=f"{milliseconds(_python_ms(stages))} of Python per step in the pipeline keep the training loop "
        f"from the interpreter for up to {milliseconds(waited_ms)} of {breakdown.each_step}",
        evidence=(
            Measure(label, ratio(share), ratio(limits.interpreter)),
            Measure("Python time per step", ms(_python_ms(stages))),
            *finding.evidence,
        ),
        effects=(*(_effect(stage) for stage in stages), waiting),
    )


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


def _with_lines(
    finding: Finding, lines: InputLines | Unavailable, python_ms: float, limits: Limits
) -> Finding:
    """Add the lines that the stack samples show, and put the most frequent one first if it stands out."""
    if isinstance(lines, Unavailable):
        missing = Table(("lines that take the time",), ((f"unknown, because {lines}",),))
        return replace(finding, evidence=(*finding.evidence, missing))
    columns = (
        "your line",
        "called at",
        "calls",
        "share of the samples",
        "time per step, estimated",
    )
    rows = tuple(
        (
            line.at,
            line.caller or "-",
            line.calls or "-",
            ratio(lines.share(line)),
            ms(lines.share(line) * python_ms),
        )
        for line in lines.lines[:MOST_LINES]
    )
    first = lines.lines[0]
    named = lines.samples >= limits.stack_samples and lines.share(first) >= limits.line
    remedies = (_line_remedy(first, lines.share(first)),) if named and first.certain else ()
    return replace(
        finding,
        evidence=(*finding.evidence, Table(columns, rows)),
        remedies=(*remedies, *finding.remedies),
    )


def _line_remedy(line: InputLine, share: float) -> Remedy:
    action = (
        f"Replace {line.calls}, or call it less often for each batch"
        if line.calls
        else "Replace this Python with NumPy or TensorFlow operations on whole batches"
    )
    return Remedy(f"{action}: the line takes {percent(share)} of the input's Python", at=line.at)


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


MOST_LINES = 8
"""Lines that a finding shows."""

CONVERTING = {"constant", "convert_to_tensor"}
"""Functions of TensorFlow's that make a tensor of an array: a tf.function does that as well."""

INSIDE = """\
@tf.function
def train_step():
    x = tf.random.uniform((2000, 1))  # in the graph: no call from Python for each operation
    ..."""

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
    at, make = Location("train.py", 14), Location("train.py", 12)
    lines = InputLines((InputLine(at, 45, calls="PIL.Image.open"), InputLine(make, 5)))
    steps = Breakdown.of(input=23.0, device=10.0)
    return check(_pipeline(python_ms=30.0), steps, None, None, None, lines, None)


def healthy() -> Verdict:
    """The same map in TensorFlow operations."""
    steps = Breakdown.of(input=23.0, device=10.0)
    return check(
        _pipeline(python_ms=0.0), steps, None, None, None, Unavailable("not sampled"), None
    )


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
