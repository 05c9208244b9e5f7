"""Float16 computes slowly on this GPU.

## What it checks

The FLOP rate of matmuls and convolutions in float16, as under the policy `mixed_float16`, on an NVIDIA GPU without
Tensor Cores. It is compared with the peak rate of the GPU in float32, which needs no such cores.

## Why it matters

Tensor Cores make float16 fast. GPUs without them gain half of the bytes at most, and the libraries have few
kernels for float16 there: in a thread on TensorFlow 2.3, the policy made several networks 2 to 4 times as slow on
a GTX 1660 Ti.

## How to fix

Train in `float32`. Keep `mixed_float16` only if the memory does not hold the batch otherwise.

## Holds for

NVIDIA GPUs of compute capability below 7.0 (Pascal and older) and those of 7.5 without Tensor Cores (GTX 16,
MX450, T400 to T2000), where the shapes were recorded. Capabilities 5.3, 6.0 (P100) and 6.2 compute float16 at twice
the rate of float32 and are not judged. The saving is an upper bound: the time at the peak rates of the arithmetic
and of the memory in float32 is the least that is left. From published threads and NVIDIA's tables: the rule has
not been seen at work on such a GPU.

## Sources

- [TensorFlow issue 44191: mixed_float16 on a GTX 1660 Ti](https://github.com/tensorflow/tensorflow/issues/44191)
- [Mixed precision, TensorFlow guide: supported hardware](https://www.tensorflow.org/guide/mixed_precision#supported_hardware)
- [CUDA C++ Programming Guide, NVIDIA: throughput of arithmetic instructions](https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#arithmetic-instructions)
"""

from dataclasses import dataclass

from tfdoctor.diagnosis.preconditions import not_on
from tfdoctor.diagnosis.rule import Topic, share_limit
from tfdoctor.facts.operations.layer_times import layer_table
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Operation, Program
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.units import flop_rate, ratio
from tfdoctor.terms.verdict import (
    Bound,
    Effect,
    Evidence,
    Finding,
    Healthy,
    Location,
    Measure,
    NotApplicable,
    Remedy,
    Verdict,
)

TOPIC = Topic.PRECISION
SINCE = "0.2.0"
PRECONDITIONS = (
    not_on(DeviceKind.CPU, DeviceKind.TPU, verdict=NotApplicable(reason="the training does not run on a GPU")),
)
BY_HAND = "the policy was chosen, and the memory may not hold the batch in float32"


@dataclass(frozen=True, slots=True)
class Limits:
    """Which float16 matmuls and convolutions are reported."""

    share: float = share_limit(
        0.05,
        "Smallest share of the compute time in slow float16 matmuls and convolutions that is reported, as of "
        "float16-on-cpu",
    )
    reached: float = share_limit(
        0.3,
        "Smallest share of the peak rate in float32 from which float16 counts as fast enough: large products reach "
        "0.64 to 0.71 of a peak (on an H100, 2026-11-22), and the thread tells of a loss by a factor of 2 to 4",
    )


UNKNOWN_RATE = "the FLOPs of the float16 matmuls are unknown: record a step in a graph with `tfdoctor profile`"


def check(
    operations: Operations, hardware: Hardware, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Compare the rate of float16 matmuls with the peak in float32."""
    if not hardware.without_unit:
        why = hardware.missing or f"{hardware.name} has a matrix unit for 16 bits"
        return NotApplicable(reason=why)
    rows = [row for row in operations.matrix if row.precision == "float16"]
    if not rows:
        return _without_float16(operations)
    if not hardware.float32_flop_s:
        return NotApplicable(reason=f"the rate of {hardware.name} in float32 is unknown")
    known = [row for row in rows if row.flops and row.ms]
    if not known:
        return NotApplicable(reason=UNKNOWN_RATE)
    peak = hardware.float32_flop_s
    slow = [row for row in known if row.flop_s < limits.reached * peak]
    part = operations.part(sum(row.ms for row in slow or known))
    reached = sum((row.flops or 0) * row.calls for row in slow or known) / (part.ms * 1e-3)
    evidence: tuple[Evidence, ...] = (
        *part.measures("in these matmuls and convolutions", limits.share),
        Measure("FLOP rate of these in float16", flop_rate(reached)),
        Measure("peak FLOP rate of the GPU in float32", flop_rate(peak)),
        Measure("share of that peak", ratio(reached / peak), ratio(limits.reached)),
    )
    if not slow or part.share < limits.share:
        summary = f"Float16 matmuls and convolutions take {part}, as fast as float32 might"
        return Healthy(summary=summary, evidence=evidence)
    return Finding(
        summary=f"Float16 matmuls and convolutions take {part}, on a GPU without Tensor Cores",
        evidence=(*evidence, layer_table(slow, types=False, most=10)),
        remedies=(Remedy("Train in float32", POLICY, program.first_line if program else None),),
        effects=tuple(_effect(row, hardware, peak) for row in slow),
    )


POLICY = 'keras.mixed_precision.set_global_policy("float32")  # before the first layer is created'


def _without_float16(operations: Operations) -> Verdict:
    """Say why no float16 matmul runs."""
    if operations.matrix and not any(row.precision for row in operations.matrix):
        return NotApplicable(reason="the trace does not contain the types of the matmuls")
    if operations.why_unlisted:
        return NotApplicable(reason=operations.why_unlisted)
    return Healthy(summary="No matmul or convolution computes in float16")


def _effect(row: OperationTime, hardware: Hardware, peak: float) -> Effect:
    """Return the ceiling: the least time in float32 is that at the peak rates, with twice the bytes."""
    bandwidth = hardware.bandwidth_bytes_s
    moving_s = 2 * (row.nbytes or 0.0) / bandwidth if bandwidth else 0.0
    least_ms = max((row.flops or 0.0) / peak, moving_s) * row.calls * 1e3
    return row.scaled(min(1.0, least_ms / row.ms), Bound.AT_MOST)


GTX_1660_TI = Hardware(
    DeviceKind.GPU, "NVIDIA GeForce GTX 1660 Ti", bandwidth_bytes_s=288e9, without_unit=True, float32_flop_s=5.4e12
)


def example(
    *rows: OperationTime, dtype: str = "float16", time_ms: float = 60.0, hardware: Hardware = GTX_1660_TI
) -> Verdict:
    """A float16 convolution of 77 GFLOP takes 60 ms on a GTX 1660 Ti, which computes 5.4 TFLOP/s in float32."""
    tensors = ((dtype, (32, 128, 128, 64)), (dtype, (3, 3, 64, 128)))
    graph = Operation(name="model/conv2d/convolution", type="Conv2D", inputs=tensors)
    row = OperationTime(
        name=graph.name, type=graph.type, ms=time_ms, layer="conv2d", at=Location("train.py", 9),
        operation=graph, flops=2.0 * 32 * 128 * 128 * 128 * 9 * 64,
    )  # fmt: skip
    return check(Operations.training(70.0, *(rows or (row,)), rest="ReluGrad"), hardware, None)


sick = example


def healthy() -> Verdict:
    """The convolution runs in float32."""
    return example(dtype="float32")
