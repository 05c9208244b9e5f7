"""The cases of float32-matmul: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.facts.run.hardware import SixteenBit
from tfdoctor.rules.precision.float32_matmul import Limits, ReducedPrecision, check

CPU = Hardware(DeviceKind.CPU, "example", "AVX512-BF16", SixteenBit("bfloat16", 0.6, Bound.EXPECTED, "an example"))


def conv(dtype: str = "float32") -> OperationTime:
    """Build a convolution that takes 80 ms."""
    name = "model/conv2d/convolution"
    tensors = ((dtype, (32, 64, 64, 48)), (dtype, (3, 3, 48, 48)))
    return OperationTime(
        name=name,
        type="Conv2D",
        ms=80.0,
        ran=(f"{name}:_MklNativeConv2D",),
        layer="conv2d",
        at=Location("train.py", 9),
        operation=Operation(name=name, type="Conv2D", inputs=tensors),
    )


def example(
    *rows: OperationTime,
    hardware: Hardware = CPU,
    program: Program | None = None,
    norms: BatchNorms | None = None,
    framework: Framework = Framework(),
    limits: Limits = Limits(),
) -> Verdict:
    """A float32 convolution takes 80 ms on a CPU with avx512_bf16."""
    operations = Operations(rows or (conv(),))
    reduced = ReducedPrecision.measure(operations, hardware, norms, program)
    return check(operations, hardware, program, reduced, framework, limits)


sick = example


def healthy() -> Verdict:
    """The convolution runs in bfloat16."""
    return example(conv("bfloat16"))
