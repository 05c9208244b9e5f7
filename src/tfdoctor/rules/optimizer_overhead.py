"""The optimizer spends the step on many tiny updates.

## What it checks

The operations in the optimizer's name scope that work on small tensors, and how many there are.

## Why it matters

Keras' Adam runs some ten operations for each variable and step. On a bias of 64 values each of them is all
overhead: a kernel's launch, or a call. Hundreds of small variables make thousands of such operations. The
updates of large variables are no overhead: their time is that of the memory, and they are not counted.

## How to fix

On a GPU compile the update (`jit_compile=True`), so that XLA fuses each variable's operations. Leave out
biases in front of a normalization. Use fewer and larger variables, and `gradient_accumulation_steps` where
updates can be rarer. The saving is a ceiling.

## Holds for

Keras 2 and 3 on TensorFlow. On a TPU, and in compiled steps, XLA has fused them already. On a CPU an
operation on a small tensor takes about a microsecond (means over traced scripts of this project's corpus:
0.3 to 1.8 us, in one 4.5) and as much again to be scheduled, so it takes a thousand of them to be worth a
word (240 variables of one value in a network of three layers: 6,600 operations, and 6 of 10 ms saved
with two variables). XLA is often slower there and is not advised.

## Sources

- [Keras, optimizers](https://keras.io/api/optimizers/)
- [XLA: optimizing compiler for machine learning](https://openxla.org/xla/tf2xla)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.operations.optimizer_work import OptimizerWork
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.time.breakdown import Breakdown
from tfdoctor.humanize import counted, milliseconds, percent
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, ms, ratio
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

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(0.05, "of the compute time, in the optimizer's small operations", most=1.0)
    values: float = limit(
        10_000.0,
        "values of the largest tensor: 40 kB, which every cache holds and no memory bounds",
    )
    each_ms: float = limit(
        0.005, "ms of a call on tensors of unknown size: an empty kernel of a GPU takes 2 to 3 us"
    )
    on_cpu: float = limit(
        1000.0,
        "small operations per step on a CPU, which take some 2 ms there with their scheduling: a network of "
        "30 layers has fewer",
    )


LIMITS = Limits()


def check(
    work: OptimizerWork,
    operations: Operations,
    hardware: Hardware,
    breakdown: Breakdown,
    limits: Limits = LIMITS,
) -> Verdict:
    """Weigh the optimizer's small operations."""
    if hardware.kind == DeviceKind.TPU:
        return Healthy(summary="XLA compiles the optimizer's update on a TPU")
    if not work.rows:
        return NotApplicable(
            reason="the trace names no operation of an optimizer (compiled by XLA, or of the user's own)"
        )
    small = work.small(limits.values, limits.each_ms)
    total, calls = sum(row.ms for row in small), sum(row.calls for row in small)
    share = total / operations.total_ms
    evidence = (
        Measure("the optimizer's small operations per step", ms(total)),
        Measure("share of the compute time", ratio(share), ratio(limits.share)),
        Measure("small operations", count(calls)),
        Measure("the optimizer's operations per step", ms(work.ms)),
    )
    taken = f"{milliseconds(total)} per step, {percent(share)} of the compute time"
    on_cpu = hardware.kind == DeviceKind.CPU
    if share < limits.share or (on_cpu and calls < limits.on_cpu):
        return Healthy(
            summary=f"The optimizer's operations on small tensors take {taken}", evidence=evidence
        )
    at = next((row.at for row in small if row.at), None)
    fewer = Remedy("Use fewer and larger variables", FEWER, at)
    fuse = Remedy("Let XLA fuse the update", FUSE, at, "jit-compile")
    return Finding(
        summary=f"The optimizer runs {counted(round(calls), 'small operation')}: {taken}",
        evidence=evidence,
        remedies=(fewer,) if on_cpu else (fuse, fewer),
        effects=(
            *(
                Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=Bound.AT_MOST)
                for row in small
            ),
            *(_scheduling(calls, operations, breakdown) if on_cpu else ()),
        ),
    )


def _scheduling(calls: float, operations: Operations, breakdown: Breakdown) -> tuple[Effect, ...]:
    """Return what goes by between these operations: on a CPU their part, by number, of the host's time."""
    part = calls / sum(row.calls for row in operations.rows)
    between = ms(part * breakdown[Stage.HOST])
    return (Effect(Stage.HOST, 0.0, StepWork.OPTIMIZER, between, bound=Bound.AT_MOST),)


FUSE = "model.compile(optimizer, loss, jit_compile=True)"

FEWER = """\
# no bias in front of a normalization, which takes it away again
x = keras.layers.Dense(64, use_bias=False)(x)
x = keras.layers.LayerNormalization()(x)
# one variable for many of the same shape, in the place of a list of them
self.gains = self.add_weight(shape=(len(names),), name="gains")
# or fewer updates: optimizer = keras.optimizers.Adam(gradient_accumulation_steps=4)"""


def sick() -> Verdict:
    """A thousand small operations that take a fifth of the compute time of a GPU."""
    return _examine([_row(f"adam/Mul_{n}", 0.003) for n in range(1000)])


def healthy() -> Verdict:
    """Ten of them."""
    return _examine([_row(f"adam/Mul_{n}", 0.003) for n in range(10)])


def _examine(rows: list[OperationTime]) -> Verdict:
    rest = OperationTime(name="gradient_tape/conv", type="Conv2DBackpropFilter", ms=12.0)
    operations = Operations((*rows, rest))
    breakdown = Breakdown.of(device=operations.total_ms)
    return check(
        OptimizerWork.measure(operations),
        operations,
        Hardware(DeviceKind.GPU, "example"),
        breakdown,
    )


def _row(name: str, ms: float) -> OperationTime:
    return OperationTime(name=name, type="Mul", ms=ms)
