"""Float16 computes slowly on this CPU.

## What it checks

The time of operations that compute in float16 on a CPU, as under the policy `mixed_float16`, if matmuls or
convolutions are among them.

## Why it matters

`mixed_float16` is made for GPUs. Most CPUs have no float16 arithmetic: each value is converted to float32,
computed and rounded again. On CPUs with AVX512-FP16 TensorFlow's matmuls in float16 are somewhat faster than in
float32, but convolutions of many channels are slower, the gradients of their filters are hundreds of times
slower, and all of them are slower than in bfloat16.

## How to fix

Use `mixed_bfloat16` if the CPU has AVX512-BF16 or AMX-BF16: it has the range of float32 and needs no loss
scaling. Else use `float32`.

## Holds for

CPUs, TensorFlow 2 with the graph recorded by tfdoctor. The saving is an upper bound, because the time in
float16 depends on the shape: on a CPU with AMX-BF16 and AVX512-FP16, bfloat16 took 0.2 to 0.9 of the time of
float16 in large matmuls, 0.06 to 0.15 in convolutions of 64 channels, 0.0002 to 0.06 in the gradients of their
filters (3.3 ms and 15 s for 16 images of 32 x 32 x 64), and a small network trained 86 times as fast.

## Sources

- [Mixed precision, TensorFlow guide](https://www.tensorflow.org/guide/mixed_precision)
- [oneDNN data types: hardware support](https://uxlfoundation.github.io/oneDNN/dev_guide_data_types.html)
- CPU figures: benchmarks/dtypes.py of this project, on an Intel Xeon with TensorFlow 2.21, 2026-11-22
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
from tfdoctor.terms.verdict import Bound, Finding, Healthy, Location, NotApplicable, Remedy, Verdict

TOPIC = Topic.PRECISION
SINCE = "0.1.0"
PRECONDITIONS = (
    not_on(DeviceKind.GPU, DeviceKind.TPU, verdict=NotApplicable(reason="the training does not run on a CPU")),
)
BY_HAND = "the policy was chosen, and training in float32 or bfloat16 may need other settings"


@dataclass(frozen=True, slots=True)
class Limits:
    """The share of the compute time from which float16 is reported."""

    share: float = share_limit(
        0.05, "Smallest share of the compute time in float16 matmuls and convolutions that is reported"
    )


def check(
    operations: Operations, hardware: Hardware, program: Program | None, limits: Limits = Limits()
) -> Verdict:
    """Take the time of all float16 operations as the ceiling of what another type saves."""
    if not any(row.precision for row in operations.matrix):
        return _without_precision(operations)
    rows = [row for row in operations.matrix if row.precision == "float16"]
    part = operations.part(sum(row.ms for row in rows))
    measures = part.measures("in float16 matmuls and convolutions", limits.share)
    summary = f"Float16 matmuls and convolutions take {part}"
    if part.share < limits.share:
        return Healthy(summary=summary, evidence=measures)
    policy = "mixed_bfloat16" if hardware.sixteen_bit else "float32"
    code = f'keras.mixed_precision.set_global_policy("{policy}")  # before the first layer is created'
    at = program.first_line if program else None
    return Finding(
        summary=f"{summary}, on a CPU",
        evidence=(*measures, layer_table(rows, types=False, most=10)),
        remedies=(Remedy(f"Train in {policy}", code, at, "precision-policy"),),
        effects=tuple(row.scaled(0.0, Bound.AT_MOST) for row in operations.rows if _is_half(row) and row.ms),
    )


def _without_precision(operations: Operations) -> Verdict:
    """Say why no matmul of a known type runs."""
    if operations.matrix:
        return NotApplicable(reason="the trace does not contain the types of the matmuls")
    if operations.why_unnamed:
        return NotApplicable(reason=operations.why_unnamed)
    return Healthy(summary="The step runs no matmul or convolution")


def _is_half(row: OperationTime) -> bool:
    """Say whether it reads or writes float16, or checks for overflow, as scaling the loss for float16 does."""
    graph = row.operation
    tensors = (*graph.inputs, *graph.outputs) if graph else ()
    return row.type == "IsFinite" or any(dtype == "float16" for dtype, _ in tensors)


def example(
    dtype: str = "float16",
    time_ms: float = 60.0,
    kind: str = "Conv2D",
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:
    """A float16 convolution takes 60 ms on a CPU without float16 arithmetic."""
    tensors = ((dtype, (32, 32, 32, 64)), (dtype, (3, 3, 64, 64)))
    graph = Operation(name="model/conv2d/convolution", type=kind, inputs=tensors if dtype else ())
    row = OperationTime(
        name=graph.name, type=kind, ms=time_ms, layer="conv2d", at=Location("train.py", 9), operation=graph
    )  # fmt: skip
    return check(Operations.training(70.0, row, rest="ReluGrad"), hardware, None)


sick = example


def healthy() -> Verdict:
    """The convolution runs in bfloat16."""
    return example("bfloat16")
