"""optimizer-overhead: small tensors only, told by the optimizer's scope."""

import pytest

from tfdoctor.facts.hardware import Hardware
from tfdoctor.facts.operations import Operations, OperationTime
from tfdoctor.facts.optimizer_work import OptimizerWork
from tfdoctor.facts.program import Operation
from tfdoctor.rules import optimizer_overhead
from tfdoctor.rules.optimizer_overhead import LIMITS
from tfdoctor.verdict import Bound, Finding, Healthy, NotApplicable, Verdict

GPU = Hardware("GPU", "x")


def row(
    ms: float, size: int | None = 64, name: str = "adam/Mul", kind: str = "Mul"
) -> OperationTime:
    tensors = (("float32", (size,)),) if size else ()
    graph = Operation(name=name, type=kind, inputs=tensors) if size else None
    return OperationTime(name=name, type=kind, ms=ms, operation=graph)


def check(*rows: OperationTime, hardware: Hardware = GPU) -> Verdict:
    rest = 100.0 - sum(one.ms for one in rows)
    work = OperationTime(name="gradient_tape/m/conv", type="Conv2D", ms=rest)
    operations = Operations((*rows, work))
    return optimizer_overhead.check(OptimizerWork.measure(operations), operations, hardware)


@pytest.mark.parametrize(("ms", "kind"), [(100 * LIMITS.share, Finding), (4.9, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert isinstance(check(row(ms)), kind)


@pytest.mark.parametrize(("size", "kind"), [(int(LIMITS.values), Finding), (10_001, Healthy)])
def test_updates_of_large_variables_are_no_overhead(size: int, kind: type) -> None:
    assert isinstance(check(row(20.0, size)), kind)


@pytest.mark.parametrize(("calls", "kind"), [(20.0 / LIMITS.each_ms, Finding), (3999.0, Healthy)])
def test_of_unknown_size_the_short_ones_are_small(calls: float, kind: type) -> None:
    one = OperationTime(name="adam_1/Mul", type="ResourceApplyAdam", ms=20.0, calls=calls)
    assert isinstance(check(one), kind)


def test_it_is_a_ceiling() -> None:
    found = check(row(20.0))
    assert isinstance(found, Finding)
    assert (found.effects[0].scales, found.effects[0].bound) == (0.0, Bound.AT_MOST)
    assert found.remedies[0].trial == "jit-compile"


def test_on_a_cpu_the_rule_only_says_what_they_take() -> None:
    said = check(row(20.0), hardware=Hardware("CPU", "x"))
    assert isinstance(said, Healthy)
    assert "20.0 ms" in said.summary


@pytest.mark.parametrize("name", ["model/sgd_like/Mul", "adam", "model/adamant/Mul"])
def test_only_an_optimizers_scope_counts(name: str) -> None:
    assert isinstance(check(row(20.0, name=name)), NotApplicable)


def test_on_a_tpu_xla_has_fused_them() -> None:
    assert isinstance(check(row(20.0), hardware=Hardware("TPU", "x")), Healthy)
