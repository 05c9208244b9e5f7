"""small-replica-batch: both sides of each limit, and batches that nobody divides."""

import pytest

from tests.rules.cases.small_replica_batch import example
from tests.rules.kit import *
from tfdoctor.facts.run.device import NO_CUPTI
from tfdoctor.rules.small_replica_batch import Limits


@pytest.mark.parametrize(("batch", "kind"), [(124, Finding), (128, Healthy)])
def test_examples_for_each_replica(batch: int, kind: type) -> None:
    assert Limits().examples == 32
    assert isinstance(example(batch), kind)


@pytest.mark.parametrize(("fixed", "kind"), [(100 * Limits().share, Finding), (29.9, Healthy)])
def test_busy_replicas_have_enough(fixed: float, kind: type) -> None:
    assert isinstance(example(step=Breakdown.of(host=fixed, device=100 - fixed)), kind)


def test_a_batch_that_is_each_replicas_own_is_not_divided_again() -> None:
    """Trap: distribute_datasets_from_function makes the batch of one replica."""
    assert isinstance(example(64, divided=False), Healthy)
    assert isinstance(example(64, divided=True), Finding)


@pytest.mark.parametrize("replicas", [1, None])
def test_without_several_replicas_nothing_is_divided(replicas: int | None) -> None:
    assert isinstance(example(32, replicas=replicas), NotApplicable)


def test_an_unknown_batch_is_not_judged() -> None:
    assert isinstance(example(None), NotApplicable)


def test_a_job_that_waits_for_its_input_is_not_judged() -> None:
    assert isinstance(example(step=Breakdown.of(host=50.0, device=50.0, input=20.0)), NotApplicable)


def test_kernels_that_were_not_recorded_are_not_judged() -> None:
    assert isinstance(example(32, device=Device(DeviceKind.GPU, 4, 0, missing=NO_CUPTI)), NotApplicable)


def test_the_same_examples_in_fewer_steps_pay_the_fixed_cost_less_often() -> None:
    """8 examples each instead of 32: at best a quarter of the launches and exchanges remains."""
    finding = as_finding(example(32))
    assert {effect.stage for effect in finding.effects} == {Stage.HOST, Stage.COLLECTIVE}
    assert {effect.scales for effect in finding.effects} == {0.25}
    assert {effect.bound for effect in finding.effects} == {Bound.AT_MOST}
