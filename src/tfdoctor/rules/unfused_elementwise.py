"""Elementwise operations run as kernels of their own, each of which reads and writes everything.

## What it checks

The time of additions, products, activations, casts and their gradients that ran outside XLA, and how many of
them there are. Those of batch normalization, of the optimizer and of random numbers belong to other rules
and are left out.

## Why it matters

An elementwise operation does next to no arithmetic: it takes the time of its bytes, plus a launch. A chain
of ten moves the tensor some twenty times where a fused one moves it twice.

## How to fix

On a GPU compile the step with `jit_compile=True`: XLA fuses chains into one kernel. The saving is a ceiling:
each fused chain still reads its inputs and writes its result, and compiling takes time at the start and for
each new shape.

## Holds for

GPUs. On a TPU XLA fuses everything. On a CPU compiling is a trial only: XLA may be slower there than
TensorFlow's own kernels (measured with TensorFlow 2.21: up to 7 times), so nothing is advised.

## Sources

- [XLA: optimizing compiler for machine learning](https://openxla.org/xla/tf2xla)
- [OpenXLA, XLA architecture](https://openxla.org/xla/architecture)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.operations.optimizer_work import OptimizerWork
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Program
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
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"

ELEMENTWISE = frozenset(
    (
        "AddV2", "Add", "AddN", "Sub", "Mul", "RealDiv", "Neg", "Square", "Sqrt", "Rsqrt", "Exp", "Log",
        "Pow", "Maximum", "Minimum", "Select", "SelectV2", "Cast", "Relu", "Relu6", "Elu", "Selu",
        "Sigmoid", "Tanh", "Softplus", "Erf", "LeakyRelu", "ReluGrad", "Relu6Grad", "EluGrad",
        "SigmoidGrad", "TanhGrad", "LeakyReluGrad", "RsqrtGrad", "SqrtGrad", "SquaredDifference",
        "BiasAdd", "GreaterEqual", "Greater", "Less", "LessEqual", "DivNoNan",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.1, "of the compute time: compiling a step is a change to try, not a line", most=1.0
    )
    operations: float = limit(10.0, "elementwise operations per step: fewer are no chains to fuse")


LIMITS = Limits()


def check(
    operations: Operations,
    optimizer: OptimizerWork,
    hardware: Hardware,
    program: Program | None,
    limits: Limits = LIMITS,
) -> Verdict:
    """Leave of each elementwise operation nothing but what fusing cannot take."""
    if hardware.kind == DeviceKind.TPU:
        return Healthy(summary="XLA fuses the elementwise operations on a TPU")
    normal = {one.name for one in program.layers if "BatchNorm" in one.kind} if program else set()
    rows = [row for row in operations.rows if row.type in ELEMENTWISE and row.layer not in normal]
    rows = [row for row in rows if row not in optimizer.rows]
    total, calls = sum(row.ms for row in rows), sum(row.calls for row in rows)
    share = total / operations.total_ms if operations.total_ms else 0.0
    taken = f"{milliseconds(total)} per step, {percent(share)} of the compute time"
    if hardware.kind == DeviceKind.CPU:
        return NotApplicable(
            reason=f"elementwise operations take {taken}; on a CPU XLA may fuse them and still be "
            "slower: only a trial with jit_compile=True tells"
        )
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    evidence = (
        Measure("elementwise operations per step", ms(total)),
        Measure("share of the compute time", ratio(share), ratio(limits.share)),
        Measure("their number", count(calls), count(limits.operations)),
    )
    if share < limits.share or calls < limits.operations:
        return Healthy(summary=f"Elementwise operations take {taken}", evidence=evidence)
    at = next((row.at for row in rows if row.at), None)
    return Finding(
        summary=f"{counted(round(calls), 'elementwise operation')} outside XLA take {taken}",
        evidence=(*evidence, _table(rows)),
        remedies=(Remedy("Let XLA fuse them", FUSE, at, "jit-compile"),),
        effects=tuple(
            Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=Bound.AT_MOST) for row in rows
        ),
    )


def _table(rows: list[OperationTime]) -> Table:
    kinds = sorted({row.type for row in rows}, key=lambda kind: -_spent(rows, kind))
    return Table(
        ("operation", "number", "per step"),
        tuple(
            (
                kind,
                count(sum(row.calls for row in rows if row.type == kind)),
                ms(_spent(rows, kind)),
            )
            for kind in kinds
        ),
    )


def _spent(rows: list[OperationTime], kind: str) -> float:
    return sum(row.ms for row in rows if row.type == kind)


FUSE = "model.compile(optimizer, loss, jit_compile=True)  # or @tf.function(jit_compile=True)"


def sick() -> Verdict:
    """A chain of twenty on a GPU, for a third of its time."""
    return _examine(20)


def healthy() -> Verdict:
    """Two activations."""
    return _examine(2)


def _examine(number: int) -> Verdict:
    rows = [OperationTime(name=f"model/mul_{n}", type="Mul", ms=0.5) for n in range(number)]
    rest = OperationTime(name="gradient_tape/conv", type="Conv2DBackpropFilter", ms=20.0)
    operations = Operations((*rows, rest))
    work = OptimizerWork.measure(operations)
    return check(operations, work, Hardware(DeviceKind.GPU, "example"), None)
