"""slow-random: expensive distributions compared with uniform numbers."""

import pytest

from tests.rules.cases.slow_random import example
from tests.rules.kit import *
from tfdoctor.rules import slow_random
from tfdoctor.rules.slow_random import NORMAL, REMAINING, Limits

GPU = Hardware(DeviceKind.GPU, "x")


@pytest.mark.parametrize("kind", sorted(REMAINING))
def test_on_a_cpu_the_time_of_the_replacement_remains(kind: str) -> None:
    finding = as_finding(example(kind))
    (effect,) = finding.effects
    assert (effect.scales, effect.bound) == (REMAINING[kind], Bound.EXPECTED)


@pytest.mark.parametrize("kind", ["StatelessMultinomial", "RandomGamma"])
def test_where_no_ratio_was_measured_the_saving_is_a_ceiling(kind: str) -> None:
    assert as_finding(example(kind)).effects[0].bound is Bound.AT_MOST


def test_on_a_gpu_it_is_a_ceiling() -> None:
    finding = as_finding(example(hardware=GPU))
    assert (finding.effects[0].scales, finding.effects[0].bound) == (0.0, Bound.AT_MOST)


@pytest.mark.parametrize("kind", ["RandomUniform", "StatelessRandomUniformV2", "RandomUniformInt"])
def test_uniform_numbers_are_not_expensive(kind: str) -> None:
    assert isinstance(example(kind, 60.0, 100.0), Healthy)


def test_both_sides_of_the_share() -> None:
    assert [type(example(time_ms=ms, total_ms=100.0)) for ms in (100 * Limits().share, 4.9)] == [Finding, Healthy]


def test_uniform_numbers_do_not_replace_categories() -> None:
    assert "uniform" not in as_finding(example("Multinomial")).remedies[0].action


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(applied(slow_random, Operations((unnamed,)), GPU), NotApplicable)


@pytest.mark.parametrize("kind", sorted(NORMAL))
def test_normal_noise_is_necessary_work(kind: str) -> None:
    """Trap: a diffusion model needs it."""
    much, little = example(kind, 60.0, 100.0), example(kind, 4.9, 100.0)
    assert isinstance(much, Healthy)
    assert isinstance(little, Healthy)
    assert [time.of.value for time in much.necessary] == [60.0]
    assert not little.necessary


def test_poisson_numbers_are_replaced_by_normal_ones() -> None:
    finding = as_finding(example("RandomPoissonV2"))
    assert finding.severity is None
    assert "normal" in finding.remedies[0].action
