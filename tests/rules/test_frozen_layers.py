"""frozen-layers: both sides of its limits, and work that only looks the same."""

from dataclasses import replace

import pytest

from tests.rules.cases.frozen_layers import FROZEN, TEACHER, example
from tests.rules.verdicts import as_finding, as_healthy
from tfdoctor.facts.machine.memory import HostMemory
from tfdoctor.facts.savings.dispatch import Dispatch
from tfdoctor.facts.savings.layer_work import FrozenWork
from tfdoctor.rules.frozen_layers import Limits
from tfdoctor.terms.verdict import Finding, Healthy, NotApplicable, Stage


def test_the_frozen_part_is_saved_whole() -> None:
    finding = as_finding(example())
    (effect,) = finding.effects
    assert (effect.stage, effect.scales, effect.subject) == (Stage.DEVICE, 0.0, TEACHER.name)
    assert effect.of is not None
    assert effect.of.value == 20.0
    assert finding.remedies[0].at == TEACHER.at


def test_the_host_no_longer_dispatches_the_frozen_part() -> None:
    finding = as_finding(example(dispatch=Dispatch(in_loops_ms=9.0, outside_ms=0.5)))
    (host,) = (effect for effect in finding.effects if effect.stage is Stage.HOST)
    assert host.of is not None
    assert host.of.value == 0.5


@pytest.mark.parametrize(("ms", "kind"), [(30 * Limits().share, Finding), (1.4, Healthy)])
def test_both_sides_of_the_share(ms: float, kind: type) -> None:
    assert isinstance(example(replace(FROZEN, rows=(replace(TEACHER, ms=ms),))), kind)


@pytest.mark.parametrize(("passes", "kind"), [(Limits().passes, Finding), (1.9, Healthy), (None, NotApplicable)])
def test_both_sides_of_the_passes(passes: float | None, kind: type) -> None:
    assert isinstance(example(replace(FROZEN, passes=passes)), kind)


@pytest.mark.parametrize(("free", "kind"), [(64_000.0, Finding), (63_000.0, Healthy)])
def test_both_sides_of_the_memory(free: float, kind: type) -> None:
    assert isinstance(example(memory=HostMemory(total=1e9, used=1e9 - free)), kind)


def test_augmented_examples_are_not_the_same() -> None:
    verdict = as_healthy(example(replace(FROZEN, differs="flip in the pipeline draws random numbers")))
    assert "flip" in verdict.summary


def test_a_run_that_trains_everything_is_healthy() -> None:
    assert isinstance(example(FrozenWork((), ())), Healthy)


def test_random_operations_before_the_frozen_part() -> None:
    """Trap: augmentation layers in the model, before a frozen base."""
    assert isinstance(example(FrozenWork(("conv",), (), passes=4.0)), Healthy)


def test_unnamed_work_is_not_called_healthy() -> None:
    assert isinstance(example(FrozenWork(("conv",), (), passes=4.0), rest="compiled or unnamed"), NotApplicable)


def test_one_layer_computes_and_two_compute() -> None:
    one, two = example(), example(replace(FROZEN, layers=("a", "b")))
    assert isinstance(one, Finding)
    assert isinstance(two, Finding)
    assert one.summary.startswith("one frozen layer computes the same")
    assert two.summary.startswith("two frozen layers compute the same")
