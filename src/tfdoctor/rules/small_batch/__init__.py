"""Fixed per-step overhead dominates.

## What it checks

The part of a step that does not depend on the batch size, in a job that does not wait for its input. On a CPU
that is the time Python takes to enter and leave the training call: before the first operation, after the last
one, and between two calls, with the pauses in which no thread of the graph works. On a GPU or TPU it is the time in
which the device waits for the host. For batches of 16 examples or fewer on a CPU, the time to start the
operations counts as well: it was 2.8 ms per step for an LSTM with 2 examples and 2.9 ms with 64. A recording of one
batch size cannot show how long the operations themselves would take with a larger batch; the saving, per example,
assumes for those on small tensors that they take no longer, and is an upper bound.

## Why it matters

A call of a compiled function takes Python about half a millisecond (0.4 ms for Keras' `fit`, measured on a CPU),
for any batch size. If the operations of a step take about as long, half of the run is overhead.

## How to fix

With Keras' `fit`, `compile(steps_per_execution=20)` runs 20 steps in one call; callbacks then see every 20th
batch. Choose a number that divides the steps of an epoch: Keras fills up the last call of an epoch, and trains on
more batches than before. In a custom loop, let the `tf.function` process several batches. A larger batch gives
each step more work, where memory allows. Where the model itself is so small that a step stays short, a faster
precision or a faster GPU gains nothing. A larger batch changes the training: raise the learning rate too (a common
start: in proportion, with a warm-up) and compare the accuracy.

## Holds for

TensorFlow 2.4 and later, on any device. Jobs that wait for their input (a larger batch would only wait longer)
and steps that run eagerly are not checked.

## Sources

- [Model training APIs, Keras: steps_per_execution](https://keras.io/api/models/model_training_apis/)
- [Optimize GPU performance, TensorFlow guide: gaps between steps](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [Distributed training with Keras, TensorFlow tutorial: batch size and learning rate](https://www.tensorflow.org/tutorials/distribute/keras)
- [TensorFlow issue 34406: a model that is too small to gain from mixed precision](https://github.com/tensorflow/tensorflow/issues/34406)
- [Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour](https://arxiv.org/abs/1706.02677)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.input.conversions import Conversions
from tfdoctor.facts.machine.device_memory import DeviceMemory
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import JAX, TENSORFLOW, Framework
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.step_time.breakdown import Breakdown
from tfdoctor.facts.step_time.compile_time import CompileTime
from tfdoctor.facts.step_time.eager_work import EagerWork
from tfdoctor.facts.step_time.python_overhead import PythonOverhead
from tfdoctor.facts.steps.steps import FEW_STEPS, Steps
from tfdoctor.rules.small_batch.fixed_parts import (
    FixedPart,
    call_on_cpu,
    small_operations,
    starting_operations,
    wait_of_accelerator,
    without_conversions,
)
from tfdoctor.terms.humanize import counted, milliseconds, percent
from tfdoctor.terms.kinds import DeviceKind, StepSource
from tfdoctor.terms.units import count, ms
from tfdoctor.terms.verdict import (
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    PartTime,
    Remedy,
    Stage,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"
BY_HAND = "a larger batch changes the training, so the learning rate has to be adjusted"

STEPS_PER_CALL, FEWEST_PER_CALL = 20, 5
"""Steps in one call, as the remedy proposes (a twentieth of the overhead is left), and the fewest worth it."""

TOO_FEW = "one or two traced steps do not show whether that repeats; trace more steps (--steps 20)"

NOTHING_LEFT = "one call holds several steps already, and a larger batch may not fit into the device's memory"

ENOUGH = 64
"""Examples in a batch, as the remedy for a small one proposes: twice the default of Keras' fit."""

EAGER = "the step runs eagerly: compile it first to see the effect of the batch size"
INPUT = "the job waits for its input: a larger batch would only wait longer"


@dataclass(frozen=True, slots=True)
class Limits:
    """Thresholds of this rule."""

    share: float = share_limit(
        0.4,
        "Smallest share of the step that does not grow with the batch; above it, 20 steps in one call saved "
        "30 to 60 % in three of four scripts (benchmarks/accuracy)",
    )
    call_ms: float = limit(
        3.0,
        "Longest time in ms per step, on a CPU, that Python takes to enter and leave a training call: 0.5 to "
        "2.6 ms in the corpus; a longer time has another cause, such as tracing",
    )
    examples: float = limit(
        16.0,
        "Largest batch, on a CPU, for which the time to start operations is reported: half of the default of "
        "Keras' fit, because users often choose a larger batch on purpose",
    )
    values: float = limit(
        10_000.0,
        "Largest number of values in the tensors of an operation that a larger batch hardly slows: 40 kB of "
        "float32, which fits in every cache",
    )
    each_ms: float = limit(
        0.02,
        "Longest call, in ms, of such an operation when the tensors' size is unknown, as inside loops: in an LSTM "
        "of 64 units a matmul took 3 to 9 us with 2 examples and 8 to 17 us with 64",
    )
    memory: float = share_limit(
        0.7, "Largest share of the device's memory in use; above it a batch twice as large may not fit"
    )


