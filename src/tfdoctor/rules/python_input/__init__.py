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
preprocessing layers), or load with `keras.utils.image_dataset_from_directory`. The finding names the function that
takes most of the time, with the lines that call it, and shows what TensorFlow has in its place where this is known.
If the transformation must stay in Python, begin with these lines: do once, before training, what does not change
from batch to batch, and replace loops over examples with NumPy operations on whole batches. Then use several
processes: `keras.utils.PyDataset(workers=4, use_multiprocessing=True)`. If the loop's own TensorFlow operations
make the batch, call them inside the `tf.function`, which runs all of them in one call.

## Holds for

TensorFlow 2.3 and later. Batches that the script makes itself and passes to a `tf.function` are detected in
recordings of `tfdoctor profile`; the time includes the conversion of new arrays to tensors. Arrays that stay the
same are left to repeated-conversion. What counts is the time beyond that which tf.data takes for a batch itself.

The lines come from stack samples of all threads of the process, which `tfdoctor profile` takes. Worker processes
(`use_multiprocessing=True`, `multiprocessing`) are not sampled: their lines are unknown, and the finding is at the
`__getitem__` of the `PyDataset`. Functions written in C, such as those of `cv2`, appear as lines that call nothing.

Users met it as a generator in Python that is slower than the GPU.

## Sources

