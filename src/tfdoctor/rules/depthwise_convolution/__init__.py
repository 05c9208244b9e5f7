"""Depthwise convolutions are slow for their few FLOPs.

## What it checks

The time of depthwise convolutions (also inside `SeparableConv2D`), their FLOP rate beside that of the other
convolutions and matmuls of the run, and the time they would take if only the memory bandwidth limited them. Also
the FLOP rate from which regular convolutions with kernels of at most 3 x 3 would be faster. Where neither the
fastest convolution of the run nor the known peak rate of the hardware reaches it, the rule is healthy.

Convolutions with a constant kernel, such as a blur, are judged apart: whether the values of the kernel are a column
times a row. Kernels that a step computes from constants, such as the window of `tf.image.ssim`, are not judged.

## Why it matters

A depthwise convolution multiplies each channel on its own: it does few multiplications for each byte it moves.
A matrix unit cannot help, and many implementations do not even reach the memory bandwidth.

## How to fix

In the early stages of a network, replace a depthwise plus a pointwise convolution with one regular convolution
(fused MBConv, as in EfficientNetV2). It has more FLOPs but takes less time on a matrix unit. On a GPU also
train in float16 where cuDNN runs the convolution. TensorFlow uses it for 16 bits, square kernels of 1, 3, 5 or 7
and a depth multiplier of 1 only: channels-first from cuDNN 7.6.3 on, channels-last with strides of 1 or 2 from
cuDNN 8 on. Elsewhere its own kernels run (`DepthwiseConv2d...GPUKernel` in the trace), of which the gradient of the
filter was 50 times as slow in float16 as in float32 with TensorFlow 2.2: give such layers `dtype="float32"`.

Check the accuracy: this changes the model. The saving is an upper bound: it removes the whole time of the depthwise
convolution and adds nothing for the regular one. Depthwise convolutions that are as fast as the memory bandwidth
allows save nothing.

Where a constant kernel is a column times a row, convolve with the column and then with the row: k x k
multiplications per value become 2k, and the result differs by rounding only. The saving is that of the arithmetic,
an upper bound: short kernels reach a lower FLOP rate.

## Holds for

GPUs, TPUs and CPUs. On a CPU it depends on the rates: on AMX in bfloat16, a network whose 7 x 7 depthwise
convolutions took half of the step trained 2.4 times as fast with regular 3 x 3 ones; with avx512_bf16 but without
AMX, as fast as before; a small separable network in float32 took 2.7 times as long. So on a CPU, whose peak rate is
unknown, the rule states a saving only if a convolution of the same run reaches the rate from which the regular
ones are faster. Where one of these rates is unknown, it reports the time as a note.

## Sources

- [EfficientNetV2: Smaller Models and Faster Training, section 3.2](https://arxiv.org/abs/2104.00298)
- [Google Cloud, TensorFlow functions on TPUs](https://cloud.google.com/tpu/docs/tensorflow-performance-guide)
- CPU figures: one network per case, two cores each, November 2026; on AMX timed without a profiler (65.5 and
  26.8 ms per step), with avx512_bf16 while traced (60.4 and 62.3 ms)
- TensorFlow issues [41715](https://github.com/tensorflow/tensorflow/issues/41715) and
  [27780](https://github.com/tensorflow/tensorflow/issues/27780): float16 without cuDNN (not measured here)
- [TensorFlow source: when cuDNN runs a depthwise convolution](https://github.com/tensorflow/tensorflow/blob/v2.8.0/tensorflow/core/kernels/depthwise_conv_op.cc)
- [Separable filter](https://en.wikipedia.org/wiki/Separable_filter)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.chart import Unavailable
from tfdoctor.facts.operations.layer_times import LayerTime, by_layer
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation
from tfdoctor.rules.depthwise_convolution.depthwise import Depthwise
from tfdoctor.rules.depthwise_convolution.fixed_kernels import FixedConvolution, FixedKernels
from tfdoctor.terms.humanize import milliseconds, percent, quantity
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import Quantity, count, flop_rate, ms, ratio
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, Measure, NotApplicable, Remedy, Table, Verdict

TOPIC = Topic.OPERATIONS
SINCE = "0.1.0"
BY_HAND = "it changes the model, so its accuracy has to be compared"


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the step from which depthwise convolutions are reported."""

    share: float = share_limit(
        0.005, "Smallest share of the compute time in depthwise convolutions that justifies changing a model"
    )
    on_cpu: float = share_limit(
        0.10, "Like share, on a CPU, where the change often costs time: only a part that no other rule may ignore"
    )
    constant: float = share_limit(
        0.02, "Like share, of constant kernels that are a column times a row: steps vary by as much"
    )
    left: float = share_limit(
        0.5,
        "Largest share of the arithmetic that a column and a row leave of a kernel: the tensor between them is "
        "written and read besides",
    )


