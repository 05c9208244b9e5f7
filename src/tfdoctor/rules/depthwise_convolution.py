"""Depthwise convolutions take a share of the step out of proportion to their arithmetic.

## What it checks

The time of depthwise convolutions (also inside `SeparableConv2D`), the rate at which they compute, and
what they would take if nothing but memory bounded them.

## Why it matters

A depthwise convolution multiplies each channel alone: few multiplications for each byte it moves, so a
matrix unit cannot help, and many implementations do not even reach the memory's speed. It has few FLOPs
and much time.

## How to fix

In the early stages of a network replace depthwise plus pointwise convolution by one regular convolution
(fused MBConv, as EfficientNetV2 does): more FLOPs, less time where a matrix unit does them. On a GPU
also train in float16 with channels-last data and a recent cuDNN. Measure the accuracy: it is another
model. The saving is a ceiling: the regular convolution does away with the whole time of the depthwise one,
and its own arithmetic is not counted against it. Depthwise convolutions that are as fast as the memory
allows are left alone.

## Holds for

GPUs and TPUs. On a CPU, which has no matrix unit to feed, the regular convolution takes longer (measured:
2.7 times the step of a small separable network), so there the rule only says what they take.

## Sources

- [EfficientNetV2: Smaller Models and Faster Training, section 3.2](https://arxiv.org/abs/2104.00298)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import count, flop_rate, ms, ratio
from tfdoctor.verdict import (
    Bound,
    Effect,
    Evidence,
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
    """When it speaks."""

    share: float = limit(
        0.005,
        "of the compute time: depthwise convolutions that take less are not worth a change",
        most=1.0,
    )


LIMITS = Limits()


def check(operations: Operations, hardware: Hardware, limits: Limits = LIMITS) -> Verdict:
    """Set the depthwise convolutions' time against what the memory would need for them."""
    rows = [row for row in operations.rows if row.is_depthwise]
    if not rows and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not rows:
        return Healthy(summary="The step runs no depthwise convolution")
    if hardware.kind == DeviceKind.CPU:
        return _on_cpu(rows, operations)
    rate = hardware.bandwidth_bytes_s or operations.streaming_rate
    total = sum(row.ms for row in rows)
    share = total / operations.total_ms
    if share < limits.share:
        return Healthy(
            summary=f"Depthwise convolutions take {milliseconds(total)} per step",
            evidence=(*_measures(rows, operations, total),),
        )
    floor = {row.name: _floor_ms(row, rate) for row in rows}
    return Finding(
        summary=f"Depthwise convolutions take {milliseconds(total)} per step, {percent(share)} of the compute time",
        evidence=(*_measures(rows, operations, total), _table(operations.by_layer(rows), floor)),
        remedies=(_remedy(hardware, rows),),
        effects=tuple(
            Effect(
                Stage.DEVICE,
                0.0 if row.ms > floor[row.name] else 1.0,
                row.name,
                ms(row.ms),
                bound=Bound.AT_MOST,
            )
            for row in rows
            if row.ms
        ),
    )


def _on_cpu(rows: list[OperationTime], operations: Operations) -> Healthy:
    total = sum(row.ms for row in rows)
    share = percent(total / operations.total_ms)
    return Healthy(
        summary=f"Depthwise convolutions take {milliseconds(total)} per step ({share} of the compute time); "
        "on a CPU regular ones in their place take longer",
        evidence=(*_measures(rows, operations, total),),
    )


def _floor_ms(row: OperationTime, rate: float | None) -> float:
    """Return the time to move the operands once; 0 when their size or the rate is not known."""
    return row.nbytes * row.calls / rate * 1e3 if row.nbytes and rate else 0.0


def _measures(rows: list[OperationTime], operations: Operations, total: float) -> list[Evidence]:
    found: list[Evidence] = [
        Measure("depthwise convolutions per step", ms(total)),
        Measure("share of the compute time", ratio(total / operations.total_ms)),
    ]
    for label, group in (("depthwise", rows), ("other", operations.matrix)):
        if rate := _flop_s(group):
            found.append(
                Measure(
                    f"rate of the {label} convolutions and matmuls"
                    if label == "other"
                    else "their rate",
                    flop_rate(rate),
                )
            )
    return found


def _flop_s(rows: list[OperationTime] | tuple[OperationTime, ...]) -> float | None:
    time = sum(row.ms for row in rows if row.flops) * 1e-3
    return sum((row.flops or 0) * row.calls for row in rows) / time if time else None


def _table(layers: dict[str, list[OperationTime]], floor: dict[str, float]) -> Table:
    ordered = sorted(layers.items(), key=lambda item: -sum(row.ms for row in item[1]))
    rows = tuple(
        (name, group[0].at or "unknown", count(len(group)), ms(sum(row.ms for row in group)),
         ms(least) if (least := sum(floor[row.name] for row in group)) else "unknown")
        for name, group in ordered
    )  # fmt: skip
    return Table(("layer", "your line", "operations", "per step", "moving its bytes once"), rows)


def _remedy(hardware: Hardware, rows: list[OperationTime]) -> Remedy:
    at = next((row.at for row in rows if row.at), None)
    where = "in the early stages, " if hardware.kind != DeviceKind.CPU else ""
    return Remedy(
        f"Try a regular convolution {where}in place of depthwise plus pointwise", FUSED, at
    )


FUSED = """\
# instead of DepthwiseConv2D(3) followed by Conv2D(filters, 1):
x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)"""


def sick() -> Verdict:
    """A depthwise convolution of 12 ms whose bytes a memory of 40 GB/s moves in 2.5 ms."""
    return check(
        Operations((_row("DepthwiseConv2dNative"), _fast())),
        Hardware(DeviceKind.GPU, "example", bandwidth_bytes_s=4e10),
    )


def healthy() -> Verdict:
    """A step without any."""
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
