"""The gradient of max pooling takes a share of the step that average pooling's would not.

## What it checks

The time of `MaxPoolGrad` (and its kin in three dimensions), against the gradient of average pooling over
the same window.

## Why it matters

The gradient of a maximum goes to the place of the maximum alone: it has to be searched again or remembered,
and is scattered. The gradient of an average is the same value for the whole window. On TPUs, and in
implementations without a fast path, the difference is large.

## How to fix

Where the model allows it, use average pooling, or a convolution with stride 2 in place of convolution and
pooling. It is another model: check its accuracy. The saving is a ceiling, because what average pooling's
gradient takes there is not known from this run.

## Holds for

GPUs and TPUs, and on CPUs what oneDNN does not run. oneDNN's own `MaxPoolGrad`, which TensorFlow uses for
channels-last float32 in graphs on a CPU, remembers the places and is fast: nothing is advised for it
(Eigen's, which takes its place elsewhere, took 20 times as long as average pooling's gradient for 64 x 32 x 32 x 32
values; TensorFlow 2.21 on an AMD EPYC).

## Sources

- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- [Keras, AveragePooling2D layer](https://keras.io/api/layers/pooling_layers/average_pooling2d/)
"""

from dataclasses import dataclass

from tfdoctor.facts.operations.operations import Operations, OperationTime
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.humanize import milliseconds, percent
from tfdoctor.kinds import DeviceKind
from tfdoctor.rule import Topic, limit
from tfdoctor.units import ms, ratio
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

GRADIENTS = frozenset(("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax", "MaxPool3DGrad"))
SEARCHES = "select-and-scatter"
"""What XLA calls the gradient of max pooling."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When it speaks."""

    share: float = limit(
        0.03,
        "of the compute time: another pooling is another model, which less is not worth",
        most=1.0,
    )


LIMITS = Limits()


def check(operations: Operations, hardware: Hardware, limits: Limits = LIMITS) -> Verdict:
    """Weigh the gradients of max pooling, but for oneDNN's."""
    rows = [row for row in operations.rows if _is_gradient(row)]
    slow = [row for row in rows if not _by_onednn(row)]
    if not rows and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    if not rows:
        return Healthy(summary="The step computes no gradient of max pooling")
    total = sum(row.ms for row in rows)
    share = total / operations.total_ms
    taken = f"{milliseconds(total)} per step, {percent(share)} of the compute time"
    summary = f"The gradients of max pooling take {taken}"
    measures = (
        Measure("gradients of max pooling per step", ms(total)),
        Measure("share of the compute time", ratio(share), ratio(limits.share)),
    )
    if not slow:
        return Healthy(summary=f"{summary}; oneDNN runs them, which is fast", evidence=measures)
    if sum(row.ms for row in slow) < limits.share * operations.total_ms:
        return Healthy(summary=summary, evidence=measures)
    table = tuple((row.layer or row.name, row.at or "unknown", ms(row.ms)) for row in slow)
    return Finding(
        summary=summary,
        evidence=(*measures, Table(("layer", "your line", "gradient per step"), table)),
        remedies=(_remedy(slow, hardware),),
        effects=tuple(
            Effect(Stage.DEVICE, 0.0, row.name, ms(row.ms), bound=Bound.AT_MOST) for row in slow
        ),
    )


def _is_gradient(row: OperationTime) -> bool:
    return row.type in GRADIENTS or SEARCHES in row.category or SEARCHES in row.name


def _by_onednn(row: OperationTime) -> bool:
    return any(name.rpartition(":")[2].startswith("_Mkl") for name in row.ran)


def _remedy(rows: list[OperationTime], hardware: Hardware) -> Remedy:
    at = next((row.at for row in rows if row.at), None)
    code = CPU if hardware.kind == DeviceKind.CPU else AVERAGE
    return Remedy("Try average pooling, or a convolution with stride 2", code, at)


AVERAGE = """\
x = keras.layers.AveragePooling2D(2)(x)  # in the place of MaxPooling2D(2)
# or let the convolution before it take steps of 2 and leave the pooling out:
x = keras.layers.Conv2D(filters, 3, strides=2, padding="same")(x)"""

CPU = (
    AVERAGE
    + "\n# oneDNN's fast gradient of max pooling needs a graph: not run_eagerly=True, channels last"
)


def sick() -> Verdict:
    """A gradient that takes a tenth of the compute time of a GPU."""
    return check(Operations((_row("void cudnn::pooling_bw_kernel_max"), _work())), GPU)


def healthy() -> Verdict:
    """The same on a CPU, by oneDNN."""
    row = _row("gradient_tape/pool/MaxPoolGrad:_MklNativeMaxPoolGrad")
    return check(Operations((row, _work())), Hardware(DeviceKind.CPU, "example"))


GPU = Hardware(DeviceKind.GPU, "example")


def _row(ran: str) -> OperationTime:
    return OperationTime(
        name="gradient_tape/model/pool/MaxPoolGrad", type="MaxPoolGrad", ms=3.0, ran=(ran,),
        layer="pool", at=Location("train.py", 17),
    )  # fmt: skip


def _work() -> OperationTime:
    return OperationTime(name="gradient_tape/model/conv/d", type="Conv2DBackpropFilter", ms=27.0)