def check(  # noqa: PLR0911, PLR0913, PLR0917 - the overhead, and all facts that look like it but are not
    breakdown: Breakdown,
    overhead: PythonOverhead,
    device: Device,
    steps: Steps,
    program: Program | None,
    memory: DeviceMemory | None,
    framework: Framework,
    compiling: CompileTime | None,
    operations: Operations | None,
    eager: EagerWork | None,
    conversions: Conversions | None,
    limits: Limits = Limits(),
) -> Verdict:
    """Compare the overhead that does not depend on the batch size with the step."""
    if reason := _why_not(breakdown, steps, program):
        return NotApplicable(reason=reason)
    on_cpu, size = device.kind == DeviceKind.CPU, program.batch_size if program else None
    small = size if size and on_cpu and size <= limits.examples else None
    starting = starting_operations(breakdown, overhead) if small else ()
    overhead = without_conversions(overhead, conversions)
    call = call_on_cpu(overhead) if on_cpu else wait_of_accelerator(breakdown, compiling)
    fixed_ms, least_ms = (sum(part.ms for part in (*call, *starting)), limits.share * breakdown.step_ms)
    evidence = _evidence(fixed_ms, breakdown.step_ms, program, memory, limits)
    summary = _summary(fixed_ms, breakdown, small, on_cpu=on_cpu)
    if fixed_ms < least_ms:
        entry = _entry(call, limits) if on_cpu else ()
        return Healthy(summary=summary, evidence=evidence, necessary=entry)
    if not on_cpu and steps.count <= FEW_STEPS:
        return NotApplicable(reason=f"{summary}, but {TOO_FEW}")
    if on_cpu and overhead.edges_ms > limits.call_ms:
        return NotApplicable(reason=_unexplained(overhead, limits))
    number = _steps_per_call(program)
    remedies = _remedies(steps, memory, framework, number, eager.at if eager else None, limits)
    if not remedies:
        return NotApplicable(reason=f"{summary}, but {NOTHING_LEFT}")
    if small and sum(part.ms for part in call) < least_ms:  # a larger batch spares more
        parts = (*call, *starting, *small_operations(operations, limits.values, limits.each_ms))
        return _finding(summary, evidence, remedies[::-1], parts, small / ENOUGH)
    return _finding(summary, evidence, remedies, call, 1 / number if on_cpu else 0.0)


def _finding(
    summary: str,
    evidence: tuple[Measure, ...],
    remedies: Sequence[Remedy],
    parts: Iterable[FixedPart],
    remaining: float,
) -> Finding:
    """Return the finding, with the second remedy as an alternative to the first."""
    first, *others = remedies
    or_else = (replace(r, action=f"Or {r.action[:1].lower()}{r.action[1:]}") for r in others)
    return Finding(
        summary=f"{summary}, independent of the batch size",
        evidence=evidence,
        remedies=(first, *or_else),
        effects=tuple(part.effect(remaining) for part in parts if part.ms),
    )


def _unexplained(overhead: PythonOverhead, limits: Limits) -> str:
    return (
        f"a step takes {milliseconds(overhead.edges_ms)} before its first and after its last operation, but "
        f"Python's calls account for at most {milliseconds(limits.call_ms)}: the part that does not grow "
        "with the batch is unknown"
    )


def _why_not(breakdown: Breakdown, steps: Steps, program: Program | None) -> str:
    """Return why the step cannot be judged; "" when it can."""
    eagerly = program is not None and program.settings.run_eagerly
    if eagerly or steps.source == StepSource.EAGER_GRADIENT:
        return EAGER
    return INPUT if breakdown.waits_for_input else ""


def _summary(fixed_ms: float, breakdown: Breakdown, batch: int | None, *, on_cpu: bool) -> str:
    step = f"{milliseconds(fixed_ms)} of {breakdown.each_step} ({milliseconds(breakdown.step_ms)})"
    if batch:
        examples = counted(batch, "example")
        return f"With {examples} a batch, calls and starting operations take {step}"
    return f"Python overhead takes {step}" if on_cpu else f"The device waits for the host {step}"


