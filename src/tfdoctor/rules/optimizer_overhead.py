"""The optimizer runs many tiny operations per step.

## What it checks

The time and the number of operations in the optimizer's name scope that work on small tensors.

## Why it matters

Keras' Adam runs about ten operations per variable and step. On a bias of 64 values each of them is only
overhead: the launch of a kernel, or a call. Hundreds of small variables make thousands of such operations.
Updates of large variables are not counted: memory bandwidth limits them, not overhead.

## How to fix

On a GPU compile the step (`jit_compile=True`), so that XLA fuses the operations of each variable. Remove biases
before a normalization. Use fewer and larger variables, and `gradient_accumulation_steps` where fewer updates
are enough. The saving is an upper bound.

## Holds for

Keras 2 and 3 on TensorFlow. On a TPU, and in steps that XLA compiles, these operations are fused already. On a
CPU an operation on a small tensor takes about a microsecond (means of the traced scripts in this project's
corpus: 0.3 to 1.8 us, and 4.5 us in one script) and scheduling it takes as long again, so only a thousand or more
of them are reported. (Example: 240 variables of one value in a network of three layers ran 6,600 operations;
two variables instead saved 6 of 10 ms.) XLA is often slower on a CPU, so compiling is not advised there.

## Sources

- [Keras, optimizers](https://keras.io/api/optimizers/)
- [XLA: optimizing compiler for machine learning](https://openxla.org/xla/tf2xla)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import not_on
from tfdoctor.diagnosis.rule import Topic, limit, share_limit
from tfdoctor.facts.operations.compute_part import ComputePart
from tfdoctor.facts.operations.operation_time import OperationRows, OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.optimizer_work import OptimizerWork
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.step_time.breakdown import Breakdown
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
    NotApplicable,
    Remedy,
    Stage,
    StepWork,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (not_on(DeviceKind.TPU, verdict=Healthy(summary="XLA compiles the optimizer's update on a TPU")),)
BY_HAND = "fewer and larger variables change the model"


@dataclass(frozen=True, slots=True)
class Limits:
    """What counts as a small operation, and how many are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in the optimizer's small operations that is reported"
    )
    values: float = limit(
        10_000.0,
        "Largest number of values in the tensors of a small operation: 40 kB of float32, which fits in every cache",
    )
    each_ms: float = limit(
        0.005,
        "Longest call, in ms, that is small when the tensors' size is unknown: an empty GPU kernel takes 2 to 3 us",
    )
    on_cpu: float = limit(
        1000.0,
        "Smallest number of small operations per step that is reported on a CPU: including scheduling they "
        "take about 2 ms there, and a network of 30 layers has fewer",
    )


def check(
    work: OptimizerWork, operations: Operations, hardware: Hardware, breakdown: Breakdown, limits: Limits = Limits()
) -> Verdict:
    """Add up the optimizer's small operations."""
    if not work.rows:
        return NotApplicable(reason=UNNAMED)
    small = Small(work.small(limits.values, limits.each_ms), operations)
    evidence = (
        *small.part.measures("in the optimizer's small operations", limits.share),
        Measure("small optimizer operations per step", count(small.calls)),
        Measure("time in all optimizer operations per step", ms(work.ms)),
    )
    on_cpu = hardware.kind == DeviceKind.CPU
    if small.part.share < limits.share or (on_cpu and small.calls < limits.on_cpu):
        summary = f"The optimizer's operations on small tensors take {small.part}"
        return Healthy(summary=summary, evidence=evidence)
    effects = tuple(row.scaled(0.0, Bound.AT_MOST) for row in small.rows)
    fewer = Remedy("Use fewer and larger variables", FEWER, small.at)
    fused = Remedy("Compile the step so that XLA fuses the update", FUSE, small.at, "jit-compile")
    return Finding(
        summary=f"The optimizer runs {counted(round(small.calls), 'small operation')}: {small.part}",
        evidence=evidence,
        remedies=(fewer,) if on_cpu else (fused, fewer),
        effects=(*effects, small.scheduling(breakdown)) if on_cpu else effects,
    )


@dataclass(frozen=True, slots=True)
class Small(OperationRows):
    """The optimizer's operations on small tensors."""

    rows: tuple[OperationTime, ...]
    operations: Operations  # of the whole step

    @property
    def part(self) -> ComputePart:
        """Their part of the compute time."""
        return self.operations.part(sum(row.ms for row in self.rows))

    @property
    def at(self) -> Location | None:
        """The first known line of one."""
        return next((row.at for row in self.rows if row.at), None)

    def scheduling(self, breakdown: Breakdown) -> Effect:
        """Return the time between these operations on a CPU: their part, by number, of the host's time."""
        part = self.calls / sum(row.calls for row in self.operations.rows)
        between = ms(part * breakdown[Stage.HOST])
        return Effect(Stage.HOST, 0.0, StepWork.OPTIMIZER, between, bound=Bound.AT_MOST)


UNNAMED = "the trace names no operation of an optimizer: XLA compiled them, or they are outside a Keras optimizer"


FUSE = "model.compile(optimizer, loss, jit_compile=True)"

FEWER = """\
# no bias before a normalization, which cancels it
x = keras.layers.Dense(units, use_bias=False)(x)
x = keras.layers.LayerNormalization()(x)
# one variable instead of a list of variables with the same shape
self.gains = self.add_weight(shape=(len(names),), name="gains")
# or fewer updates: optimizer = keras.optimizers.Adam(gradient_accumulation_steps=4)"""


def example(
    *rows: OperationTime,
    number: int = 1000,
    host_ms: float = 0.0,
    hardware: Hardware = Hardware(DeviceKind.GPU, "example"),
) -> Verdict:
    """A thousand small operations take a fifth of the compute time of a GPU."""
    small = [OperationTime(name=f"adam/Mul_{n}", type="Mul", ms=0.003) for n in range(number)]
    operations = Operations.training(15.0, *(rows or small))
    step = Breakdown.of(device=operations.total_ms, host=host_ms)
    return check(OptimizerWork.measure(operations), operations, hardware, step)


sick = example


def healthy() -> Verdict:
    """The optimizer runs ten small operations."""
    return example(number=10)
