"""The steps are so small that what each of them costs at least dominates.

## What it checks

What a step costs whatever the size of its batch, on a job that does not wait for its input. On a CPU that
is Python's way into the training call and out of it: the time before the first operation, after the last
one, and between two calls. On a GPU or TPU it is the time in which the device waits for the host. How much
the operations themselves would take with a larger batch, a recording of one batch size cannot tell; the
time that each of them takes to start is not counted.

## Why it matters

A call of a compiled function takes Python about half a millisecond (0.4 ms of Keras' `fit`, measured on a
CPU), whatever the batch. Where the operations of a step are
done in the same time, half of the run is spent on the way to them.

## How to fix

With Keras' `fit`, `compile(steps_per_execution=20)` runs 20 steps in one call; callbacks then see every 20th
batch. Take a number that divides the steps of an epoch: Keras fills the last call of an epoch, and trains on
more batches than before. In a custom loop, let the `tf.function` take several batches. A larger batch gives
each step more to do, where memory allows: it changes the training, so raise the learning rate with it (in
proportion, with a warm-up, is a common start) and compare the accuracy.

## Holds for

TensorFlow 2.4 and later, on any device. It says nothing of a job that waits for its input (a larger batch
would only wait longer), nor of steps that run eagerly.

## Sources

- [Model training APIs, Keras: steps_per_execution](https://keras.io/api/models/model_training_apis/)
- [Optimize GPU performance, TensorFlow guide: gaps between steps](https://www.tensorflow.org/guide/gpu_performance_analysis)
- [Distributed training with Keras, TensorFlow tutorial: batch size and learning rate](https://www.tensorflow.org/tutorials/distribute/keras)
- [Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour](https://arxiv.org/abs/1706.02677)
"""

from dataclasses import dataclass

from tfdoctor.facts.machine.device_memory import DeviceMemory
from tfdoctor.facts.run.device import Device
from tfdoctor.facts.run.framework import Framework
from tfdoctor.facts.run.program import Program
from tfdoctor.facts.steps.steps import Steps
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.facts.time.compile_time import CompileTime
from tfdoctor.facts.time.python_overhead import PythonOverhead
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.kinds import DeviceKind, StepSource
from tfdoctor.rule import Topic, limit
from tfdoctor.units import Quantity, count, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Finding,
    Healthy,
    Measure,
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Verdict,
)

TOPIC = Topic.EXECUTION
SINCE = "0.1.0"

TOGETHER, FEWEST = 20, 5
"""Steps in one call, as the remedy says: a twentieth of the way is left; and how few are still worth it."""

EAGER = (
    "the step runs operation by operation: what the batch's size costs shows once it is compiled"
)
INPUT = "the job waits for its input: a larger batch would only wait longer"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.4,
        "of the step that does not grow with the batch: above it, 20 steps in one call saved 30 to 60 % of "
        "three scripts of four (benchmarks/accuracy)",
        most=1.0,
    )
    call_ms: float = limit(
        3.0,
        "ms of one step on a CPU: Python enters and leaves a training call in 0.5 to 2.6 ms in the corpus; "
        "more is something else, such as tracing",
    )
    memory: float = limit(
        0.7, "of the device's memory in use: above it a batch twice as large may not fit", most=1.0
    )


LIMITS = Limits()


