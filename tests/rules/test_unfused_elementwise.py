"""unfused-elementwise: on GPUs, without what belongs to other rules."""

from tests.rules.cases.unfused_elementwise import example
from tests.rules.kit import *
from tfdoctor.facts.operations.step_parts import OptimizerWork
from tfdoctor.rules import unfused_elementwise
from tfdoctor.rules.unfused_elementwise import Limits


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


def test_both_sides_of_the_share() -> None:
    assert [type(example(total)) for total in (30 * Limits().share + 1e-09, 2.9)] == [Finding, Healthy]


def test_a_few_are_no_chain() -> None:
    assert [type(example(number=number)) for number in (int(Limits().operations), 9)] == [Finding, Healthy]


def test_batch_normalizations_belong_to_another_rule() -> None:
    assert isinstance(example(layer="bn"), Healthy)


def test_the_optimizers_belong_to_another_rule() -> None:
    assert isinstance(example(scope="adam"), Healthy)


def test_a_step_of_unnamed_work_is_not_judged() -> None:
    unnamed = Operations((OperationTime(name="k", type="compiled or unnamed", ms=9.0),))
    work = OptimizerWork.measure(unnamed)
    assert isinstance(
        applied(unfused_elementwise, unnamed, work, Hardware(DeviceKind.GPU, "x"), None), NotApplicable
    )
