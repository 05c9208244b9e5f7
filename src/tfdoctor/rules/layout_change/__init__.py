"""Tensors are transposed repeatedly between NCHW and NHWC.

## What it checks

Transpositions in the model that change the data format of images (NCHW and NHWC, and their equivalents with
three spatial dimensions) next to convolutions and pooling; cuDNN, MIOpen and TensorFlow kernels that convert
layouts inside operations of a GPU; on a TPU the operations that XLA classifies as data formatting.

## Why it matters

A transposition computes nothing: it reads a tensor and writes it in another order, once forward and once
backward, and reads with large strides are slow. One data format from input to output needs at most one
conversion.

## How to fix

Use one format throughout the model: channels last on CPUs, on TPUs, and on GPUs in 16-bit precision. Convert
the input once, best in the input pipeline, and give layers such as `PReLU`, normalization and pooling the axes
of that format. On a GPU that converts inside its convolutions, mixed precision makes TensorFlow choose channels
last for the matrix unit. The saving is an upper bound for conversions by kernels and by XLA.

## Holds for

TensorFlow 2 on all hardware. Only recordings made by tfdoctor hold the graph's edges that identify conversions
in the model. The first conversion is counted only if an operation on images precedes it: the conversion of the
model's input may be necessary. Attention transposes its heads too, which is no layout
change: only transpositions next to operations on images count. On a TPU, XLA runs some transpositions at no
cost as part of the neighboring convolution.

## Sources

- [NVIDIA, Convolutional Layers User's Guide: tensor layouts](https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- [tf.nn.conv2d, data_format](https://www.tensorflow.org/api_docs/python/tf/nn/conv2d)
"""

from collections.abc import Iterator

from tfdoctor.diagnosis.rule import Topic
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.rules.layout_change.layouts import Conversion, Layouts
from tfdoctor.terms.humanize import counted, milliseconds
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Cell, Finding, Healthy, Location, NotApplicable, Remedy, Table, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "the shapes and weights of all layers depend on the data format"

Inside = list[tuple[OperationTime, float]]
"""Operations that convert layouts, and how many ms per step each spends on it."""


def check(layouts: Layouts, operations: Operations, hardware: Hardware) -> Verdict:
    """Remove the superfluous conversions, and those that the device does inside other operations."""
    superfluous = [row for conversion in layouts.superfluous for row in conversion.rows]
    # kernels inside a conversion of the model belong to it: it is counted already, or is the first one
    own = [row for conversion in layouts.conversions for row in conversion.rows]
    inside = [(row, time) for row, time in layouts.inside if row not in own]
    total_ms = sum(row.ms for row in superfluous) + sum(time for _, time in inside)
    if total_ms:
        return _finding(layouts, inside, total_ms, operations, hardware)
    if operations.why_unnamed or layouts.unknown:
        return NotApplicable(reason=operations.why_unnamed or layouts.unknown)
    if layouts.conversions:
        spent = milliseconds(sum(conversion.ms for conversion in layouts.conversions))
        number = counted(len(layouts.conversions), "conversion").capitalize()
        return Healthy(summary=f"{number} of the data format, in one direction only: {spent} per step")
    return Healthy(summary="The step never changes the data format of images")


def _finding(
    layouts: Layouts, inside: Inside, total_ms: float, operations: Operations, hardware: Hardware
) -> Finding:
    bound = Bound.EXPECTED if hardware.kind == DeviceKind.CPU else Bound.AT_MOST
    rows = [row for conversion in layouts.superfluous for row in conversion.rows]
    return Finding(
        summary=f"Changing the layout of tensors takes {milliseconds(total_ms)} per step",
        evidence=(
            *operations.part(total_ms).measures("in avoidable layout changes"),
            _table(layouts.superfluous, inside),
        ),
        remedies=tuple(_remedies(rows, inside, hardware)),
        effects=(
            *(row.scaled(0.0, bound) for row in rows),
            *(row.scaled(1.0 - time / row.ms, Bound.AT_MOST) for row, time in inside),
        ),
    )


def _table(superfluous: tuple[Conversion, ...], inside: Inside) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (conversion.operation.layer or conversion.operation.name,
         conversion.rows[0].at or "unknown",
         "to channels last" if conversion.to_last else "to channels first", ms(conversion.ms))
        for conversion in superfluous
    ]  # fmt: skip
    rows += [
        (row.layer or row.name, row.at or "unknown", f"inside {row.type}", ms(time))
        for row, time in sorted(inside, key=lambda pair: -pair[1])
    ]
    return Table(("layer", "your line", "conversion", "time per step"), tuple(rows))


def _remedies(superfluous: list[OperationTime], inside: Inside, hardware: Hardware) -> Iterator[Remedy]:
    if superfluous:
        at = next((row.at for row in superfluous if row.at), None)
        yield Remedy("Use one data format in the whole model", ONE_FORMAT, at)
    if inside and hardware.kind == DeviceKind.TPU:
        yield Remedy("Order dimensions as the next operation needs them", FOR_TPU)
    elif inside:
        action = "Run convolutions in 16-bit precision with channels-last data"
        yield Remedy(action, SIXTEEN_BIT)


ONE_FORMAT = """\
x = keras.layers.Permute((2, 3, 1))(inputs)  # once: channels first to channels last
x = keras.layers.Conv2D(filters, 3, padding="same")(x)
x = keras.layers.PReLU(shared_axes=(1, 2))(x)  # the axes of height and width in that format"""

FOR_TPU = """\
# batch or features last, in multiples of 128; einsum chooses the order without a transposition
scores = tf.einsum("blhd,bmhd->bhlm", q, k)"""

SIXTEEN_BIT = """\
keras.mixed_precision.set_global_policy("mixed_float16")  # bfloat16 from Ampere on
keras.config.set_image_data_format("channels_last")"""


def example(*, back: bool = True) -> Verdict:
    """The model transposes to channels last for a convolution, and back."""
    conversions = []
    for layer, to_last in [("permute", True), *([("permute_1", False)] if back else [])]:
        name, at = f"model/{layer}/transpose", Location("train.py", 8)
        graph = Operation(name=name, type="Transpose", layer=layer)
        row = OperationTime(name=name, type="Transpose", ms=2.0, layer=layer, at=at, operation=graph)
        conversions.append(Conversion(graph, to_last, (row,)))
    rows = [row for conversion in conversions for row in conversion.rows]
    operations = Operations.training(30.0 + 2.0 * len(rows), *rows)
    return check(Layouts(tuple(conversions)), operations, Hardware(DeviceKind.CPU, "example"))


sick = example


def healthy() -> Verdict:
    """The model converts its input once."""
    return example(back=False)
