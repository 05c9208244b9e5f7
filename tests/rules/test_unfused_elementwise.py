"""unfused-elementwise: on GPUs, without what belongs to other rules."""

import pytest

from tests.rules.applied import applied
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.operations.optimizer_work import OptimizerWork
from tfdoctor.facts.run.hardware import Hardware
from tfdoctor.facts.run.program import Layer, Program
from tfdoctor.kinds import DeviceKind
from tfdoctor.rules import unfused_elementwise
from tfdoctor.rules.unfused_elementwise import LIMITS
from tfdoctor.verdict import Bound, Finding, Healthy, NotApplicable, Verdict


def check(
    total: float = 30.0,
    number: int = 20,
    scope: str = "m",
    layer: str = "",
    kind: DeviceKind = DeviceKind.GPU,
) -> Verdict:
    rows = [
        OperationTime(name=f"{scope}/mul_{n}", type="Mul", ms=total / number, layer=layer)
        for n in range(number)
    ]
    rest = OperationTime(name="gradient_tape/conv", type="Conv2D", ms=100.0 - total)
    operations = Operations((*rows, rest))
    program = Program(layers=(Layer(name="bn", kind="BatchNormalization"),))
    work = OptimizerWork.measure(operations)
    return applied(unfused_elementwise, operations, work, Hardware(kind, "x"), program)


def test_on_a_gpu_the_saving_is_a_ceiling_and_try_can_measure_it() -> None:
    finding = check()
    assert isinstance(finding, Finding)
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}
    assert finding.remedies[0].edit_id == "jit-compile"


def test_on_a_cpu_only_a_trial_shows_the_gain() -> None:
    verdict = check(kind=DeviceKind.CPU)
    assert isinstance(verdict, NotApplicable)
    assert "jit_compile=True" in verdict.reason


def test_on_a_tpu_xla_fuses_them() -> None:
    assert isinstance(check(kind=DeviceKind.TPU), Healthy)


@pytest.mark.parametrize(("total", "kind"), [(100 * LIMITS.share + 1e-9, Finding), (9.9, Healthy)])
def test_both_sides_of_the_share(total: float, kind: type) -> None:
    assert isinstance(check(total), kind)


@pytest.mark.parametrize(("number", "kind"), [(int(LIMITS.operations), Finding), (9, Healthy)])
def test_a_few_are_no_chain(number: int, kind: type) -> None:
    assert isinstance(check(number=number), kind)


def test_batch_normalizations_belong_to_another_rule() -> None:
    assert isinstance(check(layer="bn"), Healthy)


def test_the_optimizers_belong_to_another_rule() -> None:
    assert isinstance(check(scope="adam"), Healthy)


def test_a_step_of_unnamed_work_is_not_judged() -> None:
    unnamed = Operations((OperationTime(name="k", type="compiled or unnamed", ms=9.0),))
    work = OptimizerWork.measure(unnamed)
    verdict = applied(unfused_elementwise, unnamed, work, Hardware(DeviceKind.GPU, "x"), None)
    assert isinstance(verdict, NotApplicable)
