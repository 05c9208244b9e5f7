"""max-pool-gradient: both sides of its share, and oneDNN's fast one."""

from tests.rules.kit import *
from tfdoctor.rules.operations.max_pool_gradient import check

NAME = "gradient_tape/model/pool/MaxPoolGrad"
CPU = Hardware(DeviceKind.CPU, "x")


def example(
    time_ms: float = 3.0, ran: str = "void cudnn::pooling_bw_kernel_max", kind: str = "MaxPoolGrad",
    hardware: Hardware = Hardware(DeviceKind.GPU, "example"),
) -> Verdict:  # fmt: skip
    """The gradient takes a tenth of the compute time of a GPU."""
    row = took(NAME, kind, time_ms, ran=(ran,), layer="pool", at=script(17))
    return check(training_step(30.0, row), hardware)


sick = example
ONE_DNN: dict[str, Any] = {"ran": f"{NAME}:_MklNativeMaxPoolGrad", "hardware": Hardware(DeviceKind.CPU, "example")}
healthy = described("The gradient runs in oneDNN on a CPU.", example, **ONE_DNN)


@golden_cases
def test_verdicts(told: Cases) -> None:
    for kind in ("MaxPool3DGrad", "MaxPoolGradWithArgmax"):
        told[f"all of the time of {kind} is a ceiling"] = example(kind=kind)
    told["3 % of the compute, and less"] = example(0.9), example(0.89)
    told["on a CPU Eigen's gradient is slow"] = example(12.0, f"{NAME}:MaxPoolGrad", hardware=CPU)
    average = took(NAME, "AvgPoolGrad", 12.0)
    told["the gradient of average pooling"] = applied(check, training_step(30.0, average), CPU)
    row = took("select-and-scatter.3", "select-and-scatter", 9.0)
    rest = took("transpose(jvp(conv))", "convolution", 30.0)
    told["XLA searches the maxima again"] = applied(check, Operations((row, rest)), Hardware(DeviceKind.TPU, "x"))
    told["a step of unnamed work"] = applied(check, UNNAMED_WORK, CPU)