def check(
    operations: Operations, hardware: Hardware, fixed: FixedKernels | None, limits: Limits = Limits()
) -> Verdict:
    """Compare the time of depthwise convolutions with the time to move their bytes, and constant kernels alone."""
    constant = fixed.rows if fixed else ()
    layers = _layers(operations, hardware, constant, limits)
    separable = _separable(constant, operations, limits)
    if separable is None:
        return layers
    return separable.joined(layers) if isinstance(layers, Finding) else separable


def _layers(
    operations: Operations, hardware: Hardware, constant: Iterable[FixedConvolution], limits: Limits
) -> Verdict:
    """Judge the convolutions whose kernels may be trained."""
    names = {row.name for one in constant for row in one.rows}
    try:
        work = Depthwise.measure(operations, names)
    except Unavailable as missing:
        if operations.why_unlisted:
            return NotApplicable(reason=str(missing))
        constant_ms = sum(one.ms for one in constant)
        if not constant_ms:
            return Healthy(summary="The step runs no depthwise convolution")
        takes = f"take {milliseconds(constant_ms)} per step"
        return Healthy(summary=f"Depthwise convolutions, all with constant kernels, {takes}")
    on_cpu = hardware.kind == DeviceKind.CPU
    share = work.ms / operations.total_ms
    if share < (limits.on_cpu if on_cpu else limits.share):
        summary = f"Depthwise convolutions take {milliseconds(work.ms)} per step"
        return Healthy(summary=summary, evidence=_measures(work, operations))
    pays = work.regular_pays(hardware.peak_flop_s)
    if pays is False:
        return _too_slow(work, operations, hardware)
    return _finding(work, operations, hardware, promises=pays is True or not on_cpu)


def _separable(constant: Iterable[FixedConvolution], operations: Operations, limits: Limits) -> Finding | None:
    """Return the constant kernels that are a column times a row, where they take long enough."""
    found = [one for one in constant if one.left <= limits.left]
    total_ms = sum(one.ms for one in found)
    share = total_ms / operations.total_ms if found else 0.0
    if share < limits.constant:
        return None
    places = dict.fromkeys(one.at for one in found)
    return Finding(
        summary="Convolutions with constant kernels that are a column times a row take "
        f"{milliseconds(total_ms)} per step",
        evidence=(
            Measure("time in convolutions with such kernels per step", ms(total_ms)),
            Measure.share("share of the compute time in them", share, limits.constant),
            Table.of(
                found,
                ("operation", lambda one: one.rows[0].type),
                ("your line", lambda one: one.at),
                ("kernel", lambda one: " x ".join(map(str, one.size or ()))),
                ("arithmetic left", lambda one: ratio(one.left)),
                ("time per step", lambda one: ms(one.ms)),
            ),
        ),
        remedies=tuple(
            Remedy("Convolve with the column of the kernel, then with its row", TWICE, at) for at in places
        ),
        effects=tuple(row.scaled(one.left, Bound.AT_MOST) for one in found for row in one.rows),
        alike=len(places) - 1,
    )


TWICE = """\
# instead of tf.nn.depthwise_conv2d(x, kernel, strides, padding), where kernel is column * row:
x = tf.nn.depthwise_conv2d(x, column, strides, padding)  # column: [height, 1, channels, 1]
x = tf.nn.depthwise_conv2d(x, row, [1, 1, 1, 1], padding)  # row: [1, width, channels, 1]"""


def _too_slow(work: Depthwise, operations: Operations, hardware: Hardware) -> Healthy:
    """Say that no regular convolution reaches the rate from which it would be faster."""
    needed = quantity(flop_rate(work.break_even_flop_s or 0.0))
    reached = quantity(flop_rate(work.reached_flop_s(hardware.peak_flop_s)))
    return Healthy(
        summary=f"{_takes(work, operations)}; regular convolutions would take less time from {needed} on, "
        f"and reach at most {reached} here",
        evidence=(*_measures(work, operations), *_of_regular(work, hardware)),
    )