def check(  # noqa: PLR0913, PLR0917 - what a step costs, and all that must not be mistaken for it
    breakdown: Breakdown,
    overhead: PythonOverhead,
    device: Device,
    steps: Steps,
    program: Program | None,
    memory: DeviceMemory | None,
    framework: Framework,
    compiling: CompileTime | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Weigh what a step costs at least against the step."""
    settings = program.settings if program else {}
    if settings.get("run_eagerly") or steps.source == StepSource.EAGER_GRADIENT:
        return NotApplicable(reason=EAGER)
    if breakdown.waits_for_input:
        return NotApplicable(reason=INPUT)
    on_cpu = device.kind == DeviceKind.CPU
    compiles = compiling.host_ms if compiling else 0.0  # which recompilation tells, and costs
    parts = _on_cpu(overhead) if on_cpu else {Stage.HOST: max(0.0, breakdown["host"] - compiles)}
    fixed = sum(parts.values())
    evidence = _evidence(fixed, breakdown.step_ms, program, memory, limits)
    where = (
        "on Python's way into the step and out of it"
        if on_cpu
        else "while the device waits for the host"
    )
    said = f"{milliseconds(fixed)} of each step's {milliseconds(breakdown.step_ms)} go by {where}"
    if fixed < limits.share * breakdown.step_ms:
        return Healthy(summary=said, evidence=evidence)
    if on_cpu and overhead.edges_ms > limits.call_ms:
        return NotApplicable(reason=_unexplained(overhead, limits))
    number = _together(program)
    return Finding(
        summary=f"{said}, whatever the size of the batch",
        evidence=evidence,
        remedies=tuple(_remedies(steps, memory, framework, number, limits)),
        effects=tuple(_effects(parts, 1 / number if on_cpu else 0.0)),
    )


def _together(program: Program | None) -> int:
    """Return how many steps one call may take: of a known epoch, a number that divides it.

    Keras fills the last call of an epoch, and would train on more batches than before.
    """
    epoch = program.settings.get("steps_per_epoch") if program else None
    if not isinstance(epoch, int) or epoch < 1:
        return TOGETHER
    best = max(number for number in range(1, TOGETHER + 1) if epoch % number == 0)
    return best if best >= FEWEST else TOGETHER


def _unexplained(overhead: PythonOverhead, limits: Limits) -> str:
    return (
        f"Before its first operation and after its last one a step takes {milliseconds(overhead.edges_ms)}, "
        f"more than the {milliseconds(limits.call_ms)} that Python's calls account for: how much of it a larger "
        "batch would share is not known"
    )


def _on_cpu(overhead: PythonOverhead) -> dict[Stage, float]:
    """Return Python's part; between two calls no more than inside of them, for the rest is the loop's own."""
    return {
        Stage.HOST: overhead.edges_ms,
        Stage.BETWEEN: min(overhead.between_ms, overhead.edges_ms),
    }


def _effects(parts: dict[Stage, float], left: float) -> list[Effect]:
    return [
        Effect(stage, left, StepWork.STEP_ENTRY, ms(taken), bound=Bound.AT_MOST)
        for stage, taken in parts.items()
        if taken
    ]


def _evidence(
    fixed: float, step: float, program: Program | None, memory: DeviceMemory | None, limits: Limits
) -> tuple[Measure, ...]:
    found: list[tuple[str, Quantity, Quantity | None]] = [
        ("of the step that goes by there", ratio(fixed / step), ratio(limits.share))
    ]
    if program and program.batch_size:
        found.append(("batch", count(program.batch_size), None))
    if memory:
        found.append(
            (
                "of the device's memory in use",
                ratio(memory.fullest.share),
                ratio(limits.memory),
            )
        )
    return tuple(Measure(*each) for each in found)


def _remedies(
    steps: Steps, memory: DeviceMemory | None, framework: Framework, number: int, limits: Limits
) -> list[Remedy]:
    """Return first the change that leaves the training as it is."""
    several = Remedy(
        "Let one compiled call take several batches", "" if framework.foreign else LOOP
    )
    if steps.source == StepSource.KERAS_FIT:
        several = Remedy(
            "Run several steps in one call", COMPILE.format(number), edit_id="steps-per-execution"
        )
    full = memory is not None and memory.fullest.share > limits.memory
    return [several] if full else [several, Remedy(_larger(memory), LARGER)]


def _larger(memory: DeviceMemory | None) -> str:
    room = "if memory allows"
    if memory is not None:
        room = f"the device's memory was {percent(memory.fullest.share)} full"
    return (
        f"Or train on a larger batch ({room}), with a learning rate to match; compare the accuracy"
    )


COMPILE = "model.compile(..., steps_per_execution={0})  # callbacks see every {0}th batch"

LOOP = """\
@tf.function
def steps(iterator):
    for _ in tf.range(20):
        step(next(iterator))"""

LARGER = "batch_size = 4 * batch_size\nlearning_rate = 4 * learning_rate  # a start; with a warm-up"


def sick() -> Verdict:
    """A step of 1 ms of which the operations take 0.4."""
    return _example(0.55, 0.4)


def healthy() -> Verdict:
    """The same call around operations of 20 ms."""
    return _example(0.55, 20.0)


def _example(edges: float, device: float) -> Verdict:
    breakdown = Breakdown.of(host=edges, device=device, between=0.05)
    steps = Steps.uniform(20, breakdown.step_ms)
    return check(
        breakdown,
        PythonOverhead(edges, 0.05),
        Device(DeviceKind.CPU, 1, 1),
        steps,
        None,
        None,
        Framework(),
        None,
    )
