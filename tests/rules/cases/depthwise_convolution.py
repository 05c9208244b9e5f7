"""The cases of depthwise-convolution: what its tests judge, and the examples of its page."""

from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.rules.depthwise_convolution import check, depthwise
from tfdoctor.rules.depthwise_convolution.fixed_kernels import FixedConvolution, FixedKernels
from tfdoctor.terms.kinds import DeviceKind
from tfdoctor.terms.verdict import Verdict

GPU = Hardware(DeviceKind.GPU, "example", peak_flop_s=1e14, bandwidth_bytes_s=4e10)


FAST = OperationTime(name="gradient_tape/model/conv", type="Conv2D", ms=20.0, flops=7e9)


def example(*rows: OperationTime, hardware: Hardware = GPU, constant: tuple[FixedConvolution, ...] = ()) -> Verdict:
    """A depthwise convolution takes 12 ms; a memory of 40 GB/s moves its bytes in 2.5 ms."""
    operations = Operations(rows or (depthwise(), FAST))
    return check(operations, hardware, FixedKernels(constant) if constant else None)


sick = example


def healthy() -> Verdict:
    """The step runs regular convolutions only."""
    return example(FAST)
