"""frozen-layers: both sides of its limits, and work that only looks the same."""

from dataclasses import replace

import pytest

from tfdoctor.facts.machine.host_memory import HostMemory
from tfdoctor.facts.operations.operation_time import OperationTime
from tfdoctor.facts.operations.operations import Operations
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.frozen_work import FrozenWork
from tfdoctor.rules import frozen_layers
from tfdoctor.rules.frozen_layers import LIMITS
from tfdoctor.verdict import Finding, Healthy, Location, NotApplicable, Stage, Verdict

AT = Location("train.py", 34)


def work(ms: float = 60.0) -> FrozenWork:
    row = OperationTime(name="teacher/conv", type="Conv2D", ms=ms, at=AT)
    return FrozenWork(("conv",), (row,), features_bytes=1000, passes=4.0, batches=25)


def check(
    frozen: FrozenWork,
    memory: HostMemory | None = None,
    *,
    kind: str = "Conv2D",
    dispatch: Dispatch | None = None,
) -> Verdict:
    rest = OperationTime(name="gradient_tape/x", type=kind, ms=100.0 - frozen.ms)
    return frozen_layers.check(frozen, Operations((*frozen.rows, rest)), memory, dispatch)


def test_the_frozen_part_is_saved_whole() -> None:
    finding = check(work())
    assert isinstance(finding, Finding)
    (effect,) = finding.effects
    assert (effect.stage, effect.scales, effect.subject) == (Stage.DEVICE, 0.0, "teacher/conv")
    assert effect.of is not None
    assert effect.of.value == 60.0
    assert finding.remedies[0].at == AT


def test_the_host_no_longer_dispatches_the_frozen_part() -> None:
    finding = check(work(), dispatch=Dispatch(in_loops_ms=9.0, outside_ms=0.5))
    assert isinstance(finding, Finding)
    (host,) = (effect for effect in finding.effects if effect.stage is Stage.HOST)
    assert host.of is not None
    assert host.of.value == 0.5


@pytest.mark.parametrize(("ms", "kind"), [(100 * LIMITS.share, Finding), (4.9, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert isinstance(check(work(ms)), kind)


@pytest.mark.parametrize(
    ("passes", "kind"), [(LIMITS.passes, Finding), (1.9, Healthy), (None, NotApplicable)]
)
def test_both_sides_of_the_passes(passes: float | None, kind: type) -> None:
    assert isinstance(check(replace(work(), passes=passes)), kind)


@pytest.mark.parametrize(("free", "kind"), [(50_000.0, Finding), (49_000.0, Healthy)])
def test_both_sides_of_the_memory(free: float, kind: type) -> None:
    assert isinstance(check(work(), HostMemory(total=1e9, used=1e9 - free)), kind)


def test_augmented_examples_are_not_the_same() -> None:
    verdict = check(replace(work(), differs="flip in the pipeline draws random numbers"))
    assert isinstance(verdict, Healthy)
    assert "flip" in verdict.summary


def test_a_run_that_trains_everything_is_healthy() -> None:
    assert isinstance(check(FrozenWork((), ())), Healthy)


def test_random_operations_before_the_frozen_part() -> None:
    """Trap: augmentation layers in the model, before a frozen base."""
    assert isinstance(check(FrozenWork(("conv",), (), passes=4.0)), Healthy)


def test_unnamed_work_is_not_called_healthy() -> None:
    verdict = check(FrozenWork(("conv",), (), passes=4.0), kind="compiled or unnamed")
    assert isinstance(verdict, NotApplicable)


def test_one_layer_computes_and_two_compute() -> None:
    one, two = check(work()), check(replace(work(), layers=("a", "b")))
    assert isinstance(one, Finding)
    assert isinstance(two, Finding)
    assert one.summary.startswith("one frozen layer computes the same")
    assert two.summary.startswith("two frozen layers compute the same")