def _steps_per_call(program: Program | None) -> int:
    """Return how many steps one call may take: of a known epoch, a number that divides it.

    Keras fills up the last call of an epoch, and would train on more batches than before.
    """
    epoch = program.settings.steps_per_epoch if program else None
    if not epoch:
        return STEPS_PER_CALL
    divisor = max(number for number in range(1, STEPS_PER_CALL + 1) if epoch % number == 0)
    return divisor if divisor >= FEWEST_PER_CALL else STEPS_PER_CALL


def _entry(parts: tuple[FixedPart, ...], limits: Limits) -> tuple[PartTime, ...]:
    """Return the time that entering and leaving a call takes on a CPU, where it is as long as elsewhere."""
    host_ms = sum(part.ms for part in parts if part.stage is Stage.HOST)
    if host_ms > limits.call_ms:
        return ()
    fixed = f"{milliseconds(host_ms)} are the fixed cost of a training call in Python"
    why = f"{fixed}, which several steps can share in one call"
    return (PartTime(Stage.HOST, ms(host_ms), why),)


def _evidence(
    fixed_ms: float, step_ms: float, program: Program | None, memory: DeviceMemory | None, limits: Limits
) -> tuple[Measure, ...]:
    label = "share of the step that is fixed overhead"
    measures = [Measure.share(label, fixed_ms / step_ms, limits.share)]
    if program and program.batch_size:
        measures.append(Measure("batch size", count(program.batch_size)))
    if memory:
        full = memory.fullest.share
        measures.append(Measure.share("share of device memory in use", full, limits.memory))
    return tuple(measures)


def _remedies(
    steps: Steps,
    memory: DeviceMemory | None,
    framework: Framework,
    number: int,
    at: Location | None,
    limits: Limits,
) -> list[Remedy]:
    """Return first the change that leaves the training as it is, at the line of fit or of the loop."""
    code = {JAX: SCAN, "": LOOP, TENSORFLOW: LOOP}.get(framework.name, "")
    remedies = [Remedy("Process several batches in one compiled call", code, at)]
    if steps.several_per_call:
        remedies = []
    elif steps.source == StepSource.KERAS_FIT:
        compile_ = COMPILE.format(number)
        remedies = [Remedy("Run several steps in one call", compile_, at, "steps-per-execution")]
    if memory is None or memory.fullest.share <= limits.memory:
        room = "if memory allows"
        if memory is not None:
            room = f"the device's memory was {percent(memory.fullest.share)} full"
        action = f"Use a larger batch ({room}), adjust the learning rate and compare the accuracy"
        remedies.append(Remedy(action, LARGER))
    return remedies


COMPILE = "model.compile(..., steps_per_execution={0})  # callbacks see every {0}th batch"

LOOP = """\
@tf.function
def steps(iterator):
    for _ in tf.range(20):
        step(next(iterator))"""

SCAN = """\
@jax.jit
def train_steps(params, batches):  # each array of batches has a first dimension of several batches
    return jax.lax.scan(lambda params, batch: train_step(params, batch), params, batches)"""

LARGER = "batch_size = 4 * batch_size\nlearning_rate = 4 * learning_rate  # a common start, with a warm-up"


def example(  # noqa: PLR0913 - one argument for each fact of the rule
    edges: float = 0.55,
    rest: float = 0.4,
    *,
    between: float = 0.05,
    input_ms: float = 0.0,
    pauses: float = 0.0,
    starting: float = 0.0,
    count: int = 20,
    source: StepSource = StepSource.MARKERS,
    device: Device = Device(DeviceKind.CPU, 1, 1),
    program: Program | None = None,
    memory: DeviceMemory | None = None,
    framework: Framework = Framework(),
    compiling: CompileTime | None = None,
    operations: Operations | None = None,
    eager: EagerWork | None = None,
    conversions: Conversions | None = None,
    limits: Limits = Limits(),
) -> Verdict:
    """A step of 1 ms whose operations take 0.4 ms."""
    host = edges + starting
    parts = Breakdown.of(host=host, device=rest, between=between, input=input_ms)
    overhead = PythonOverhead(edges, between, pauses)
    steps = replace(Steps.uniform(count, parts.step_ms), source=source)
    facts = (parts, overhead, device, steps, program, memory, framework, compiling)
    return check(*facts, operations, eager, conversions, limits)


sick = example


def healthy() -> Verdict:
    """The same call with operations of 20 ms."""
    return example(rest=20.0)
