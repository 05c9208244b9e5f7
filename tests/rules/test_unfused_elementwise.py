"""unfused-elementwise: on GPUs, without what belongs to other rules."""

from tests.rules.kit import *
from tfdoctor.rules.operations import unfused_elementwise
from tfdoctor.rules.operations.unfused_elementwise import Limits, check


def example(
    total: float = 10.0, number: int = 20, scope: str = "model", layer: str = "", kind: DeviceKind = DeviceKind.GPU
) -> Verdict:
    """Twenty elementwise operations take a third of the compute time of a GPU."""
    rows = [
        OperationTime(name=f"{scope}/mul_{n}", type="Mul", ms=total / number, layer=layer) for n in range(number)
    ]
    operations = Operations.training(30.0, *rows)
    program = Program(layers=(Layer(name="bn", kind="BatchNormalization"),))
    work = OptimizerWork.measure(operations)
    return check(operations, work, Hardware(kind, "example"), program)


sick = example


def healthy() -> Verdict:
    """The step runs two elementwise operations."""
    return example(1.0, 2)


def test_on_a_gpu_the_saving_is_a_ceiling_and_try_can_measure_it() -> None:
    finding = as_finding(example())
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}
    assert finding.remedies[0].edit_id == "jit-compile"


def test_on_a_cpu_only_a_trial_shows_the_gain() -> None:
    assert "jit_compile=True" in as_not_applicable(example(kind=DeviceKind.CPU)).reason


def test_on_a_tpu_xla_fuses_them() -> None:
    rows = Operations.training(30.0)
    work, tpu = OptimizerWork.measure(rows), Hardware(DeviceKind.TPU, "x")
    assert isinstance(applied(unfused_elementwise, rows, work, tpu), Healthy)


def test_both_sides_of_each_limit() -> None:
    assert kinds(example(30 * Limits().share + 1e-09), example(2.9)) == [Finding, Healthy]
    assert kinds(example(number=int(Limits().operations)), example(number=9)) == [Finding, Healthy]


def test_batch_normalizations_and_optimizers_belong_to_other_rules() -> None:
    assert kinds(example(layer="bn"), example(scope="adam")) == [Healthy, Healthy]


def test_a_step_of_unnamed_work_is_not_judged() -> None:
    unnamed = Operations((OperationTime(name="k", type="compiled or unnamed", ms=9.0),))
    facts = (unnamed, OptimizerWork.measure(unnamed), Hardware(DeviceKind.GPU, "x"), None)
    assert isinstance(applied(unfused_elementwise, *facts), NotApplicable)