def _takes(work: Depthwise, operations: Operations) -> str:
    share = percent(work.ms / operations.total_ms)
    return f"Depthwise convolutions take {milliseconds(work.ms)} per step, {share} of the compute time"


def _finding(work: Depthwise, operations: Operations, hardware: Hardware, *, promises: bool) -> Finding:
    """Report their time; ``promises`` says that a regular convolution may be faster on this hardware."""
    rate = hardware.bandwidth_bytes_s or operations.streaming_rate
    least_ms = {  # to move the operands once; 0 when their size or the rate is unknown
        row.name: row.nbytes * row.calls / rate * 1e3 if row.nbytes and rate else 0.0 for row in work.rows
    }
    regular = _of_regular(work, hardware) if hardware.kind == DeviceKind.CPU else ()
    effects = [
        row.scaled(0.0 if row.ms > least_ms[row.name] else 1.0, Bound.AT_MOST)
        for row in work.rows
        if row.ms and promises
    ]
    return Finding(
        summary=_takes(work, operations),
        evidence=(*_measures(work, operations), *regular, _table(work.rows, least_ms)),
        remedies=(Remedy(ACTION if promises else MEASURE, FUSED, work.at),),
        effects=tuple(effects),
    )


def _of_regular(work: Depthwise, hardware: Hardware) -> tuple[Measure, ...]:
    rates = {
        "FLOP rate from which regular convolutions of at most 3 x 3 are faster": work.break_even_flop_s,
        "FLOP rate of the fastest regular convolution in this run": work.fastest_flop_s,
        "peak FLOP rate of the hardware": hardware.peak_flop_s,
    }
    return tuple(Measure(label, flop_rate(rate)) for label, rate in rates.items() if rate)


def _measures(work: Depthwise, operations: Operations) -> tuple[Measure, ...]:
    rates = {
        "FLOP rate of the depthwise convolutions": work.flop_s,
        "FLOP rate of the other convolutions and matmuls": work.others_flop_s,
    }
    return (
        *operations.part(work.ms).measures("in depthwise convolutions"),
        *(Measure(label, flop_rate(rate)) for label, rate in rates.items() if rate),
    )


def _table(rows: Iterable[OperationTime], least_ms: dict[str, float]) -> Table:
    def least(layer: LayerTime) -> Quantity | None:
        known_ms = sum(least_ms[row.name] for row in layer.rows)
        return ms(known_ms) if known_ms else None

    return Table.of(
        by_layer(rows),
        ("layer", lambda layer: layer.name),
        ("your line", lambda layer: layer.at),
        ("operations", lambda layer: count(len(layer.rows))),
        ("time per step", lambda layer: ms(layer.ms)),
        ("time to move the bytes once", least),
    )


ACTION = "Try a regular convolution instead of depthwise plus pointwise in the early stages"

MEASURE = "Measure a regular convolution, or a smaller depthwise kernel, before changing the model"

FUSED = """\
# instead of DepthwiseConv2D(3) followed by Conv2D(filters, 1):
x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)"""


GPU = Hardware(DeviceKind.GPU, "example", peak_flop_s=1e14, bandwidth_bytes_s=4e10)
FAST = OperationTime(name="gradient_tape/model/conv", type="Conv2D", ms=20.0, flops=7e9)


def depthwise(time_ms: float = 12.0, end: str = "", **more: Any) -> OperationTime:  # noqa: ANN401 - its fields
    """Build a depthwise convolution of 96 channels, or one of its gradients."""
    kind = f"DepthwiseConv2dNative{end}"
    shape = (32, 64, 64, 96)
    tensors = (("float32", shape), ("float32", (3, 3, 96, 1)))
    graph = Operation(name="model/depthwise", type=kind, inputs=tensors, outputs=(("float32", shape),))
    parts: dict[str, Any] = {
        "name": graph.name, "layer": "depthwise", "at": Location("train.py", 11), "operation": graph,
        "nbytes": 1e8, "flops": 2.3e8,
    }  # fmt: skip
    return OperationTime(type=kind, ms=time_ms, **(parts | more))


def example(*rows: OperationTime, hardware: Hardware = GPU, constant: tuple[FixedConvolution, ...] = ()) -> Verdict:
    """A depthwise convolution takes 12 ms; a memory of 40 GB/s moves its bytes in 2.5 ms."""
    operations = Operations(rows or (depthwise(), FAST))
    return check(operations, hardware, FixedKernels(constant) if constant else None)


sick = example


def healthy() -> Verdict:
    """The step runs regular convolutions only."""
    return example(FAST)
