"""Deterministic operations run slower kernels.

## What it checks

On a GPU: whether TensorFlow was told to compute the same result in every run
(`tf.config.experimental.enable_op_determinism()`, `TF_DETERMINISTIC_OPS=1`, `TF_CUDNN_DETERMINISTIC=1`), and the
time of the operations that have other kernels then: convolutions and their gradients, and the gradients of
biases, of pooling, of resizing, of embeddings and of the softmax loss. A convolution counts where it stays far
below the peak rate of the GPU, the others whatever they take.

## Why it matters

The fastest kernels add numbers in the order in which threads finish. Deterministic ones avoid that, and cuDNN's
search for the fastest algorithm is off. What it costs depends on the network: NVIDIA saw 6 % in one, and in a
thread on TensorFlow 2.14 a small convolutional network took more than 10 minutes in place of 80 s on a T4.

## How to fix

Switch determinism on only while you look for a defect or compare two runs bit by bit. Seeds alone
(`keras.utils.set_random_seed`) keep most runs close to each other and cost nothing. `tf.data` becomes faster,
too: it may then run stateful functions in parallel.

## Holds for

NVIDIA GPUs, TensorFlow 2.1 and later, recorded with `tfdoctor profile`. The saving is an upper bound: it leaves a
convolution the time at the peak rates of arithmetic and memory, and nothing to the other operations. Measure it
with determinism off. From documentation and published threads: the rule has not been seen at work on a GPU.

## Sources

- [tf.config.experimental.enable_op_determinism](https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_op_determinism)
- [Status of GPU determinism in TensorFlow, NVIDIA](https://github.com/NVIDIA/framework-reproducibility/blob/master/doc/d9m/tensorflow_status.md)
- [TensorFlow issue 62100: deterministic convolutions are extremely slow](https://github.com/tensorflow/tensorflow/issues/62100)
- [NVIDIA framework-reproducibility, issue 10: 6 % in one model](https://github.com/NVIDIA/framework-reproducibility/issues/10)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import not_on
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.layer_times import layer_table
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.operation_types import CONVOLUTIONS
from tfdoctor.facts.run.program import Operation
from tfdoctor.rules.deterministic_operations.determinism import Determinism
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, NotApplicable, Remedy, Verdict

TOPIC = Topic.EXECUTION
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(
        DeviceKind.CPU,
        DeviceKind.TPU,
        verdict=NotApplicable(reason="deterministic operations have slower kernels on GPUs only"),
    ),
)
BY_HAND = "whether the results must be equal bit by bit is not in the file"

OTHERS = frozenset(
    ["BiasAddGrad", "CropAndResizeGradBoxes", "CropAndResizeGradImage", "DepthwiseConv2dNativeBackpropFilter",
     "MaxPool3DGrad", "MaxPoolGrad", "MaxPoolGradV2", "ResizeBilinearGrad", "ScatterNd", "SegmentSum",
     "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "TensorScatterAdd",
     "TensorScatterUpdate", "UnsortedSegmentSum"]
)  # fmt: skip
"""Types of operations with other kernels where results must be deterministic, besides convolutions (NVIDIA, status
of GPU determinism)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Which operations are reported."""

    share: float = share_limit(
        0.05,
        "Smallest share of the compute time in operations that determinism may slow down: NVIDIA saw 6 % in one "
        "model",
    )
    reached: float = share_limit(
        0.3,
        "Smallest share of the peak FLOP rate from which a convolution counts as fast enough: large products reach "
        "0.64 to 0.71 of a peak (on an H100, 2026-11-22)",
    )


def check(
    determinism: Determinism, operations: Operations, hardware: Hardware, limits: Limits = Limits()
) -> Verdict:
    """Add up the time of operations that have slower kernels because of a setting."""
    if not determinism.how:
        return Healthy(summary="No setting asks for deterministic operations")
    rows = [row for row in operations.rows if _may_be_slow(row, hardware, limits.reached)]
    if not rows and operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    part = operations.part(sum(row.ms for row in rows))
    measures = part.measures("in operations that determinism may slow down", limits.share)
    summary = f"Operations that {determinism.how} may slow down take {part}"
    if part.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    code = f"unset {determinism.variable}  # in the shell" if not determinism.by_call else FLAG
    return Finding(
        summary=summary,
        evidence=(*measures, layer_table(rows, most=10)),
        remedies=(Remedy("Switch deterministic operations off, and compare", code, determinism.at),),
        effects=tuple(row.scaled(min(1.0, _least_ms(row, hardware) / row.ms), Bound.AT_MOST) for row in rows),
    )


FLAG = """\
if args.reproduce:  # only while two runs must be equal bit by bit
    tf.config.experimental.enable_op_determinism()"""


def _may_be_slow(row: OperationTime, hardware: Hardware, reached: float) -> bool:
    if not row.ms or row.type not in CONVOLUTIONS:
        return bool(row.ms) and row.type in OTHERS
    return _least_ms(row, hardware) < reached * row.ms


def _least_ms(row: OperationTime, hardware: Hardware) -> float:
    """Return the time at the peak rates of the device, per step; 0 where they are unknown."""
    peak = hardware.peak_flop_s or 0.0
    if row.precision == "float32" and hardware.sixteen_bit:
        peak *= hardware.sixteen_bit.scales
    computing_s = (row.flops or 0.0) / peak if peak else 0.0
    bandwidth = hardware.bandwidth_bytes_s
    moving_s = (row.nbytes or 0.0) / bandwidth if bandwidth else 0.0
    return max(computing_s, moving_s) * row.calls * 1e3


T4 = Hardware(DeviceKind.GPU, "Tesla T4", "Tensor Core", bandwidth_bytes_s=320e9, peak_flop_s=65e12)


def example(
    *rows: OperationTime,
    time_ms: float = 60.0,
    determinism: Determinism = Determinism(by_call=True, at=Location("train.py", 5)),
    hardware: Hardware = T4,
) -> Verdict:
    """The gradient of a filter takes 60 of 70 ms, at 2 % of the peak rate of a T4."""
    kind = "Conv2DBackpropFilter"
    images = ("float16", (32, 128, 128, 64))
    graph = Operation(name=f"gradient_tape/model/conv2d/{kind}", type=kind, inputs=(images,))
    row = OperationTime(
        name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 128 * 128 * 128 * 9 * 64,
    )  # fmt: skip
    operations = Operations.training(70.0, *(rows or (row,)), rest="ReluGrad")
    return check(determinism, operations, hardware)


sick = example


def healthy() -> Verdict:
    """Nothing asks for deterministic operations."""
    return example(determinism=Determinism())
