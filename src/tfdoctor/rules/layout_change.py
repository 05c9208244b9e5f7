"""Tensors are turned around between channels first and channels last, and back.

## What it checks

Transpositions in the user's model that change the data format of images (NCHW and NHWC, and their kin in
three dimensions) around convolutions and pooling; kernels of cuDNN and TensorFlow that convert layouts
within a GPU's operations; on a TPU the operations that XLA calls data formatting.

## Why it matters

A transposition computes nothing: it reads a tensor and writes it in another order, once forward and once
backward, and reads with large strides are slow reads. One format from the input to the output needs one
conversion at most.

## How to fix

Keep one format through the model, channels last on CPUs and TPUs and on GPUs in 16 bit: convert the input
once (best in the input pipeline), and give layers like `PReLU`, normalization and pooling the axes of that
format. On a GPU that converts within its convolutions, mixed precision makes TensorFlow choose channels
last for the matrix unit. What kernels and XLA convert by themselves is stated as a ceiling.

## Holds for

TensorFlow 2 on all hardware. The model's own conversions are told by the graph's edges, which recordings of
tfdoctor hold. The first conversion is left where it is. Attention turns its heads around too, and that is
no change of layout: only what lies next to an operation on images counts. On a TPU XLA does some
transpositions for nothing, as part of the convolution beside them.

## Sources

- [NVIDIA, Convolutional Layers User's Guide: tensor layouts](https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- [tf.nn.conv2d, data_format](https://www.tensorflow.org/api_docs/python/tf/nn/conv2d)
"""

from tfdoctor.facts.operations.layouts import Conversion, Layouts
from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.humanize import counted, milliseconds
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic
from tfdoctor.units import ms, ratio
from tfdoctor.verdict import (
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
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"


def check(layouts: Layouts, operations: Operations, hardware: Hardware) -> Verdict:
    """Do away with all conversions but the first, and with what the device converts by itself."""
    rows = [row for one in layouts.superfluous for row in one.rows]
    # What is inside a conversion of the user's is counted already, or is the first one, which stays.
    users = [row for one in layouts.conversions for row in one.rows]
    inside = [(row, time) for row, time in layouts.inside if row not in users]
    total = sum(row.ms for row in rows) + sum(time for _, time in inside)
    if total:
        return _finding(layouts, inside, total, operations, hardware)
    if operations.why_unnamed or layouts.unknown:
        return NotApplicable(reason=operations.why_unnamed or layouts.unknown)
    if layouts.conversions:
        spent = sum(one.ms for one in layouts.conversions)
        number = counted(len(layouts.conversions), "change")
        return Healthy(
            summary=f"{number.capitalize()} of the data format, in one direction only: "
            f"{milliseconds(spent)} per step"
        )
    return Healthy(summary="The step never changes the data format of images")


def _finding(
    layouts: Layouts,
    inside: list[tuple[OperationTime, float]],
    total: float,
    operations: Operations,
    hardware: Hardware,
) -> Finding:
    bound = Bound.EXPECTED if hardware.kind == DeviceKind.CPU else Bound.AT_MOST
    gone = [row for one in layouts.superfluous for row in one.rows]
    return Finding(
        summary=f"Changing the layout of tensors takes {milliseconds(total)} per step",
        evidence=(
            Measure("changes of the layout that one format would spare, per step", ms(total)),
            Measure("share of the compute time", ratio(total / operations.total_ms)),
            _table(layouts.superfluous, inside),
        ),
        remedies=_remedies(layouts.superfluous, inside, hardware),
        effects=(
            *(Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=bound) for row in gone),
            *(_within(row, time) for row, time in inside),
        ),
    )


def _within(row: OperationTime, time: float) -> Effect:
    return Effect(Stage.DEVICE, 1.0 - time / row.ms, row.name, ms(row.ms), bound=Bound.AT_MOST)


def _table(superfluous: tuple[Conversion, ...], inside: list[tuple[OperationTime, float]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (one.operation.layer or one.operation.name, one.rows[0].at or "unknown",
         "to channels last" if one.to_last else "to channels first", ms(one.ms))
        for one in superfluous
    ]  # fmt: skip
    rows += [
        (row.layer or row.name, row.at or "unknown", f"within {row.type}", ms(time))
        for row, time in sorted(inside, key=lambda one: -one[1])
    ]
    return Table(("layer", "your line", "change", "per step"), tuple(rows))


def _remedies(
    superfluous: tuple[Conversion, ...],
    inside: list[tuple[OperationTime, float]],
    hardware: Hardware,
) -> tuple[Remedy, ...]:
    found = []
    if superfluous:
        at = next((row.at for one in superfluous for row in one.rows if row.at), None)
        found.append(Remedy("Keep one data format through the model", ONE_FORMAT, at))
    if inside and hardware.kind == DeviceKind.TPU:
        found.append(Remedy("Order the dimensions as the next operation wants them", FOR_TPU))
    elif inside:
        found.append(Remedy("Let the convolutions run in 16 bit, channels last", SIXTEEN_BIT))
    return tuple(found)


ONE_FORMAT = """\
x = keras.layers.Permute((2, 3, 1))(inputs)  # once: channels first to channels last
x = keras.layers.Conv2D(64, 3, padding="same")(x)
x = keras.layers.PReLU(shared_axes=(1, 2))(x)  # the axes of height and width in that format"""

FOR_TPU = """\
# batch or features last, in multiples of 128; einsum chooses the order without a transposition
scores = tf.einsum("blhd,bmhd->bhlm", q, k)"""

SIXTEEN_BIT = """\
keras.mixed_precision.set_global_policy("mixed_float16")  # bfloat16 from Ampere on
keras.config.set_image_data_format("channels_last")"""


def sick() -> Verdict:
    """Channels first, turned around for a convolution and back."""
    there, back = _turn("permute"), _turn("permute_1", to_last=False)
    rows = (*there.rows, *back.rows, _gradient())
    return check(Layouts((there, back)), Operations(rows), Hardware(DeviceKind.CPU, "example"))


def healthy() -> Verdict:
    """Converted once."""
    there = _turn("permute")
    rows = (*there.rows, _gradient())
    return check(Layouts((there,)), Operations(rows), Hardware(DeviceKind.CPU, "example"))


def _turn(layer: str, *, to_last: bool = True) -> Conversion:
    graph = Operation(name=f"model/{layer}/transpose", type="Transpose", layer=layer)
    row = OperationTime(
        name=graph.name, type="Transpose", ms=2.0, layer=layer, at=Location("train.py", 8),
        operation=graph,
    )  # fmt: skip
    return Conversion(graph, to_last, (row,))


def _gradient() -> OperationTime:
    return OperationTime(name="gradient_tape/conv", type="Conv2DBackpropFilter", ms=30.0)
