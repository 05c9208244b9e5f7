"""Depthwise convolutions are slow for their few FLOPs.

## What it checks

The time of depthwise convolutions (also inside `SeparableConv2D`), their FLOP rate, and the time they would
take if only the memory bandwidth limited them.

## Why it matters

A depthwise convolution multiplies each channel on its own: it does few multiplications for each byte it moves.
A matrix unit cannot help, and many implementations do not even reach the memory bandwidth.

## How to fix

In the early stages of a network, replace a depthwise plus a pointwise convolution with one regular convolution
(fused MBConv, as in EfficientNetV2). It has more FLOPs but takes less time on a matrix unit. On a GPU also
train in float16 with channels-last data and a recent cuDNN. Check the accuracy: this changes the model. The
saving is an upper bound: it removes the whole time of the depthwise convolution and adds nothing for the
regular one. Depthwise convolutions that are as fast as the memory bandwidth allows save nothing.

## Holds for

GPUs and TPUs. A CPU has no matrix unit to use, and the regular convolution takes longer (measured: 2.7 times
the step time of a small separable network), so there the rule only reports the time.

## Sources

- [EfficientNetV2: Smaller Models and Faster Training, section 3.2](https://arxiv.org/abs/2104.00298)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, flop_rate, ms, ratio
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
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which depthwise convolutions are reported."""

    share: float = limit(
        0.005,
        "Smallest share of the compute time in depthwise convolutions that justifies changing a model",
        most=1.0,
    )


LIMITS = Limits()


def check(operations: Operations, hardware: Hardware, limits: Limits = LIMITS) -> Verdict:
    """Compare the time of depthwise convolutions with the time to move their bytes."""
    rows = [row for row in operations.rows if row.is_depthwise]
    if not rows and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not rows:
        return Healthy(summary="The step runs no depthwise convolution")
    total_ms = sum(row.ms for row in rows)
    share = total_ms / operations.total_ms
    summary = f"Depthwise convolutions take {milliseconds(total_ms)} per step"
    measures = _measures(rows, operations, total_ms)
    if hardware.kind == DeviceKind.CPU:
        summary += (
            f" ({percent(share)} of the compute time); regular convolutions take longer on a CPU"
        )
        return Healthy(summary=summary, evidence=measures)
    if share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    return _finding(rows, operations, hardware, measures)


def _finding(
    rows: list[OperationTime],
    operations: Operations,
    hardware: Hardware,
    measures: tuple[Measure, ...],
) -> Finding:
    rate = hardware.bandwidth_bytes_s or operations.streaming_rate
    least_ms = {row.name: _least_ms(row, rate) for row in rows}
    total_ms = sum(row.ms for row in rows)
    at = next((row.at for row in rows if row.at), None)
    return Finding(
        summary=f"Depthwise convolutions take {milliseconds(total_ms)} per step, "
        f"{percent(total_ms / operations.total_ms)} of the compute time",
        evidence=(*measures, _table(operations.by_layer(rows), least_ms)),
        remedies=(Remedy(ACTION, FUSED, at),),
        effects=tuple(_effect(row, least_ms[row.name]) for row in rows if row.ms),
    )


def _effect(row: OperationTime, least_ms: float) -> Effect:
    scales = 0.0 if row.ms > least_ms else 1.0
    return Effect(Stage.DEVICE, scales, row.name, ms(row.ms), bound=Bound.AT_MOST)


def _least_ms(row: OperationTime, rate: float | None) -> float:
    """Return the time to move the operands once; 0 when their size or the rate is unknown."""
    return row.nbytes * row.calls / rate * 1e3 if row.nbytes and rate else 0.0


def _measures(
    rows: list[OperationTime], operations: Operations, total_ms: float
) -> tuple[Measure, ...]:
    rates = {
        "FLOP rate of the depthwise convolutions": _flop_s(rows),
        "FLOP rate of the other convolutions and matmuls": _flop_s(operations.matrix),
    }
    return (
        Measure("time in depthwise convolutions per step", ms(total_ms)),
        Measure(
            "share of the compute time in depthwise convolutions",
            ratio(total_ms / operations.total_ms),
        ),
        *(Measure(label, flop_rate(rate)) for label, rate in rates.items() if rate),
    )


def _flop_s(rows: list[OperationTime] | tuple[OperationTime, ...]) -> float | None:
    seconds = sum(row.ms for row in rows if row.flops) * 1e-3
    return sum((row.flops or 0) * row.calls for row in rows) / seconds if seconds else None


def _table(layers: dict[str, list[OperationTime]], least_ms: dict[str, float]) -> Table:
    ordered = sorted(layers.items(), key=lambda item: -sum(row.ms for row in item[1]))
    rows = tuple(
        (name, group[0].at or "unknown", count(len(group)), ms(sum(row.ms for row in group)),
         ms(least) if (least := sum(least_ms[row.name] for row in group)) else "unknown")
        for name, group in ordered
    )  # fmt: skip
    columns = ("layer", "your line", "operations", "time per step", "time to move the bytes once")
    return Table(columns, rows)


ACTION = "Try a regular convolution instead of depthwise plus pointwise in the early stages"

FUSED = """\
# instead of DepthwiseConv2D(3) followed by Conv2D(filters, 1):
x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)"""


def sick() -> Verdict:
    """A depthwise convolution takes 12 ms; a memory of 40 GB/s moves its bytes in 2.5 ms."""
    return check(
        Operations((_row("DepthwiseConv2dNative"), _fast())),
        Hardware(DeviceKind.GPU, "example", bandwidth_bytes_s=4e10),
    )


def healthy() -> Verdict:
    """The step runs regular convolutions only."""
    return check(Operations((_fast(),)), Hardware(DeviceKind.GPU, "example"))


def _row(kind: str) -> OperationTime:
    shape = (32, 64, 64, 96)
    tensors = (("float32", shape), ("float32", (3, 3, 96, 1)))
    graph = Operation(
        name="model/depthwise", type=kind, inputs=tensors, outputs=(("float32", shape),)
    )
    return OperationTime(
        name="model/depthwise", type=kind, ms=12.0, layer="depthwise", at=Location("train.py", 11),
        operation=graph, nbytes=1e8, flops=2.3e8,
    )  # fmt: skip


def _fast() -> OperationTime:
    return OperationTime(name="gradient_tape/model/conv", type="Conv2D", ms=20.0, flops=7e9)
