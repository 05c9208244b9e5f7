"""max-pool-gradient: both sides of its share, and oneDNN's fast one."""

from tests.rules.kit import *
from tfdoctor.rules.operations import max_pool_gradient
from tfdoctor.rules.operations.max_pool_gradient import Limits, check

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


CPU = Hardware(DeviceKind.CPU, "x")


def test_its_whole_time_is_a_ceiling() -> None:
    for kind in ("MaxPoolGrad", "MaxPool3DGrad", "MaxPoolGradWithArgmax"):
        assert scales(example(kind=kind)) == {NAME: 0.0}
        assert effects(example(kind=kind))[0][3] is Bound.AT_MOST


def test_both_sides_of_the_share() -> None:
    assert kinds(example(30 * Limits().share), example(0.89)) == [Finding, Healthy]


def test_on_a_cpu_onednns_gradient_is_fast_and_eigens_slow() -> None:
    fast, slow = (
        example(12.0, f"{NAME}:{kind}", hardware=CPU) for kind in ("_MklNativeMaxPoolGrad", "MaxPoolGrad")
    )
    assert "oneDNN" in as_healthy(fast).summary
    assert "run_eagerly" in first_code(slow)


def test_the_gradient_of_average_pooling_is_not_counted() -> None:
    row = OperationTime(name=NAME, type="AvgPoolGrad", ms=12.0)
    assert isinstance(applied(max_pool_gradient, Operations.training(30.0, row), CPU), Healthy)


def test_xla_searches_for_the_maxima_again() -> None:
    row = OperationTime(name="select-and-scatter.3", type="select-and-scatter", ms=9.0)
    rest = OperationTime(name="transpose(jvp(conv))", type="convolution", ms=30.0)
    assert isinstance(applied(max_pool_gradient, Operations((row, rest)), Hardware(DeviceKind.TPU, "x")), Finding)


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(applied(max_pool_gradient, Operations((unnamed,)), CPU), NotApplicable)