- [tf.data guide: consuming Python generators](https://www.tensorflow.org/guide/data#consuming_python_generators)
- [tf.py_function](https://www.tensorflow.org/api_docs/python/tf/py_function)
- [TensorFlow's operations](https://www.tensorflow.org/api_docs/python/tf)
- [keras.utils.PyDataset](https://keras.io/api/utils/python_utils/#pydataset-class)
- [Keras issue 7168: a generator slower than the GPU](https://github.com/keras-team/keras/issues/7168)
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.input.input_pipeline import GENERATOR, InputPipeline
from tfdoctor.facts.input.pipeline_stages import StageTime
from tfdoctor.facts.run.program import Dataset
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.loop_body import LoopBody
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.facts.step_time.stack_samples import SampledLine, StackSamples
from tfdoctor.rules.python_input.input_lines import InputLine, InputLines
from tfdoctor.rules.python_input.tensorflow_calls import equivalents
from tfdoctor.terms import text
from tfdoctor.terms.humanize import milliseconds
from tfdoctor.terms.kinds import InputKind
from tfdoctor.terms.units import ms, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Cell,
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
BY_HAND = "the Python of the stage has to be rewritten in TensorFlow operations"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much Python is reported, in the pipeline and in the training loop."""

    share: float = share_limit(
        0.1,
        "Smallest share of the pipeline's slowest segment that Python must take; below it, replacing the "
        "Python code is not worth the work",
    )
    between: float = share_limit(
        0.05,
        "Smallest share of the step that making a batch in Python must take, between two calls of the "
        "training function",
    )
    stack_samples: float = limit(
        5.0, "Stack samples needed in lines that make batches before these lines count"
    )
    line: float = share_limit(
        0.3,
        "Smallest share of the input's Python, by stack samples, that one function must take to be named",
    )
    call_ms: float = limit(
        3.0,
        "Longest time in ms that entering and leaving a training call takes by itself (as in small-batch); in "
        "longer ones the call waits for the interpreter",
    )
    interpreter: float = share_limit(
        0.1,
        "Smallest share of the step in which the training loop waits for the interpreter while the input runs "
        "Python; below it, the operating system may be the cause",
    )


TAKING_MS = 0.07
"""What `next()` of a tf.data iterator takes of a step whose batch is ready: 0.07 ms for one tensor, 0.09 ms for
five (TensorFlow 2.21, an AMD EPYC, 2026-11-24). Passing one array of 25 kB instead of a tensor took the call 0.01
ms more, five small arrays 0.08 ms."""


def check(  # noqa: PLR0913, PLR0917 - batches are made in the loop or in the pipeline: the facts of both
    pipeline: InputPipeline | Unavailable,
    breakdown: Breakdown,
    samples: StackSamples | None,
    body: LoopBody | None,
    conversions: Conversions | None,
    input_lines: InputLines | Unavailable,
    overhead: PythonOverhead | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Measure the Python of the training loop, else of the pipeline."""
    made = Making.of(samples, body, conversions, limits)
    if made.total_ms:
        verdict = _in_the_loop(made, breakdown, limits)
        if isinstance(verdict, Finding) or isinstance(pipeline, Unavailable):
            return verdict
    if isinstance(pipeline, Unavailable):
        return NotApplicable(reason=str(pipeline))
    contended = None
    if not breakdown.waits_for_input and overhead:
        contended = _contended(pipeline, breakdown, overhead, input_lines, limits)
    return contended or _in_the_pipeline(pipeline, breakdown, input_lines, limits)


@dataclass(frozen=True, slots=True)
class Making:
    """What making batches in the training loop takes, in ms per step: of lines, and of converting new arrays.

    ``times`` divides the sum among the stages of the step.
    """

    times: Mapping[Stage, float]
    lines: tuple[tuple[Location | None, str, float], ...]  # with what each calls, the longest first
    converting_ms: float
    remedy: Remedy
    taking_ms: float  # what it takes to get a batch from elsewhere

    @classmethod
    def of(
        cls,
        samples: StackSamples | None,
        body: LoopBody | None,
        conversions: Conversions | None,
        limits: Limits,
    ) -> Self:
        """Divide the loop's own time by the samples in lines that make batches, if they are enough."""
        makers = samples.makers if samples and body else ()
        if sum(line.seen for line in makers) < limits.stack_samples:
            makers = ()
        arrays = conversions.arrays if conversions else ()
        new = [array for array in arrays if array.same is False]
        share = samples.share(makers) if samples else 0.0
        host_ms, between_ms = (body.host_ms, body.between_ms) if body else (0.0, 0.0)
        times = {
            Stage.HOST: host_ms * share + sum(array.host_ms for array in new),
            Stage.BETWEEN: between_ms * share + sum(array.between_ms for array in new),
        }
        lines = _by_line(makers, (host_ms + between_ms) * share)
        inside = _in_function(makers, samples.function if samples else "")
        code = "\n".join((*_examples((calls, line_ms) for _, calls, line_ms in lines), PIPELINE))
        at = conversions.at if conversions else None
        remedy = inside or Remedy("Make the batches in a tf.data pipeline", code, at)
        at = lines[0][0] if lines else remedy.at
        converting_ms, taking_ms = sum(array.ms for array in new), 0.0 if inside else TAKING_MS
        return cls(times, lines, converting_ms, replace(remedy, at=at), taking_ms)

    @property
    def total_ms(self) -> float:
        """The time of all of it."""
        return sum(self.times.values())

    @property
    def remaining(self) -> float:
        """The share of it that another way of making batches takes at least, 0 to 1."""
        return min(1.0, self.taking_ms / self.total_ms) if self.total_ms else 1.0

    @property
    def table(self) -> Table:
        """The time of each line, and of the conversions."""
        rows: list[tuple[Cell, ...]] = [
            (at or "unknown", calls or "-", ms(time_ms))
            for at, calls, time_ms in self.lines[:MOST_LINES]
        ]
        if others := self.lines[MOST_LINES:]:
            rows.append((OTHERS, "-", ms(sum(time_ms for *_, time_ms in others))))
        if self.converting_ms:
            rows.append(("conversion of new arrays to tensors", "-", ms(self.converting_ms)))
        return Table(("your line", "calls", "time per step, estimated"), tuple(rows))


def _by_line(
    makers: Sequence[SampledLine], all_ms: float
) -> tuple[tuple[Location | None, str, float], ...]:
    """Divide the time among lines; a line is sampled in several places, of which the first is the most frequent."""
    seen: Counter[Location | None] = Counter()
    calls: dict[Location | None, str] = {}
    for maker in makers:
        seen[maker.at] += maker.seen
        calls.setdefault(maker.at, maker.calls)
    return tuple((at, calls[at], all_ms * n / seen.total()) for at, n in seen.most_common())


def _in_function(makers: Sequence[SampledLine], function: str) -> Remedy | None:
    """Return what to do where TensorFlow's operations, called one by one, make the batch; None for other Python."""
    operations = Counter[str]()
    for maker in makers:
        if OPERATION.match(maker.calls):
            operations[maker.calls] += maker.seen
    if 2 * operations.total() <= sum(maker.seen for maker in makers):
        return None
    name = operations.most_common(1)[0][0].replace("tensorflow.", "tf.", 1)
    code = INSIDE.format(function=function or "train_step", name=name)
    return Remedy(f"Call {name} inside {function or 'the tf.function'}", code)


OPERATION = re.compile(r"tensorflow\.(?!python\.|(?:constant|convert_to_tensor)$)")
"""An operation of TensorFlow's API, but none that makes a tensor of an array: a tf.function does that, too."""


def _in_the_loop(made: Making, breakdown: Breakdown, limits: Limits) -> Verdict:
    """Compare the making of batches in the training loop with the step."""
    share = breakdown.share(made.total_ms * (1.0 - made.remaining))
    label = "share of the step spent making a batch in Python"
    if made.taking_ms:
        label += f", beyond the {milliseconds(made.taking_ms)} that taking one from tf.data needs"
    measure = Measure.share(label, share, limits.between)
    summary = f"Making a batch in the training loop takes {milliseconds(made.total_ms)} of {breakdown.each_step}"
    if share < limits.between:
        return Healthy(summary=summary, evidence=(measure,))
    return Finding(
        summary=summary,
        evidence=(measure, made.table),
        remedies=(made.remedy,),
        effects=Effect.of_stages(made.times, StepWork.MAKING_BATCHES, made.remaining),
    )


def _in_the_pipeline(
    pipeline: InputPipeline, breakdown: Breakdown, lines: InputLines | Unavailable, limits: Limits
) -> Verdict:
    """Compare the time in Python with the pipeline's slowest segment."""
    slowest = pipeline.slowest
    stages = [stage for stage in pipeline.limiting if stage.python_ms]
    python = _python_ms(stages)
    share = python / slowest.ms if slowest and slowest.ms else 0.0
    label = "share of the pipeline's slowest segment spent in Python"
    whole = Measure("Python time per step", ms(python))
    measures = (Measure.share(label, min(1.0, share), limits.share), whole)
    if not breakdown.waits_for_input:
        if any(dataset.python for dataset in pipeline.idle):
            return NotApplicable(reason=pipeline.why_idle)
        taken = f"Python takes {milliseconds(_python_ms(pipeline.stages))} per step in the pipeline"
        return Healthy(summary=f"{taken}; {breakdown.little_wait}", evidence=(whole,))
    if share < limits.share:
        taken = f"Python takes {milliseconds(python)} per step"
        return Healthy(summary=f"{taken} in the slowest part of the pipeline", evidence=measures)
    finding = _finding(pipeline, stages, breakdown, lines, limits)
    return replace(finding, evidence=(*measures, *finding.evidence))


def _python_ms(stages: Sequence[StageTime]) -> float:
    return sum(stage.python_ms for stage in stages)


def _contended(
    pipeline: InputPipeline,
    breakdown: Breakdown,
    overhead: PythonOverhead,
    lines: InputLines | Unavailable,
    limits: Limits,
) -> Finding | None:
    """Return the finding where the input is ready in time and its Python keeps the training loop waiting.

    Only one thread runs Python at a time. The trace shows no wait for the interpreter, but the way into a call
    takes far longer than Python needs for it.
    """
    beside_ms = pipeline.python_beside(breakdown.step_ms) * breakdown[Stage.HOST]
    waited_ms = min(max(0.0, overhead.edges_ms - limits.call_ms), beside_ms)
    stages = [stage for stage in pipeline.stages if stage.python_ms]
    share = breakdown.share(waited_ms)
    if share < limits.interpreter or not stages:
        return None
    finding, python = _finding(pipeline, stages, breakdown, lines, limits), _python_ms(stages)
    label = "share of the step in which the training loop waits for the interpreter, estimated"
    measure = Measure.share(label, share, limits.interpreter)
    waiting = Effect.of_stages({Stage.HOST: waited_ms}, StepWork.INTERPRETER)
    return replace(
        finding,
        summary=f"{milliseconds(python)} of Python per step in the pipeline keep the training loop from the "
        f"interpreter for up to {milliseconds(waited_ms)} of {breakdown.each_step}",
        evidence=(measure, Measure("Python time per step", ms(python)), *finding.evidence),
        effects=(*map(_effect, stages), *waiting),
    )


def _finding(
    pipeline: InputPipeline,
    stages: Sequence[StageTime],
    breakdown: Breakdown,
    lines: InputLines | Unavailable,
    limits: Limits,
) -> Finding:
    """Return the finding about all Python of these stages: what its saving counts, its first remedy changes.

    The training loop may gain in addition: it no longer competes for the interpreter.
    """
    slowest = max(stages, key=lambda stage: stage.python_ms)
    python, beside = _python_ms(stages), pipeline.python_beside(breakdown.step_ms)
    table = Table.of(
        stages,
        ("stage", lambda stage: stage.title),
        ("your line", lambda stage: stage.at),
        ("Python time per step", lambda stage: ms(stage.python_ms)),
        ("work per step", lambda stage: ms(stage.work_ms)),
    )
    host = {Stage.HOST: breakdown[Stage.HOST] if beside else 0.0}
    competing = Effect.of_stages(host, StepWork.INTERPRETER, 1.0 - beside)
    return Finding(
        summary=f"{slowest.title} makes the step wait: {milliseconds(python)} of Python in {breakdown.each_step}",
        evidence=(table, _line_table(lines, python)),
        remedies=_remedies(stages, slowest.at, pipeline.python_kind, lines, limits),
        effects=(*map(_effect, stages), *competing),
    )


def _line_table(lines: InputLines | Unavailable, python_ms: float) -> Table:
    """Divide the Python among the lines that the stack samples show."""
    if isinstance(lines, Unavailable):
        return Table(("lines that take the time",), ((f"unknown, because {lines}",),))

    def taken(*some: InputLine) -> tuple[Cell, Cell]:
        return ratio(lines.share(*some)), ms(lines.share(*some) * python_ms)

    rows: list[tuple[Cell, ...]] = [
        (line.at, line.caller or "-", line.calls or "-", *taken(line))
        for line in lines.lines[:MOST_LINES]
    ]
    if others := lines.lines[MOST_LINES:]:
        rows.append((OTHERS, "-", "-", *taken(*others)))
    return Table(LINE_COLUMNS, tuple(rows))


def _remedies(
    stages: Sequence[StageTime],
    at: Location | None,
    python_kind: str,
    lines: InputLines | Unavailable,
    limits: Limits,
) -> tuple[Remedy, ...]:
    """Return the change of all these stages, and what saves a part of the time where their Python has to stay."""
    sampled = InputLines(()) if isinstance(lines, Unavailable) else lines
    heavy = sampled.heaviest if sampled.samples >= limits.stack_samples else ()
    named = bool(heavy) and sampled.share(*heavy) >= limits.line
    takes = sampled.takes(at) if named else ""
    rarely = []
    if named:
        fewer = (
            f"call {heavy[0].calls} less often for each batch" if heavy[0].calls else WITHOUT_LOOPS
        )
        rarely.append(Remedy(f"{STAYS}, {fewer}", at=heavy[0].at))
    if python_kind == InputKind.PY_DATASET:
        return Remedy(f"{MORE_PROCESSES}{takes}", PROCESSES, at), *rarely
    native = _examples((line.calls, line.seen) for line in sampled.lines)
    action, code = _in_tensorflow(stages, python_kind, native)
    if not native:
        rarely.append(Remedy(f"{STAYS}, make the batches in several processes", WORKERS))
    return Remedy(f"{action}{takes}", code, at), *rarely


def _in_tensorflow(
    stages: Sequence[StageTime], python_kind: str, native: Sequence[str]
) -> tuple[str, str]:
    """Return the change of all stages, and its code: TensorFlow's where it is known, else its general shape."""
    generated = [s for s in stages if s.kind == GENERATOR or python_kind == InputKind.GENERATOR]
    mapped = [(stage.title, _function(stage)) for stage in stages if stage not in generated]
    name = next((function for _, function in mapped if function), "prepare")
    titles = [f"{function}()" if function else title for title, function in mapped]
    actions = ["read with tf.data instead of a generator"] if generated else []
    actions += [f"write {' and '.join(titles)} in TensorFlow operations"] if titles else []
    source = (SOURCE,) if generated else ()
    code = (*source, *(native or (FUNCTION.format(name=name),)), MAP.format(name=name))
    return text.capitalized(" and ".join(actions)), "\n".join(code)


def _function(stage: StageTime) -> str:
    """Return the name of the user's function that a stage runs; "" for a lambda or none."""
    dataset = stage.dataset
    named = dataset and dataset.function_at and dataset.function.isidentifier()
    return dataset.function if dataset and named else ""


def _examples(calls: Iterable[tuple[str, float]]) -> tuple[str, ...]:
    """Return TensorFlow's code in place of the functions that take most, by their times or samples."""
    return tuple(
        f"# in place of {' '.join(filter(None, (same.python, same.condition)))}:\nresult = {same.tensorflow}"
        for same in equivalents(calls)
    )


def _effect(stage: StageTime) -> Effect:
    """Return a ceiling: the share of other operations remains, and of the time between operations as much.

    On crowded cores the function's threads mostly wait for a core between two operations, or after the last.
    """
    known = max(stage.python_ms, sum(stage.operations.values()) or stage.work_ms)
    remaining = 1.0 - stage.python_ms / known if known else 0.0
    return stage.scaled(remaining, Bound.AT_MOST)


MOST_LINES = 8
"""Lines that a finding shows."""

LINE_COLUMNS = (
    "your line",
    "called at",
    "calls",
    "share of the samples",
    "time per step, estimated",
)

OTHERS = "other lines"

STAYS = "Where Python has to stay"

WITHOUT_LOOPS = "replace loops over examples with NumPy operations on whole batches"

MORE_PROCESSES = "Load with several processes, or with more processes"

INSIDE = """\
@tf.function
def {function}():
    x = {name}(...)  # in the graph: no call from Python for each operation
    ..."""

PROCESSES = "super().__init__(workers=4, use_multiprocessing=True)  # in your PyDataset's __init__"

PIPELINE = """\
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).repeat().batch(128)
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
for features, target in dataset:
    loss = train_step(features, target)  # prepare() in TensorFlow operations, on whole batches"""

SOURCE = "dataset = tf.data.Dataset.from_tensor_slices(examples)  # or what else the generator reads: paths, rows"

FUNCTION = """\
def {name}(*example):
    ...  # TensorFlow operations, without tf.py_function and tf.numpy_function
"""

MAP = "dataset = dataset.map({name}, num_parallel_calls=tf.data.AUTOTUNE)"

WORKERS = """\
class Batches(keras.utils.PyDataset):
    def __init__(self):
        super().__init__(workers=4, use_multiprocessing=True)

    def __len__(self):
        return BATCHES  # of an epoch

    def __getitem__(self, index):
        return make_batch(index)"""


LINES = (
    InputLine(Location("train.py", 14), 45, calls="PIL.Image.open"),
    InputLine(Location("train.py", 12), 5),
)
AUGMENT = Dataset.of("Map", id=1, function="augment", at=Location("train.py", 12))


def example(  # noqa: PLR0913 - the facts of both places where batches are made
    *stages: StageTime,
    pipeline: InputPipeline | Unavailable | None = None,
    breakdown: Breakdown | None = None,
    samples: StackSamples | None = None,
    body: LoopBody | None = None,
    conversions: Conversions | None = None,
    lines: InputLines | Unavailable = Unavailable("not sampled"),
    overhead: PythonOverhead | None = None,
) -> Verdict:
    """Judge a pipeline whose map takes 31 ms of each 33 ms step, or other stages."""
    slow = StageTime.of("Root::Prefetch::Map", 31.0, dataset=AUGMENT)
    return check(
        pipeline or InputPipeline.of(StageTime.of("Root::Prefetch"), *(stages or [slow])),
        breakdown or Breakdown.of(input=23.0, device=10.0),
        samples,
        body,
        conversions,
        lines,
        overhead,
    )


def sick() -> Verdict:
    """A py_function takes 30 ms of each 33 ms step."""
    slow = StageTime.of("Root::Prefetch::Map", 31.0, python_ms=30.0, dataset=AUGMENT)
    return example(slow, lines=InputLines(LINES))


def healthy() -> Verdict:
    """The same map in TensorFlow operations."""
    return example()
