"""Grouped convolutions are slow for their few FLOPs.

## What it checks

On a GPU: the FLOP rate of convolutions that divide the channels into groups (`groups` of Keras' `Conv2D`, and any
convolution whose kernel has fewer input channels than its images), relative to the fastest regular convolution of
the same step in the same precision.

## Why it matters

A convolution in `g` groups multiplies a `g`-th as often as a regular one. But each group is a small product of its
own, for which libraries have slower kernels: in a thread on TensorFlow 2.4, convolutions in 8 groups trained as
long as regular ones on a TITAN RTX.

## How to fix

Train with a regular convolution (`groups=1`) or with fewer, wider groups and compare both time and accuracy: where
the grouped one takes as long, its parameters were given away for nothing. To have fewer FLOPs, use fewer filters or
a bottleneck of 1 x 1 convolutions instead. This changes the model.

## Holds for

NVIDIA and AMD GPUs, TensorFlow 2.3 and later, with recorded shapes; not for steps that XLA compiled. The saving is
an upper bound: it leaves the time at the peak rate of the GPU, or at that of the fastest regular convolution where
the peak is unknown. From published threads: the rule has not
been seen at work on such a network.

## Sources

- [TensorFlow issue 49147: training grouped Conv2D is slow](https://github.com/tensorflow/tensorflow/issues/49147)
- [Keras issue 20471: slower with groups than without](https://github.com/keras-team/keras/issues/20471)
- [Conv2D layer, Keras: groups](https://keras.io/api/layers/convolution_layers/convolution2d/)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import not_on
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.layer_times import LayerTime, by_layer
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.rules.grouped_convolution.grouped import GroupedConvolution, GroupedConvolutions
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import count, flop_rate, ms, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Table,
    Verdict,
)

TOPIC = Topic.OPERATIONS
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(
        DeviceKind.CPU,
        DeviceKind.TPU,
        verdict=NotApplicable(reason="grouped convolutions are compared on GPUs only"),
    ),
)
BY_HAND = "it changes the model, so its accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which grouped convolutions are reported."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in slow grouped convolutions that justifies changing a model"
    )
    reached: float = share_limit(
        0.5,
        "Smallest share of the fastest regular convolution's FLOP rate from which a grouped one counts as fast "
        "enough: regular convolutions of different widths differ by as much",
    )


def check(
    grouped: GroupedConvolutions, operations: Operations, hardware: Hardware, limits: Limits = Limits()
) -> Verdict:
    """Compare the rate of each grouped convolution with that of the fastest regular one."""
    if not grouped.rows:
        return Healthy(summary="The step runs no grouped convolution")
    rate = grouped.regular_flop_s
    if not rate:
        why = "the step runs no regular convolution in the same precision to compare grouped ones with"
        return NotApplicable(reason=why)
    slow = [one for one in grouped.rows if one.flop_s < limits.reached * rate]
    rows = [one.row for one in slow or grouped.rows]
    part = operations.part(sum(row.ms for row in rows))
    reached = sum((row.flops or 0.0) * row.calls for row in rows) / (part.ms * 1e-3)
    measures: tuple[Evidence, ...] = (
        *part.measures("in these grouped convolutions", limits.share),
        Measure("FLOP rate of these grouped convolutions", flop_rate(reached)),
        Measure("FLOP rate of the fastest regular convolution", flop_rate(rate)),
        Measure("share of that rate", ratio(reached / rate), ratio(limits.reached)),
    )
    if not slow or part.share < limits.share:
        return Healthy(summary=f"Grouped convolutions take {part}", evidence=measures)
    peak = max(rate, hardware.peak_flop_s or 0.0)
    return Finding(
        summary=f"Grouped convolutions take {part}, at a low FLOP rate",
        evidence=(*measures, _table(slow)),
        remedies=(Remedy(ACTION, REGULAR, next((row.at for row in rows if row.at), None)),),
        effects=tuple(one.row.scaled(one.flop_s / peak, Bound.AT_MOST) for one in slow),
    )


ACTION = "Try regular convolutions or fewer groups, and compare the time and the accuracy"

REGULAR = "x = keras.layers.Conv2D(filters, 3, padding='same', groups=1)(x)  # or fewer filters"


def _table(slow: list[GroupedConvolution]) -> Table:
    groups = {one.row.layer or one.row.name: one.groups for one in slow}
    rates = {one.row.name: one for one in slow}

    def rate(layer: LayerTime) -> float:
        known = [rates[row.name].row for row in layer.rows]
        return sum((row.flops or 0.0) * row.calls for row in known) / (layer.ms * 1e-3)

    return Table.of(
        by_layer(one.row for one in slow),
        ("layer", lambda layer: layer.name),
        ("your line", lambda layer: layer.at),
        ("groups", lambda layer: count(groups[layer.name])),
        ("time per step", lambda layer: ms(layer.ms)),
        ("FLOP rate", lambda layer: flop_rate(rate(layer))),
    )


def example(
    groups: int = 8,
    grouped_ms: float = 10.0,
    regular_ms: float = 10.0,
    total_ms: float = 30.0,
    peak_flop_s: float | None = None,
) -> Verdict:
    """A convolution in 8 groups takes as long as a regular one of the same size."""
    grouped = convolution("conv2d_1", groups, grouped_ms)
    operations = Operations.training(total_ms, grouped, convolution("conv2d", 1, regular_ms), rest="ReluGrad")
    hardware = Hardware(DeviceKind.GPU, "example", peak_flop_s=peak_flop_s)
    return check(GroupedConvolutions.measure(operations), operations, hardware)


def convolution(layer: str, groups: int, time_ms: float) -> OperationTime:
    """Build a 3 x 3 convolution of 128 channels, for examples and tests."""
    images, kernel = (32, 56, 56, 128), (3, 3, 128 // groups, 128)
    graph = Operation(
        name=f"{layer}/convolution", type="Conv2D",
        inputs=(("float32", images), ("float32", kernel)), outputs=(("float32", images),),
    )  # fmt: skip
    return OperationTime(
        name=graph.name, type=graph.type, ms=time_ms, layer=layer, at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 56 * 56 * 128 * 9 * 128 / groups,
    )  # fmt: skip


sick = example


def healthy() -> Verdict:
    """The grouped convolution takes an eighth of the time."""
    return example(grouped_ms=1.25)
