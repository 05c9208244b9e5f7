"""The gradient of max pooling is slow.

## What it checks

The time of `MaxPoolGrad` and of its variants, such as the one with three spatial dimensions.

## Why it matters

The gradient of a maximum goes only to the position of the maximum. This position has to be stored or searched
for again, and the gradient is scattered. The gradient of an average is one value for the whole window. On TPUs,
and in implementations without a fast path, the difference is large.

## How to fix

Where the model allows it, use average pooling, or replace convolution and pooling with a convolution with stride
2. This changes the model: check its accuracy. The saving is an upper bound, because this run does not show how
long the gradient of average pooling takes.

## Holds for

GPUs and TPUs, and on CPUs the gradients that oneDNN does not run. oneDNN's own `MaxPoolGrad`, which TensorFlow
uses for channels-last float32 in graphs on a CPU, stores the positions and is fast, so it is not reported.
Eigen's version, which runs in all other cases, took 20 times as long as the gradient of average pooling for 64
x 32 x 32 x 32 values (TensorFlow 2.21 on an AMD EPYC).

## Sources

- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- [Keras, AveragePooling2D layer](https://keras.io/api/layers/pooling_layers/average_pooling2d/)
"""

import re
from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import found
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import ms
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Remedy, Table, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
PRECONDITIONS = (
    found(
        Operations,
        lambda operations: any(map(_is_gradient, operations.rows)),
        "The step computes no gradient of max pooling",
    ),
)
BY_HAND = "it changes the model, so its accuracy has to be compared"

GRADIENTS = frozenset(("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradWithArgmax", "MaxPool3DGrad"))
XLA_GRADIENT = "select-and-scatter"
"""What XLA calls the gradient of max pooling."""

ONEDNN = re.compile("(^|:)_Mkl[^:]*$")
"""Kernels of oneDNN, by the type at the end of their name."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which the gradients are reported."""

    share: float = share_limit(
        0.03, "Smallest share of the compute time in gradients of max pooling that justifies changing a model"
    )


def check(operations: Operations, hardware: Hardware, limits: Limits = Limits()) -> Verdict:
    """Add up the gradients of max pooling, except those that oneDNN runs."""
    rows = [row for row in operations.rows if _is_gradient(row)]
    part = operations.part(sum(row.ms for row in rows))
    summary = f"The gradients of max pooling take {part}"
    measures = part.measures("in gradients of max pooling", limits.share)
    slow = [row for row in rows if not any(map(ONEDNN.search, row.ran))]
    if not slow:
        return Healthy(summary=f"{summary}; oneDNN runs them fast", evidence=measures)
    if sum(row.ms for row in slow) < limits.share * operations.total_ms:
        return Healthy(summary=summary, evidence=measures)
    at = next((row.at for row in slow if row.at), None)
    code = CPU if hardware.kind == DeviceKind.CPU else AVERAGE
    layers = Table.of(
        slow,
        ("layer", lambda row: row.layer or row.name),
        ("your line", lambda row: row.at),
        ("gradient time per step", lambda row: ms(row.ms)),
    )
    return Finding(
        summary=summary,
        evidence=(*measures, layers),
        remedies=(Remedy(INSTEAD, code, at),),
        effects=tuple(row.scaled(0.0, Bound.AT_MOST) for row in slow),
    )


def _is_gradient(row: OperationTime) -> bool:
    return row.type in GRADIENTS or XLA_GRADIENT in row.category or XLA_GRADIENT in row.name


INSTEAD = "Replace max pooling with average pooling or a convolution with stride 2"

AVERAGE = """\
x = keras.layers.AveragePooling2D(2)(x)  # instead of MaxPooling2D(2)
# or remove the pooling and give the convolution before it stride 2:
x = keras.layers.Conv2D(filters, 3, strides=2, padding="same")(x)"""

CPU = AVERAGE + "\n# oneDNN's fast gradient needs a graph (no run_eagerly=True) and channels-last data"


NAME = "gradient_tape/model/pool/MaxPoolGrad"


def example(
    time_ms: float = 3.0,
    ran: str = "void cudnn::pooling_bw_kernel_max",
    kind: str = "MaxPoolGrad",
    hardware: Hardware = Hardware(DeviceKind.GPU, "example"),
) -> Verdict:
    """The gradient takes a tenth of the compute time of a GPU."""
    row = OperationTime(name=NAME, type=kind, ms=time_ms, ran=(ran,), layer="pool", at=Location("train.py", 17))
    return check(Operations.training(30.0, row), hardware)


sick = example


def healthy() -> Verdict:
    """The gradient runs in oneDNN on a CPU."""
    return example(ran=f"{NAME}:_MklNativeMaxPoolGrad", hardware=Hardware(DeviceKind.CPU, "example"))
