"""The cases of max-pool-gradient: what its tests judge, and the examples of its page."""

from tests.rules.kit import *
from tfdoctor.rules.operations.max_pool_gradient import check

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
