"""slow-random: expensive distributions compared with uniform numbers."""

from tests.rules.kit import *
from tfdoctor.rules.operations import slow_random
from tfdoctor.rules.operations.slow_random import NORMAL, REMAINING, Limits, check


def example(
    kind: str = "TruncatedNormal",
    time_ms: float = 10.0,
    total_ms: float = 30.0,
    hardware: Hardware = Hardware(DeviceKind.CPU, "example"),
) -> Verdict:
    """Truncated normal noise takes a third of the compute time."""
    drawn = OperationTime(
        name=f"model/noise/{kind}", type=kind, ms=time_ms, layer="noise", at=Location("train.py", 14)
    )
    name = "gradient_tape/model/dense/MatMul"
    rest = OperationTime(name=name, type="MatMul", ms=total_ms - time_ms)
    return check(Operations((drawn, rest)), hardware)


sick = example


def healthy() -> Verdict:
    """The step draws uniform noise."""
    return example("RandomUniform", 2.0)


GPU = Hardware(DeviceKind.GPU, "x")


def test_on_a_cpu_the_time_of_the_replacement_remains() -> None:
    """Where no ratio was measured, and on a GPU, the saving is a ceiling."""
    for kind, left in REMAINING.items():
        assert [one[2:] for one in effects(example(kind))] == [(left, Bound.EXPECTED)]
    for kind in ("StatelessMultinomial", "RandomGamma"):
        assert effects(example(kind))[0][3] is Bound.AT_MOST
    assert effects(example(hardware=GPU))[0][2:] == (0.0, Bound.AT_MOST)


def test_uniform_numbers_are_not_expensive() -> None:
    for kind in ("RandomUniform", "StatelessRandomUniformV2", "RandomUniformInt"):
        assert isinstance(example(kind, 60.0, 100.0), Healthy)


def test_both_sides_of_the_share() -> None:
    assert [type(example(time_ms=ms, total_ms=100.0)) for ms in (100 * Limits().share, 4.9)] == [Finding, Healthy]


def test_uniform_numbers_do_not_replace_categories() -> None:
    assert "uniform" not in as_finding(example("Multinomial")).remedies[0].action


def test_a_step_of_unnamed_work_is_not_called_healthy() -> None:
    unnamed = OperationTime(name="k", type="compiled or unnamed", ms=9.0)
    assert isinstance(applied(slow_random, Operations((unnamed,)), GPU), NotApplicable)


def test_normal_noise_is_necessary_work() -> None:
    """Trap: a diffusion model needs it."""
    for kind in NORMAL:
        much, little = as_healthy(example(kind, 60.0, 100.0)), as_healthy(example(kind, 4.9, 100.0))
        assert [time.of.value for time in much.necessary] == [60.0]
        assert not little.necessary


def test_poisson_numbers_are_replaced_by_normal_ones() -> None:
    finding = as_finding(example("RandomPoissonV2"))
    assert finding.severity is None
    assert "normal" in finding.remedies[0].action
